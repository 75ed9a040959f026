// SPDX-License-Identifier: Apache-2.0
/* Reads that are to bring more than the first bytes; see lowmark.h. */
#include "linux/lowmark.h"
#include "linux/fdwait.h"
#include "linux/msg.h"
#include "linux/sockopt.h"

#include <sys/epoll.h>

uint32_t lx_lowmark_any;

size_t lx_lowmark_ask(int fd, uint64_t flags)
{
	int mark;

	if (flags & MSG_WAITALL)
		return lx_sockopt_is_stream(fd) ? SIZE_MAX : 0;
	mark = lx_sockopt(fd, SO_RCVLOWAT);
	return mark > 1 && lx_sockopt_is_stream(fd) ? (size_t)mark : 0;
}

long lx_lowmark_receive(struct lx_fdwait *w, char *buf, size_t len, long flags, size_t *wanted)
{
	size_t done = 0;

	while (done < len) {
		long ret = LX_TRY(
			w, sys6(__NR_recvfrom, w->use.fd, buf + done, len - done, flags, 0, 0));

		if (ret == 0)
			break;
		if (ret > 0) {
			done += (size_t)ret;
			*wanted -= WF_MIN((size_t)ret, *wanted);
			continue;
		}
		if (ret == -EAGAIN && !*wanted)
			break;
		if (ret == -EAGAIN)
			ret = lx_fdwait_park(w);
		if (ret < 0)
			return done ? (long)done : ret;
	}
	return (long)done;
}

long lx_lowmark_receive_vector(struct lx_fdwait *w, const struct iovec_k *vec, size_t nr,
			       size_t wanted)
{
	size_t done = 0;

	for (size_t i = 0; i < nr; i++) {
		struct iovec_k v;
		long ret = lx_fdwait_load_iovec(vec, i, &v);

		if (ret == 0 && v.len)
			ret = lx_lowmark_receive(w, v.base, v.len, MSG_DONTWAIT, &wanted);
		if (ret < 0)
			return done ? (long)done : ret;
		done += (size_t)ret;
		if ((size_t)ret < v.len)
			break;
	}
	return (long)done;
}

long lx_lowmark_read(struct wf_frame *f)
{
	size_t wanted = lx_lowmark_wanted((int)WF_ARG0(f), 0);
	struct lx_fdwait w;
	long ret;

	lx_fdwait_init(&w, (int)WF_ARG0(f), EPOLLIN);
	if (f->nr == __NR_read)
		ret = lx_lowmark_receive(&w, (char *)WF_ARG1(f), WF_ARG2(f), MSG_DONTWAIT, &wanted);
	else
		ret = lx_lowmark_receive_vector(&w, (const struct iovec_k *)WF_ARG1(f), WF_ARG2(f),
						wanted);
	return lx_fdwait_done(&w, ret);
}
