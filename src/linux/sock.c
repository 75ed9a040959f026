// SPDX-License-Identifier: Apache-2.0
/*
 * The send and recv families, accept and connect.
 *
 * As in rw.c, a call is tried with MSG_DONTWAIT and repeated when the socket is ready. The part that a stream owes to
 * the program beyond one attempt (all of a send, all of MSG_WAITALL, every message of an mmsg call) is put
 * together here.
 */
#include "linux/call.h"
#include "linux/calls.h"
#include "linux/deadline.h"
#include "linux/fds.h"
#include "linux/fdwait.h"
#include "linux/lowmark.h"
#include "linux/msg.h"
#include "linux/rw.h"
#include "linux/sockopt.h"
#include "sched/clock.h"

#include <fcntl.h>
#include <sys/epoll.h>

#define SO_ACCEPTCONN 30
#define SO_RCVTIMEO_OLD 20
#define SO_SNDTIMEO_OLD 21
#define SO_RCVTIMEO_NEW 66
#define SO_SNDTIMEO_NEW 67
#define AF_UNIX 1
#define IPPROTO_TCP 6
#define TCP_ULP 31
#define RLIMIT_NOFILE 7
#define MSG_OOB 0x1
#define MSG_TRUNC 0x20
#define MSG_WAITFORONE 0x10000
#define MSG_FASTOPEN 0x20000000
#define MAX_MESSAGES 1024 /* of one mmsg call: the kernel's limit */

long sysc_setsockopt(struct wf_frame *f)
{
	int fd = (int)WF_ARG0(f), level = (int)WF_ARG1(f), option = (int)WF_ARG2(f);
	long ret;

	if (level == SOL_SOCKET && option == SO_RCVLOWAT)
		wf_store_relaxed(&lx_lowmark_any, 1u); /* before it counts */
	ret = lx_blocking(f, false);
	if (level == SOL_SOCKET && (option == SO_RCVTIMEO_OLD || option == SO_SNDTIMEO_OLD ||
				    option == SO_RCVTIMEO_NEW || option == SO_SNDTIMEO_NEW))
		wf_fd_changed(fd);
	if (ret == 0 && level == IPPROTO_TCP && option == TCP_ULP)
		wf_fd_note_tcp(fd, false); /* see facts.c */
	return ret;
}

/* A wait with a time limit is not made again after a handler. */
static long wait_in_kernel(long nr, const long args[6], uint32_t events)
{
	bool is_timed = wf_fd_facts((int)args[0], events).timeout_ns;

	return lx_blocking_call(nr, args, true, is_timed ? LX_RESTART_NEVER : LX_RESTART_SYS);
}

static long wait_in_kernel_for(struct wf_frame *f, uint32_t events)
{
	long args[6] = { (long)WF_ARG0(f), (long)WF_ARG1(f), (long)WF_ARG2(f),
			 (long)WF_ARG3(f), (long)WF_ARG4(f), (long)WF_ARG5(f) };

	return wait_in_kernel((long)f->nr, args, events);
}

/* The result of a call that never waits: see wf_found_ready(). */
static long at_once(long ret)
{
	if (ret > 0) {
		wf_width_served();
		wf_found_ready();
	}
	return ret;
}

/*
 * A datagram to a unix socket that is full. Whether that has room poll() tells only to a sender that is connected to
 * it, and to another it says that there is some: the kernel waits.
 */
static bool is_known_to_kernel_only(int fd, const void *name)
{
	return name && lx_sockopt(fd, SO_DOMAIN) == AF_UNIX && !lx_fdwait_is_nonblocking(fd);
}

/* Not when something else than bytes is asked for, or bytes are to stay: then the kernel waits. */
static bool can_be_put_together(uint64_t flags)
{
	return !(flags & (MSG_PEEK | MSG_OOB | MSG_TRUNC));
}

static long recvfrom_wanted(struct wf_frame *f, size_t wanted)
{
	struct lx_fdwait w;
	long ret;

	if (!can_be_put_together(WF_ARG3(f)) || WF_ARG4(f))
		return wait_in_kernel_for(f, EPOLLIN);
	lx_fdwait_init(&w, (int)WF_ARG0(f), EPOLLIN);
	ret = lx_lowmark_receive(&w, (char *)WF_ARG1(f), WF_ARG2(f),
				 (long)((WF_ARG3(f) & ~(uint64_t)MSG_WAITALL) | MSG_DONTWAIT),
				 &wanted);
	return lx_fdwait_done(&w, ret);
}

