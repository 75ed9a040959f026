// SPDX-License-Identifier: Apache-2.0
/*
 * splice, tee, vmsplice, sendfile: bytes that go from one descriptor to another inside the kernel.
 *
 * None has a form that does not wait on both sides, and with a pipe and a socket not even SPLICE_F_NONBLOCK
 * is enough. So both sides are waited for here, and the real call comes when they are ready. If it waits all
 * the same, since a pipe was not as full as the socket is, it is interrupted, returns the part that it moved,
 * and loses nothing.
 */
#include "linux/call.h"
#include "linux/calls.h"
#include "linux/fdwait.h"
#include "linux/sigwant.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/stat.h>

#define SPLICE_F_NONBLOCK 2
#define MAX_BYTES 0x7ffff000ul /* of one call: the kernel's limit */

static bool can_wait(int fd)
{
	enum wf_fd_kind kind = wf_fd_kind(fd);

	return kind != WF_FD_FILE && kind != WF_FD_UNKNOWN;
}

/*
 * The kernel looks at both descriptors before it waits for one. A call that it would refuse, or may, since only pipes,
 * sockets and devices are known to take part, is left to it.
 */
static bool may_wait_for(const struct wf_frame *f, int in, int out)
{
	const bool is_splice = f->nr == __NR_splice;
	enum wf_fd_kind kind[2] = { WF_FD_PIPE, WF_FD_PIPE };
	uint64_t file[2] = { 0, 1 };

	for (int i = 0; i < 2; i++) {
		int fd = i ? out : in;
		long flags = sys2(__NR_fcntl, fd, F_GETFL);
		struct stat st;

		if (fd < 0 && f->nr == __NR_vmsplice)
			continue; /* memory is that side */
		if (flags < 0 || flags & O_PATH ||
		    (flags & O_ACCMODE) == (i ? O_RDONLY : O_WRONLY) ||
		    (i && is_splice && flags & O_APPEND) || sys2(__NR_fstat, fd, &st) < 0)
			return false;
		kind[i] = wf_fd_kind(fd);
		file[i] = st.st_ino;
		if (kind[i] == WF_FD_OTHER ||
		    (is_splice && kind[i] == WF_FD_PIPE && (i ? WF_ARG3(f) : WF_ARG1(f))))
			return false;
	}
	switch (f->nr) {
	case __NR_splice:
		return kind[0] == WF_FD_PIPE ? kind[1] != WF_FD_PIPE || file[0] != file[1]
					     : kind[1] == WF_FD_PIPE;
	case __NR_tee:
		return kind[0] == WF_FD_PIPE && kind[1] == WF_FD_PIPE && file[0] != file[1];
	case __NR_vmsplice:
		return kind[0] == WF_FD_PIPE && kind[1] == WF_FD_PIPE;
	default:
		return true;
	}
}

/* The waits of one call; fd -1: that side never waits. */
struct both {
	struct lx_fdwait in, out;
};

static void both_init(struct both *b, int in, int out)
{
	lx_fdwait_init(&b->in, in >= 0 && can_wait(in) ? in : -1, EPOLLIN);
	lx_fdwait_init(&b->out, out >= 0 && can_wait(out) ? out : -1, EPOLLOUT);
}

/* 1: both are ready; 0: one is not for us to wait for; else what the call returns. */
static long both_ready(struct both *b)
{
	long ret = b->in.use.fd < 0 ? 1 : lx_fdwait_until_ready(&b->in), other;

	if (ret < 0)
		return ret;
	other = b->out.use.fd < 0 ? 1 : lx_fdwait_until_ready(&b->out);
	return other < 0 ? other : ret && other;
}

static bool both_are_ready_now(const struct both *b)
{
	return (b->in.use.fd < 0 || lx_fdwait_is_ready(b->in.use.fd, EPOLLIN)) &&
	       (b->out.use.fd < 0 || lx_fdwait_is_ready(b->out.use.fd, EPOLLOUT));
}

