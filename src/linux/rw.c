// SPDX-License-Identifier: Apache-2.0
/*
 * read, write, send, recv, accept, connect and their families: calls that wait for one descriptor.
 *
 * Each is tried without blocking first: MSG_DONTWAIT on sockets, RWF_NOWAIT elsewhere; the descriptor's own
 * flags are never changed. If it would block and the program did not ask for O_NONBLOCK, the thread parks
 * until the descriptor is ready. What cannot be tried without blocking (a terminal, an old kernel) is polled
 * first and then called for real; should somebody else be faster, the monitor takes the worker.
 */
#include "io/fd.h"
#include "linux/abi.h"
#include "linux/calls.h"
#include "linux/msg.h"

#include <fcntl.h>
#include <sys/epoll.h>

#define RWF_NOWAIT 8
#define MSG_DONTWAIT 0x40
#define MSG_WAITALL 0x100
#define MSG_ERRQUEUE 0x2000
#define MSG_NOSIGNAL 0x4000
#define SOL_SOCKET 1
#define NO_RWF 0x100 /* this kind of file does not know RWF_NOWAIT */

static bool is_nonblocking(int fd)
{
	return wf_fd_facts(fd, EPOLLOUT).is_nonblocking;
}

/* One wait on one descriptor: what to wait for, until when, and what was learnt on the way. */
struct fd_wait {
	int fd;
	uint32_t events;
	uint32_t seq;
	int64_t deadline;
	bool has_deadline, has_waited, is_late;
};

static void wait_init(struct fd_wait *w, int fd, uint32_t events)
{
	*w = (struct fd_wait){ .fd = fd, .events = events, .deadline = WF_NEVER };
	w->seq = wf_fd_seq(fd);
}

/*
 * The attempt would block: park. 0: try again; else what the call returns. When the socket's own timeout is
 * over there is one more attempt: what came in time counts, though its event may still be on the way.
 */
static long wait_ready(struct fd_wait *w)
{
	int ret;

	if (w->is_late)
		return -EAGAIN;
	if (!w->has_deadline) {
		struct wf_fd_facts facts = wf_fd_facts(w->fd, w->events);

		if (facts.is_nonblocking)
			return -EAGAIN;
		w->has_deadline = true;
		if (facts.timeout_ns)
			w->deadline = lx_deadline_in(facts.timeout_ns);
	}
	ret = wf_fd_wait(w->fd, w->events, w->seq, w->deadline);
	w->has_waited = true;
	w->seq = wf_fd_seq(w->fd);
	w->is_late = ret == -ETIMEDOUT;
	if (w->is_late)
		return 0;
	if (ret == -EINTR && lx_signal_is_waiting(lx_self()))
		return w->deadline == WF_NEVER ? -ERESTARTSYS : -EINTR;
	return ret == -EINTR ? 0 : ret;
}

/* An attempt would find nothing: wait before it. 0: attempt; else what the call returns. */
static long wait_first(struct fd_wait *w)
{
	long ret = wf_fd_is_empty(w->fd, w->seq) ? wait_ready(w) : 0;

	return ret == -EAGAIN || ret == -EPERM ? 0 : ret;
}

static long wait_done(struct fd_wait *w, long ret)
{
	if (w->has_waited)
		wf_fd_pass_on(w->fd, w->events);
	return ret;
}

/*
 * An attempt to read up to len bytes gave *ret. True: that is over, and *ret what the call returns; false: try
 * again. takes: what was read is gone from the descriptor, so less than len means that it is empty.
 */
static bool is_read_over(struct wf_frame *f, struct fd_wait *w, bool takes, size_t len, long *ret)
{
	if (takes && *ret > 0 && (size_t)*ret < len)
		wf_fd_drained(w->fd, w->seq);
	if (*ret == -EAGAIN) {
		*ret = wait_ready(w);
		if (*ret == 0)
			return false;
		if (*ret == -EPERM) {
			*ret = lx_blocking(f, false);
			return true;
		}
	}
	(void)wait_done(w, *ret);
	return true;
}

static bool is_ready_now(int fd, uint32_t events)
{
	struct {
		int fd;
		short events, revents;
	} p = { fd, (short)events, 0 };

	return sys3(__NR_poll, &p, 1, 0) != 0;
}

/*
 * A terminal out of line mode may be set to return after a pause, or at once with nothing: its reads are not over
 * when poll() says so.
 */