static long recvmsg_wanted(struct wf_frame *f, size_t wanted)
{
	struct msghdr_k *user = (struct msghdr_k *)WF_ARG1(f), m;
	struct lx_fdwait w;
	long ret;

	if (wf_arch_copy(&m, user, sizeof(m)) < 0)
		return -EFAULT;
	if (!can_be_put_together(WF_ARG2(f)) || m.name || (m.control && m.controllen))
		return wait_in_kernel_for(f, EPOLLIN);
	lx_fdwait_init(&w, (int)WF_ARG0(f), EPOLLIN);
	ret = lx_fdwait_done(&w, lx_lowmark_receive_vector(&w, m.iov, m.iovlen, wanted));
	if (ret < 0)
		return ret;
	m.controllen = 0;
	m.flags = 0;
	(void)wf_arch_copy(&user->controllen, &m.controllen, sizeof(m.controllen));
	(void)wf_arch_copy(&user->flags, &m.flags, sizeof(m.flags));
	return ret;
}

long sysc_recvfrom(struct wf_frame *f)
{
	uint64_t flags = WF_ARG3(f);
	/* Without MSG_PEEK, MSG_OOB and the like: what it returns is gone from the socket. */
	bool is_plain = !(flags & ~(uint64_t)MSG_NOSIGNAL);
	struct lx_fdwait w;
	size_t wanted;
	long ret;

	lx_fdwait_init(&w, (int)WF_ARG0(f), EPOLLIN);
	if (flags & MSG_DONTWAIT) {
		ret = lx_raw(f);
		if (ret == -EAGAIN && !(flags & ~(uint64_t)(MSG_NOSIGNAL | MSG_DONTWAIT)))
			wf_fd_found_empty(w.use.fd, w.seq);
		return at_once(ret);
	}
	if (flags & MSG_ERRQUEUE) /* waits on sockets that have no such queue */
		return lx_blocking(f, false);
	wanted = lx_lowmark_wanted((int)WF_ARG0(f), flags);
	if (wanted)
		return recvfrom_wanted(f, wanted);
	ret = is_plain ? lx_fdwait_first(&w) : 0;
	if (ret < 0)
		return lx_fdwait_done(&w, ret);
	do {
		ret = LX_TRY(&w, sys6(__NR_recvfrom, w.use.fd, WF_ARG1(f), WF_ARG2(f),
				      flags | MSG_DONTWAIT, WF_ARG4(f), WF_ARG5(f)));
		if (is_plain && ret > 0 && (uint64_t)ret < WF_ARG2(f))
			w.is_drained = true;
		if (is_plain && ret == -EAGAIN)
			wf_fd_found_empty(w.use.fd, w.seq);
	} while (!lx_fdwait_is_over(&w, f, &ret));
	return ret;
}

long sysc_recvmsg(struct wf_frame *f)
{
	uint64_t flags = WF_ARG2(f);
	struct lx_fdwait w;
	size_t wanted;
	long ret = 0;

	if (flags & MSG_DONTWAIT) {
		ret = at_once(lx_raw(f));
	} else if (flags & MSG_ERRQUEUE) {
		ret = lx_blocking(f, false);
	} else if ((wanted = lx_lowmark_wanted((int)WF_ARG0(f), flags))) {
		ret = recvmsg_wanted(f, wanted);
	} else {
		lx_fdwait_init(&w, (int)WF_ARG0(f), EPOLLIN);
		do
			ret = LX_TRY(
				&w, sys3(__NR_recvmsg, w.use.fd, WF_ARG1(f), flags | MSG_DONTWAIT));
		while (!lx_fdwait_is_over(&w, f, &ret));
	}
	if (ret >= 0)
		lx_fd_received((const void *)WF_ARG1(f));
	return ret;
}

/* The time limit of recvmmsg() is looked at after each message, and what is left of it is stored. */
#define MSG_CMSG_COMPAT 0x80000000u /* the kernel's own */

struct mmsg_time {
	struct __kernel_timespec *user;
	int64_t deadline;
};