static long both_done(struct both *b, long ret)
{
	if (b->in.use.fd >= 0)
		(void)lx_fdwait_done(&b->in, ret);
	if (b->out.use.fd >= 0)
		(void)lx_fdwait_done(&b->out, ret);
	return lx_fdwait_check_sigpipe(ret);
}

/* out_arg: which argument out is; in is the first. */
static long move(struct wf_frame *f, int in, int out, int out_arg)
{
	long args[6] = { (long)WF_ARG0(f), (long)WF_ARG1(f), (long)WF_ARG2(f),
			 (long)WF_ARG3(f), (long)WF_ARG4(f), (long)WF_ARG5(f) };
	struct both b;
	bool is_ready;
	long ret;

	both_init(&b, in, out);
	is_ready = both_are_ready_now(&b);
	if (!is_ready && !may_wait_for(f, in, out))
		return lx_fdwait_check_sigpipe(lx_blocking(f, false));
	do {
		ret = is_ready ? 1 : both_ready(&b);
		is_ready = false;
		if (ret < 0)
			break;
		if (b.in.has_waited)
			args[0] = b.in.use.fd;
		if (b.out.has_waited)
			args[out_arg] = b.out.use.fd;
		ret = ret ? lx_breakable_call((long)f->nr, args) : lx_blocking(f, false);
	} while (ret == -EINTR);
	return both_done(&b, ret);
}

long sysc_splice(struct wf_frame *f)
{
	if (WF_ARG5(f) & SPLICE_F_NONBLOCK || !WF_ARG4(f))
		return lx_fdwait_check_sigpipe(lx_blocking(f, false));
	return move(f, (int)WF_ARG0(f), (int)WF_ARG2(f), 2);
}

long sysc_tee(struct wf_frame *f)
{
	if (WF_ARG3(f) & SPLICE_F_NONBLOCK || !WF_ARG2(f))
		return lx_fdwait_check_sigpipe(lx_blocking(f, false));
	return move(f, (int)WF_ARG0(f), (int)WF_ARG1(f), 1);
}

/* To a pipe, or from it: by the end that was passed. */
long sysc_vmsplice(struct wf_frame *f)
{
	int fd = (int)WF_ARG0(f);
	long flags = sys2(__NR_fcntl, fd, F_GETFL);
	bool is_write = flags >= 0 && (flags & O_ACCMODE) != O_RDONLY;

	if (WF_ARG3(f) & SPLICE_F_NONBLOCK || !WF_ARG2(f))
		return lx_fdwait_check_sigpipe(lx_blocking(f, false));
	return move(f, is_write ? -1 : fd, is_write ? fd : -1, 0);
}

/* Ends when everything is sent, or the file is at its end: a part is what an interrupted call leaves. */
long sysc_sendfile(struct wf_frame *f)
{
	int out = (int)WF_ARG0(f), in = (int)WF_ARG1(f);
	size_t count = WF_MIN(WF_ARG3(f), MAX_BYTES), done = 0;
	struct both b;
	bool is_ready;
	long ret;

	if (!can_wait(out) || !count)
		return lx_blocking(f, false);
	both_init(&b, in, out);
	is_ready = both_are_ready_now(&b);
	if (!is_ready && !may_wait_for(f, in, out))
		return lx_fdwait_check_sigpipe(lx_blocking(f, false));
	for (;;) {
		long args[6] = { out, in, (long)WF_ARG2(f), (long)(count - done) };

		ret = is_ready ? 1 : both_ready(&b);
		is_ready = false;
		if (ret == 0 && !done)
			return both_done(&b, lx_blocking(f, false)); /* O_NONBLOCK */
		if (ret <= 0)
			break;
		args[0] = b.out.use.fd;
		ret = lx_breakable_call(__NR_sendfile, args);
		if (ret == -EINTR)
			continue;
		if (ret <= 0)
			break;
		done += (size_t)ret;
		if (done == count || lx_signal_is_waiting(lx_self()))
			break;
	}
	ret = both_done(&b, ret);
	return done ? (long)done : ret;
}