static bool is_timed_tty(int fd)
{
	enum {
		TCGETS = 0x5401,
		ICANON = 2,
		VTIME = 5,
		VMIN = 6
	};
	struct {
		uint32_t iflag, oflag, cflag, lflag;
		uint8_t line, cc[19];
	} mode;

	return sys3(__NR_ioctl, fd, TCGETS, &mode) == 0 && !(mode.lflag & ICANON) &&
	       (mode.cc[VTIME] || !mode.cc[VMIN]);
}

/* Poll, then the real call: for descriptors and calls that have no non-blocking form. */
static long poll_then_call(struct wf_frame *f, int fd, uint32_t events)
{
	struct fd_wait w;
	long ret;

	wait_init(&w, fd, events);
	if (events == EPOLLIN && is_timed_tty(fd))
		return lx_blocking(f, false);
	while (!is_ready_now(fd, events)) {
		ret = wait_ready(&w);
		if (ret == -EAGAIN && !w.is_late)
			break; /* O_NONBLOCK: the real call says so itself */
		if (ret == -EPERM)
			break;
		if (ret < 0)
			return wait_done(&w, ret);
	}
	return wait_done(&w, lx_blocking(f, false));
}

/* One non-blocking transfer of a contiguous buffer. -NO_RWF: not possible for this descriptor. */
static long transfer(int fd, char *buf, size_t len, bool is_write, enum wf_fd_kind kind)
{
	struct iovec_k iov = { buf, len };
	long ret;

	if (kind == WF_FD_SOCKET)
		return is_write ? sys6(__NR_sendto, fd, buf, len, MSG_DONTWAIT, 0, 0)
				: sys6(__NR_recvfrom, fd, buf, len, MSG_DONTWAIT, 0, 0);
	ret = sys6(is_write ? __NR_pwritev2 : __NR_preadv2, fd, &iov, 1, -1, -1, RWF_NOWAIT);
	return ret == -EOPNOTSUPP ? -NO_RWF : ret;
}

static long read_into(struct wf_frame *f, int fd, char *buf, size_t len, enum wf_fd_kind kind)
{
	struct fd_wait w;
	long ret;

	wait_init(&w, fd, EPOLLIN);
	ret = wait_first(&w);
	if (ret < 0)
		return wait_done(&w, ret);
	for (;;) {
		ret = transfer(fd, buf, len, false, kind);
		if (ret == -NO_RWF)
			return poll_then_call(f, fd, EPOLLIN);
		if (is_read_over(f, &w, true, len, &ret))
			return ret;
	}
}

/* A blocking write ends when everything is written; a signal or an error after a part returns the part. */
static long write_from(struct wf_frame *f, int fd, char *buf, size_t len, enum wf_fd_kind kind)
{
	struct fd_wait w;
	size_t done = 0;
	long ret;

	wait_init(&w, fd, EPOLLOUT);
	for (;;) {
		ret = transfer(fd, buf + done, len - done, true, kind);
		if (ret == -NO_RWF)
			return done ? (long)done : poll_then_call(f, fd, EPOLLOUT);
		if (ret >= 0) {
			done += (size_t)ret;
			if (done == len || !ret || is_nonblocking(fd))
				return wait_done(&w, (long)done);
			continue;
		}
		if (ret == -EAGAIN)
			ret = wait_ready(&w);
		if (ret == -EPERM && !done)
			return lx_blocking(f, false);
		if (ret < 0)
			return wait_done(&w, done ? (long)done : ret);
	}
}

/* Files go straight to the kernel: a page cache hit never leaves the thread. */
static bool goes_native(enum wf_fd_kind kind, size_t len)
{
	return kind == WF_FD_FILE || kind == WF_FD_UNKNOWN || !len;
}

long sysc_read(struct wf_frame *f)
{
	int fd = (int)WF_ARG0(f);
	enum wf_fd_kind kind = wf_fd_kind(fd);

	if (goes_native(kind, WF_ARG2(f)))
		return lx_blocking(f, false);
	return read_into(f, fd, (char *)WF_ARG1(f), WF_ARG2(f), kind);
}

/* A write whose reader is gone raises SIGPIPE, on the kernel thread, which blocks it: pass it to the thread. */
static long check_sigpipe(long ret)
{
	if (ret == -EPIPE)
		lx_signal_take_sigpipe();
	return ret;
}

long sysc_write(struct wf_frame *f)
{
	int fd = (int)WF_ARG0(f);
	enum wf_fd_kind kind = wf_fd_kind(fd);

	if (goes_native(kind, WF_ARG2(f)))
		return check_sigpipe(lx_blocking(f, false));
	return check_sigpipe(write_from(f, fd, (char *)WF_ARG1(f), WF_ARG2(f), kind));
}