static bool is_time_over(const struct mmsg_time *time)
{
	struct __kernel_timespec left;
	int64_t ns;

	if (!time->user)
		return false;
	ns = WF_MAX(time->deadline - wf_now(), 0);
	left = (struct __kernel_timespec){ ns / WF_SEC, ns % WF_SEC };
	return wf_arch_copy(time->user, &left, sizeof(left)) < 0 || !ns;
}

/* See lx_fdwait_give_up(). */
static long receive_for_real(struct lx_fdwait *w, struct mmsghdr_k *messages, uint32_t nr,
			     uint64_t flags)
{
	long args[6] = { w->use.fd, (long)messages, nr, (long)flags };

	return lx_blocking_call(__NR_recvmmsg, args, false, LX_RESTART_SYS);
}

long sysc_recvmmsg(struct wf_frame *f)
{
	struct mmsghdr_k *messages = (struct mmsghdr_k *)WF_ARG1(f);
	uint32_t nr = (uint32_t)WF_MIN(WF_ARG2(f) & 0xffffffff, MAX_MESSAGES), done = 0;
	uint64_t flags = WF_ARG3(f);
	struct mmsg_time time = { .user = (void *)WF_ARG4(f) };
	struct lx_fdwait w;
	long ret = 0;

	if (!nr || flags & MSG_CMSG_COMPAT)
		return lx_raw(f); /* an error, or a look at the descriptor and no more */
	if (time.user) {
		ret = lx_deadline_relative(time.user, &time.deadline);
		if (ret < 0)
			return ret;
	}
	/* Without a limit one call takes all that has come; with one it must be asked after each message. */
	while (done < nr) {
		lx_fdwait_init(&w, (int)WF_ARG0(f), EPOLLIN);
		for (;;) {
			ret = LX_TRY(&w, sys5(__NR_recvmmsg, w.use.fd, messages + done,
					      time.user ? 1 : nr - done,
					      (flags & ~(uint64_t)MSG_WAITFORONE) | MSG_DONTWAIT,
					      NULL));
			if (ret != -EAGAIN || (flags & (MSG_DONTWAIT | MSG_ERRQUEUE)))
				break;
			if (done && flags & MSG_WAITFORONE)
				break;
			ret = lx_fdwait_park(&w);
			if (ret == -EPERM)
				ret = receive_for_real(&w, messages + done,
						       time.user ? 1 : nr - done, flags);
			if (ret)
				break;
		}
		(void)lx_fdwait_done(&w, ret);
		if (ret <= 0)
			break;
		for (uint32_t i = done; i < done + (uint32_t)ret; i++)
			lx_fd_received(&messages[i].msg);
		done += (uint32_t)ret;
		if (is_time_over(&time) || (flags & (MSG_DONTWAIT | MSG_ERRQUEUE) && !time.user))
			break;
		if (flags & MSG_WAITFORONE && !time.user)
			break;
	}
	return done ? (long)done : ret;
}

long sysc_sendto(struct wf_frame *f)
{
	int fd = (int)WF_ARG0(f);
	uint64_t flags = WF_ARG3(f);
	char *buf = (char *)WF_ARG1(f);
	size_t len = WF_ARG2(f), done = 0;
	struct lx_fdwait w;
	long ret;

	if (flags & MSG_DONTWAIT)
		return lx_fdwait_check_sigpipe(at_once(LX_SEND(fd, lx_raw(f))));
	if (flags & MSG_FASTOPEN) /* connects, too */
		return lx_fdwait_check_sigpipe(lx_blocking(f, false));
	lx_fdwait_init(&w, fd, EPOLLOUT);
	for (;;) {
		ret = LX_TRY(
			&w, LX_SEND(w.use.fd, sys6(__NR_sendto, w.use.fd, buf + done, len - done,
						   flags | MSG_DONTWAIT | (done ? MSG_NOSIGNAL : 0),
						   WF_ARG4(f), WF_ARG5(f))));
		if (ret >= 0) {
			done += (size_t)ret;
			/* A part: only a stream sends the rest, and only a blocking one waits for it. */
			if (done >= len || !lx_sockopt_is_stream(w.use.fd) ||
			    lx_fdwait_is_nonblocking(w.use.fd))
				return lx_fdwait_done(&w, (long)done);
			continue;
		}
		if (ret == -EAGAIN && is_known_to_kernel_only(fd, (void *)WF_ARG4(f)))
			return wait_in_kernel_for(f, EPOLLOUT);
		if (ret == -EAGAIN)
			ret = lx_fdwait_park(&w);
		if (ret == -EPERM && !done)
			return lx_fdwait_check_sigpipe(lx_blocking(f, false));
		if (ret < 0)
			return lx_fdwait_check_sigpipe(lx_fdwait_done(&w, done ? (long)done : ret));
	}
}