static long load_iovec(uint64_t user, size_t i, struct iovec_k *out)
{
	return wf_arch_copy(out, (const struct iovec_k *)user + i, sizeof(*out));
}

long sysc_readv(struct wf_frame *f)
{
	int fd = (int)WF_ARG0(f);
	enum wf_fd_kind kind = wf_fd_kind(fd);
	struct fd_wait w;
	long ret;

	if (goes_native(kind, WF_ARG2(f)))
		return lx_blocking(f, false);
	wait_init(&w, fd, EPOLLIN);
	for (;;) {
		ret = sys6(__NR_preadv2, fd, WF_ARG1(f), WF_ARG2(f), -1, -1, RWF_NOWAIT);
		if (ret == -EOPNOTSUPP)
			return poll_then_call(f, fd, EPOLLIN);
		if (is_read_over(f, &w, false, 0, &ret))
			return ret;
	}
}

/* What is left of a vector after done bytes, element by element: no copy of the vector is needed. */
static long write_rest(struct wf_frame *f, int fd, enum wf_fd_kind kind, size_t done)
{
	size_t skip = done;
	long ret;

	for (size_t i = 0; i < WF_ARG2(f); i++) {
		struct iovec_k v;

		if (load_iovec(WF_ARG1(f), i, &v) < 0)
			return (long)done;
		if (skip >= v.len) {
			skip -= v.len;
			continue;
		}
		ret = write_from(f, fd, v.base + skip, v.len - skip, kind);
		if (ret < 0)
			return done ? (long)done : ret;
		done += (size_t)ret;
		if ((size_t)ret < v.len - skip)
			return (long)done;
		skip = 0;
	}
	return (long)done;
}

static long vector_bytes(struct wf_frame *f, size_t *out)
{
	*out = 0;
	for (size_t i = 0; i < WF_ARG2(f); i++) {
		struct iovec_k v;

		if (load_iovec(WF_ARG1(f), i, &v) < 0)
			return -EFAULT;
		*out += v.len;
	}
	return 0;
}

long sysc_writev(struct wf_frame *f)
{
	int fd = (int)WF_ARG0(f);
	enum wf_fd_kind kind = wf_fd_kind(fd);
	struct fd_wait w;
	size_t total;
	long ret;

	if (goes_native(kind, WF_ARG2(f)))
		return check_sigpipe(lx_blocking(f, false));
	wait_init(&w, fd, EPOLLOUT);
	for (;;) {
		ret = sys6(__NR_pwritev2, fd, WF_ARG1(f), WF_ARG2(f), -1, -1, RWF_NOWAIT);
		if (ret == -EOPNOTSUPP)
			return check_sigpipe(poll_then_call(f, fd, EPOLLOUT));
		if (ret >= 0)
			break;
		if (ret == -EAGAIN)
			ret = wait_ready(&w);
		if (ret == -EPERM)
			return lx_blocking(f, false);
		if (ret < 0)
			return check_sigpipe(wait_done(&w, ret));
	}
	(void)wait_done(&w, 0);
	if (vector_bytes(f, &total) < 0 || (size_t)ret >= total || is_nonblocking(fd))
		return ret;
	return check_sigpipe(write_rest(f, fd, kind, (size_t)ret));
}

/* recvfrom, recvmsg, recvmmsg differ in where the flags are. */
static long receive(struct wf_frame *f, int flags_arg)
{
	int fd = (int)WF_ARG0(f);
	uint64_t flags = flags_arg == 3 ? WF_ARG3(f) : WF_ARG2(f);
	/* recv() without MSG_PEEK, MSG_OOB and the like: what it returns is gone from the socket */
	bool is_plain = f->nr == __NR_recvfrom && !(flags & ~(uint64_t)MSG_NOSIGNAL);
	struct fd_wait w;
	long ret;

	if (flags & (MSG_DONTWAIT | MSG_ERRQUEUE))
		return lx_raw(f);
	if (flags & MSG_WAITALL)
		/* parts may arrive for long; kept whole by the kernel */
		return lx_blocking(f, true);
	wait_init(&w, fd, EPOLLIN);
	ret = is_plain ? wait_first(&w) : 0;
	if (ret < 0)
		return wait_done(&w, ret);
	for (;;) {
		long nb = (long)(flags | MSG_DONTWAIT);

		ret = flags_arg == 3 ? sys6(f->nr, WF_ARG0(f), WF_ARG1(f), WF_ARG2(f), nb,
					    WF_ARG4(f), WF_ARG5(f))
				     : sys6(f->nr, WF_ARG0(f), WF_ARG1(f), nb, WF_ARG3(f),
					    WF_ARG4(f), WF_ARG5(f));
		if (is_read_over(f, &w, is_plain, WF_ARG2(f), &ret))
			return ret;
	}
}

long sysc_recvfrom(struct wf_frame *f)
{
	return receive(f, 3);
}

long sysc_recvmsg(struct wf_frame *f)
{
	long ret = receive(f, 2);

	if (ret >= 0)
		lx_fd_received((const void *)WF_ARG1(f));
	return ret;
}

static bool is_stream(int fd)
{
	int type = 0, len = sizeof(type);

	return sys5(__NR_getsockopt, fd, SOL_SOCKET, 3 /* SO_TYPE */, &type, &len) == 0 &&
	       type == 1;
}

long sysc_sendto(struct wf_frame *f)
{
	int fd = (int)WF_ARG0(f);
	uint64_t flags = WF_ARG3(f);
	char *buf = (char *)WF_ARG1(f);
	size_t len = WF_ARG2(f), done = 0;
	struct fd_wait w;
	long ret;

	if (flags & MSG_DONTWAIT)
		return check_sigpipe(lx_raw(f));
	wait_init(&w, fd, EPOLLOUT);
	for (;;) {
		ret = sys6(__NR_sendto, fd, buf + done, len - done, flags | MSG_DONTWAIT,
			   WF_ARG4(f), WF_ARG5(f));
		if (ret >= 0) {
			done += (size_t)ret;
			/* A part: only a stream sends the rest, and only a blocking one waits for it. */
			if (done >= len || !is_stream(fd) || is_nonblocking(fd))
				return wait_done(&w, (long)done);
			continue;
		}
		if (ret == -EAGAIN)
			ret = wait_ready(&w);
		if (ret == -EPERM && !done)
			return check_sigpipe(lx_blocking(f, false));
		if (ret < 0)
			return check_sigpipe(wait_done(&w, done ? (long)done : ret));
	}
}

/* The first part of a message went out; ancillary data went with it. The rest is plain bytes. */
static long send_rest(struct wf_frame *f, size_t done)
{
	struct msghdr_k m;
	size_t skip = done;

	if (wf_arch_copy(&m, (const void *)WF_ARG1(f), sizeof(m)) < 0)
		return (long)done;
	for (size_t i = 0; i < m.iovlen; i++) {
		struct iovec_k v;
		long ret;

		if (load_iovec((uint64_t)m.iov, i, &v) < 0)
			return (long)done;
		if (skip >= v.len) {
			skip -= v.len;
			continue;
		}
		ret = write_from(f, (int)WF_ARG0(f), v.base + skip, v.len - skip, WF_FD_SOCKET);
		if (ret <= 0)
			return (long)done;
		done += (size_t)ret;
		if ((size_t)ret < v.len - skip)
			return (long)done;
		skip = 0;
	}
	return (long)done;
}

long sysc_sendmsg(struct wf_frame *f)
{
	int fd = (int)WF_ARG0(f);
	uint64_t flags = WF_ARG2(f);
	struct fd_wait w;
	long ret;

	lx_fd_sent((const void *)WF_ARG1(f));
	if (flags & MSG_DONTWAIT)
		return check_sigpipe(lx_raw(f));
	wait_init(&w, fd, EPOLLOUT);
	for (;;) {
		ret = sys3(__NR_sendmsg, fd, WF_ARG1(f), flags | MSG_DONTWAIT);
		if (ret >= 0)
			break;
		if (ret == -EAGAIN)
			ret = wait_ready(&w);
		if (ret == -EPERM)
			return check_sigpipe(lx_blocking(f, false));
		if (ret < 0)
			return check_sigpipe(wait_done(&w, ret));
	}
	(void)wait_done(&w, 0);
	return is_stream(fd) && !is_nonblocking(fd) ? send_rest(f, (size_t)ret) : ret;
}

long sysc_accept(struct wf_frame *f)
{
	long fd = poll_then_call(f, (int)WF_ARG0(f), EPOLLIN);

	if (fd >= 0)
		wf_fd_made((int)fd, f->nr == __NR_accept4 && WF_ARG3(f) & O_NONBLOCK);
	return fd;
}

/* No per-call flag exists, and the kernel connects loopback and unix sockets at once. */
long sysc_connect(struct wf_frame *f)
{
	return lx_blocking(f, false);
}