/* After the first part of a message, with which its ancillary data went: the rest is plain bytes. */
static long send_rest(struct wf_frame *f, int fd, const struct msghdr_k *user, long done)
{
	struct msghdr_k m;

	if (wf_arch_copy(&m, user, sizeof(m)) < 0 || done >= lx_rw_vector_bytes(m.iov, m.iovlen) ||
	    !lx_sockopt_is_stream(fd) || lx_fdwait_is_nonblocking(fd))
		return done;
	return lx_rw_write_rest(fd, WF_FD_SOCKET, m.iov, m.iovlen, (size_t)done);
}

static bool is_known_to_kernel_only_of(int fd, const struct msghdr_k *user)
{
	struct msghdr_k m;

	return wf_arch_copy(&m, user, sizeof(m)) == 0 && is_known_to_kernel_only(fd, m.name);
}

static long send_message(struct wf_frame *f, int fd, const struct msghdr_k *user, uint64_t flags)
{
	struct lx_fdwait w;
	long ret;

	lx_fdwait_init(&w, fd, EPOLLOUT);
	for (;;) {
		ret = LX_TRY(&w, LX_SEND(w.use.fd,
					 sys3(__NR_sendmsg, w.use.fd, user, flags | MSG_DONTWAIT)));
		if (ret >= 0)
			break;
		if (ret == -EAGAIN && is_known_to_kernel_only_of(fd, user)) {
			long args[6] = { fd, (long)user, (long)flags };

			return wait_in_kernel(__NR_sendmsg, args, EPOLLOUT);
		}
		if (ret == -EAGAIN)
			ret = lx_fdwait_park(&w);
		if (ret < 0)
			return lx_fdwait_done(&w, ret);
	}
	(void)lx_fdwait_done(&w, ret);
	return send_rest(f, fd, user, ret);
}

long sysc_sendmsg(struct wf_frame *f)
{
	const struct msghdr_k *user = (const struct msghdr_k *)WF_ARG1(f);
	long ret;

	lx_fd_sent(user);
	if (WF_ARG2(f) & MSG_DONTWAIT)
		return lx_fdwait_check_sigpipe(at_once(LX_SEND((int)WF_ARG0(f), lx_raw(f))));
	if (WF_ARG2(f) & MSG_FASTOPEN)
		return lx_fdwait_check_sigpipe(lx_blocking(f, false));
	ret = send_message(f, (int)WF_ARG0(f), user, WF_ARG2(f));
	return lx_fdwait_check_sigpipe(ret == -EPERM ? lx_blocking(f, false) : ret);
}

/* As many as go without waiting go at once; then message by message. */
long sysc_sendmmsg(struct wf_frame *f)
{
	struct mmsghdr_k *messages = (struct mmsghdr_k *)WF_ARG1(f);
	uint32_t nr = (uint32_t)WF_MIN(WF_ARG2(f) & 0xffffffff, MAX_MESSAGES), done;
	int fd = (int)WF_ARG0(f);
	uint64_t flags = WF_ARG3(f);
	unsigned len;
	long ret;

	for (uint32_t i = 0; i < nr; i++)
		lx_fd_sent(&messages[i].msg);
	if (flags & MSG_FASTOPEN && !(flags & MSG_DONTWAIT))
		return lx_fdwait_check_sigpipe(lx_blocking(f, false));
	ret = at_once(LX_SEND(fd, sys4(__NR_sendmmsg, fd, messages, nr, flags | MSG_DONTWAIT)));
	if (flags & MSG_DONTWAIT || (ret < 0 && ret != -EAGAIN))
		return lx_fdwait_check_sigpipe(ret);
	done = ret < 0 ? 0 : (uint32_t)ret;
	/* The last that went may have gone in part. */
	if (done && wf_arch_copy(&len, &messages[done - 1].len, sizeof(len)) == 0) {
		ret = send_rest(f, fd, &messages[done - 1].msg, len);
		if (ret > (long)len) {
			len = (unsigned)ret;
			(void)wf_arch_copy(&messages[done - 1].len, &len, sizeof(len));
		}
	}
	for (; done < nr; done++) {
		ret = send_message(f, fd, &messages[done].msg, flags);
		if (ret < 0)
			break;
		len = (unsigned)ret;
		if (wf_arch_copy(&messages[done].len, &len, sizeof(len)) < 0)
			return done ? (long)done : -EFAULT;
	}
	return done ? (long)done : lx_fdwait_check_sigpipe(ret);
}

/*
 * Whether a new descriptor can be made. Where none can, the highest possible one is in use, so the number that the probe
 * takes for a moment is seldom seen by others.
 */
static bool has_descriptor_left(int any_fd)
{
	uint64_t limit[2] = { 0, 0 };
	long probe;

	(void)sys4(__NR_prlimit64, 0, RLIMIT_NOFILE, NULL, limit);
	if (limit[0] && sys2(__NR_fcntl, limit[0] - 1, F_GETFD) < 0)
		return true;
	probe = sys3(__NR_fcntl, any_fd, F_DUPFD_CLOEXEC, 0);
	if (probe >= 0)
		(void)sys_close((int)probe);
	return probe >= 0;
}

/* A socket that does not listen never becomes ready for accept, and there may be no descriptor left: the kernel says so. */
static bool may_accept(const struct wf_frame *f)
{
	int listens = 0, len = sizeof(listens);

	if (f->nr == __NR_accept4 && WF_ARG3(f) & ~(uint64_t)(O_CLOEXEC | O_NONBLOCK))
		return false;
	return sys5(__NR_getsockopt, WF_ARG0(f), SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) == 0 &&
	       listens && has_descriptor_left((int)WF_ARG0(f));
}

long sysc_accept(struct wf_frame *f)
{
	long fd = lx_fdwait_poll_then_call_if(f, (int)WF_ARG0(f), EPOLLIN, may_accept);

	if (fd < 0)
		return fd;
	wf_fd_made((int)fd, f->nr == __NR_accept4 && WF_ARG3(f) & O_NONBLOCK);
	if (wf_fd_is_tcp((int)WF_ARG0(f)))
		wf_fd_note_tcp((int)fd, true);
	return fd;
}

struct sockaddr_k {
	uint16_t family;
	uint8_t bytes[26]; /* IPv4: port, address; IPv6: port, flow, address, scope */
};

#define AF_INET 2
#define AF_INET6 10

/* To this machine itself: answered before connect() returns, unless nobody accepts. */
static bool is_local(const struct sockaddr_k *to)
{
	const uint8_t *ip6 = to->bytes + 6;

	if (to->family == AF_INET)
		return to->bytes[2] == 127 || !to->bytes[2];
	if (to->family != AF_INET6)
		return true;
	for (int i = 0; i < 10; i++)
		if (ip6[i])
			return false;
	return !ip6[10] || ip6[12] == 127; /* ::1, ::, ::ffff:127.0.0.1 */
}

/*
 * There is no flag for "do not wait". But a connect() that a signal interrupts goes on by itself, so ours is
 * interrupted when it lasts, and waits in the poller; the second connect() then asks for the result, as POSIX
 * allows. A unix socket knows no such thing: there a kernel thread waits.
 */
long sysc_connect(struct wf_frame *f)
{
	int fd = (int)WF_ARG0(f);
	struct sockaddr_k to = { 0 };
	struct lx_fdwait w;
	bool is_slow;
	long ret;

	(void)wf_arch_copy(&to, (const void *)WF_ARG1(f), WF_MIN(WF_ARG2(f), sizeof(to)));
	if (to.family != AF_INET && to.family != AF_INET6)
		return lx_blocking(f, false);
	lx_fdwait_init(&w, fd, EPOLLOUT);
	is_slow = !is_local(&to) && lx_sockopt_is_stream(fd) && !lx_fdwait_is_nonblocking(fd);
	do {
		ret = is_slow && !w.has_waited ? lx_brief(f) : lx_breakable_on(f, w.use.fd);
		if (ret != -EINTR)
			break;
		ret = lx_fdwait_until_ready(&w);
		if (ret == -EAGAIN)
			ret = -EINPROGRESS; /* SO_SNDTIMEO */
	} while (ret >= 0);
	return lx_fdwait_done(&w, ret);
}
