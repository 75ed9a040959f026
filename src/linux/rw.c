// SPDX-License-Identifier: Apache-2.0
/*
 * read, write and their vectors.
 *
 * Each is tried without blocking first: MSG_DONTWAIT on sockets, RWF_NOWAIT elsewhere; the descriptor's own
 * flags are never changed. If it would block and the program did not ask for O_NONBLOCK, the thread parks
 * until the descriptor is ready. What cannot be tried without blocking (a terminal, an old kernel) is polled
 * first and then called for real. Files go to the kernel on the thread itself; see file.c.
 */
#include "base/fmt.h"
#include "linux/calls.h"
#include "linux/fdwait.h"
#include "linux/tty.h"

#include <fcntl.h>
#include <sys/epoll.h>

#define NO_RWF 0x100 /* this kind of file does not know RWF_NOWAIT */

/* Of these kinds nobody else decides what can be read; a signalfd, for one, depends on the thread that asks. */
static void note_empty(const struct lx_fdwait *w)
{
	enum wf_fd_kind kind = wf_fd_kind(w->use.fd);

	if (kind == WF_FD_SOCKET || kind == WF_FD_PIPE)
		wf_fd_found_empty(w->use.fd, w->seq);
}

/*
 * An attempt to read up to len bytes gave *ret. True: that is over, and *ret what the call returns; false: try
 * again. takes: what was read is gone from the descriptor, so less than len means that it is empty.
 */
static bool is_read_over(struct wf_frame *f, struct lx_fdwait *w, bool takes, size_t len, long *ret)
{
	if (takes && *ret > 0 && (size_t)*ret < len)
		wf_fd_drained(w->use.fd, w->seq);
	if (*ret == -EAGAIN)
		note_empty(w);
	return lx_fdwait_is_over(w, f, ret);
}

struct termios_k {
	uint32_t iflag, oflag, cflag, lflag;
	uint8_t line, cc[19];
};

#define TCGETS 0x5401
#define ICANON 2
#define VTIME 5
#define VMIN 6

static bool is_name(const char *name, long len, const char *of)
{
	long i = 0;

	while (i < len && of[i] && name[i] == of[i])
		i++;
	return i == len && !of[i];
}

/*
 * Whether poll() tells when a read or write does not wait. It does for what is made to be waited for; of many
 * others it says nothing, or something else, and the call never waits or fails at once: epoll descriptors,
 * counters of perf_event_open, answers to fanotify, /dev/kmsg. Those calls are made as they are.
 */
static bool is_told_by_poll(int fd, bool is_write)
{
	static const char *const waits[] = { "anon_inode:[eventfd]",  "anon_inode:[timerfd]",
					     "anon_inode:[signalfd]", "anon_inode:inotify",
					     "anon_inode:[fanotify]", "anon_inode:[userfaultfd]" };
	const size_t nr = is_write ? 1 : ARRAY_LEN(waits);
	const enum wf_fd_kind kind = wf_fd_kind(fd);
	char path[40], name[40];
	struct termios_k tio;
	struct wf_fmt text;
	long len;

	if (kind == WF_FD_CHAR)
		return sys3(__NR_ioctl, fd, TCGETS, &tio) == 0;
	if (kind != WF_FD_OTHER)
		return true;
	wf_fmt_init(&text, path, sizeof(path) - 1);
	wf_fmt_str(&text, "/proc/self/fd/");
	wf_fmt_u64(&text, (uint64_t)fd);
	path[text.len] = 0;
	len = sys4(__NR_readlinkat, AT_FDCWD, path, name, sizeof(name));
	for (size_t i = 0; i < nr; i++)
		if (is_name(name, len, waits[i]))
			return true;
	return false;
}

static bool may_wait_to_read(const struct wf_frame *f)
{
	return is_told_by_poll((int)WF_ARG0(f), false);
}

static bool may_wait_to_write(const struct wf_frame *f)
{
	return is_told_by_poll((int)WF_ARG0(f), true);
}

/*
 * A descriptor that must be polled first. Of a terminal the kernel wants more than data: of the controlling one,
 * that the process is not in the background, and VMIN 0 sets a time limit, after which nothing was read.
 */
static long read_polled(struct wf_frame *f, int fd)
{
	struct termios_k tio;
	struct lx_fdwait w;
	long ret;

	if (sys3(__NR_ioctl, fd, TCGETS, &tio) < 0)
		return lx_fdwait_poll_then_call_if(f, fd, EPOLLIN, may_wait_to_read);
	if (lx_tty_is_controlling(fd))
		return lx_tty_read(f, fd);
	if (tio.lflag & ICANON || !tio.cc[VTIME])
		return !(tio.lflag & ICANON) && !tio.cc[VMIN]
			       ? lx_blocking(f, false)
			       : lx_fdwait_poll_then_call(f, fd, EPOLLIN);
	/* With VMIN the limit is for the pauses behind the first byte. */
	lx_fdwait_init(&w, fd, EPOLLIN);
	if (!tio.cc[VMIN] && !lx_fdwait_is_nonblocking(fd)) {
		w.has_deadline = true;
		w.deadline = lx_deadline_in(tio.cc[VTIME] * 100 * WF_MS);
	}
	ret = lx_fdwait_until_ready(&w);
	if (ret == -EAGAIN)
		ret = 0;
	else if (ret == -EINTR)
		ret = -ERESTARTSYS;
	else if (ret >= 0)
		ret = lx_blocking(f, false);
	return lx_fdwait_done(&w, ret);
}

/*
 * One non-blocking transfer of a contiguous buffer. -NO_RWF: not possible for this descriptor. The rest of a
 * write that has got somewhere raises no SIGPIPE on sockets.
 */
static long transfer(int fd, char *buf, size_t len, bool is_write, bool is_rest,
		     enum wf_fd_kind kind)
{
	struct iovec_k iov = { buf, len };
	long ret;

	if (kind == WF_FD_SOCKET)
		return is_write ? sys6(__NR_sendto, fd, buf, len,
				       MSG_DONTWAIT | (is_rest ? MSG_NOSIGNAL : 0), 0, 0)
				: sys6(__NR_recvfrom, fd, buf, len, MSG_DONTWAIT, 0, 0);
	ret = sys6(is_write ? __NR_pwritev2 : __NR_preadv2, fd, &iov, 1, -1, -1, RWF_NOWAIT);
	return ret == -EOPNOTSUPP ? -NO_RWF : ret;
}

static long read_into(struct wf_frame *f, int fd, char *buf, size_t len, enum wf_fd_kind kind)
{
	struct lx_fdwait w;
	long ret;

	lx_fdwait_init(&w, fd, EPOLLIN);
	ret = lx_fdwait_first(&w);
	if (ret < 0)
		return lx_fdwait_done(&w, ret);
	for (;;) {
		ret = LX_TRY(&w, transfer(w.use.fd, buf, len, false, false, kind));
		if (ret == -NO_RWF)
			return read_polled(f, fd);
		if (is_read_over(f, &w, true, len, &ret))
			return ret;
	}
}

/* A part was written before the pipe lost its reader: the part is returned, but SIGPIPE is raised. */
static long write_ended(size_t done, long ret)
{
	if (!done)
		return ret;
	(void)lx_fdwait_check_sigpipe(ret);
	return (long)done;
}

/* What cannot be tried without blocking. */
static long write_polled(struct wf_frame *f, int fd, enum wf_fd_kind kind)
{
	long ret = kind == WF_FD_CHAR ? lx_tty_before_write(fd) : 0;

	return ret < 0 ? ret : lx_fdwait_poll_then_call_if(f, fd, EPOLLOUT, may_wait_to_write);
}

/* A blocking write; it ends when all is written. is_rest: of a call that has written something already. */
static long write_from(struct wf_frame *f, int fd, char *buf, size_t len, bool is_rest,
		       enum wf_fd_kind kind)
{
	struct lx_fdwait w;
	size_t done = 0;
	long ret;

	lx_fdwait_init(&w, fd, EPOLLOUT);
	for (;;) {
		ret = LX_TRY(&w, transfer(w.use.fd, buf + done, len - done, true, is_rest || done,
					  kind));
		if (ret == -NO_RWF)
			return done ? (long)done : write_polled(f, fd, kind);
		if (ret >= 0) {
			done += (size_t)ret;
			if (done == len || !ret || lx_fdwait_is_nonblocking(w.use.fd))
				return lx_fdwait_done(&w, (long)done);
			continue;
		}
		if (ret == -EAGAIN)
			ret = lx_fdwait_park(&w);
		if (ret == -EPERM && !done)
			return lx_blocking(f, false);
		if (ret < 0)
			return write_ended(done, lx_fdwait_done(&w, ret));
	}
}

static bool goes_to_file(enum wf_fd_kind kind)
{
	return kind == WF_FD_FILE || kind == WF_FD_UNKNOWN;
}

long sysc_read(struct wf_frame *f)
{
	int fd = (int)WF_ARG0(f);
	enum wf_fd_kind kind = wf_fd_kind(fd);

	if (goes_to_file(kind) || !WF_ARG2(f))
		return sysc_file_read(f);
	if (kind == WF_FD_SOCKET && lx_sock_has_low_mark(fd))
		return lx_sock_read_marked(f);
	return read_into(f, fd, (char *)WF_ARG1(f), WF_ARG2(f), kind);
}

long sysc_write(struct wf_frame *f)
{
	int fd = (int)WF_ARG0(f);
	enum wf_fd_kind kind = wf_fd_kind(fd);

	if (goes_to_file(kind) || !WF_ARG2(f))
		return lx_fdwait_check_sigpipe(sysc_file_write(f));
	return lx_fdwait_check_sigpipe(
		write_from(f, fd, (char *)WF_ARG1(f), WF_ARG2(f), false, kind));
}

long sysc_readv(struct wf_frame *f)
{
	int fd = (int)WF_ARG0(f);
	enum wf_fd_kind kind = wf_fd_kind(fd);
	struct lx_fdwait w;
	long ret;

	if (goes_to_file(kind) || !WF_ARG2(f))
		return sysc_file_read(f);
	if (kind == WF_FD_SOCKET && lx_sock_has_low_mark(fd))
		return lx_sock_read_marked(f);
	lx_fdwait_init(&w, fd, EPOLLIN);
	for (;;) {
		ret = LX_TRY(&w, sys6(__NR_preadv2, w.use.fd, WF_ARG1(f), WF_ARG2(f), -1, -1,
				      RWF_NOWAIT));
		if (ret == -EOPNOTSUPP)
			return read_polled(f, fd);
		if (is_read_over(f, &w, false, 0, &ret))
			return ret;
	}
}

/* Element by element: no copy of the vector is needed. */
long lx_rw_write_rest(struct wf_frame *f, int fd, enum wf_fd_kind kind, const struct iovec_k *vec,
		      size_t nr, size_t done)
{
	size_t skip = done;

	for (size_t i = 0; i < nr; i++) {
		struct iovec_k v;
		long ret;

		if (lx_fdwait_load_iovec(vec, i, &v) < 0)
			return (long)done;
		if (skip >= v.len) {
			skip -= v.len;
			continue;
		}
		ret = write_from(f, fd, v.base + skip, v.len - skip, true, kind);
		if (ret < 0)
			return write_ended(done, ret);
		done += (size_t)ret;
		if ((size_t)ret < v.len - skip)
			return (long)done;
		skip = 0;
	}
	return (long)done;
}

long lx_rw_vector_bytes(const struct iovec_k *vec, size_t nr)
{
	size_t total = 0;

	for (size_t i = 0; i < nr; i++) {
		struct iovec_k v;

		if (lx_fdwait_load_iovec(vec, i, &v) < 0)
			return -EFAULT;
		total += v.len;
	}
	return (long)total;
}

long sysc_writev(struct wf_frame *f)
{
	int fd = (int)WF_ARG0(f);
	const struct iovec_k *vec = (const struct iovec_k *)WF_ARG1(f);
	enum wf_fd_kind kind = wf_fd_kind(fd);
	struct lx_fdwait w;
	long ret;

	if (goes_to_file(kind) || !WF_ARG2(f))
		return lx_fdwait_check_sigpipe(sysc_file_write(f));
	lx_fdwait_init(&w, fd, EPOLLOUT);
	for (;;) {
		ret = LX_TRY(&w,
			     sys6(__NR_pwritev2, w.use.fd, vec, WF_ARG2(f), -1, -1, RWF_NOWAIT));
		if (ret == -EOPNOTSUPP)
			return lx_fdwait_check_sigpipe(write_polled(f, fd, kind));
		if (ret >= 0)
			break;
		if (ret == -EAGAIN)
			ret = lx_fdwait_park(&w);
		if (ret == -EPERM)
			return lx_blocking(f, false);
		if (ret < 0)
			return lx_fdwait_check_sigpipe(lx_fdwait_done(&w, ret));
	}
	(void)lx_fdwait_done(&w, 0);
	if (ret >= lx_rw_vector_bytes(vec, WF_ARG2(f)) || lx_fdwait_is_nonblocking(fd))
		return ret;
	return lx_rw_write_rest(f, fd, kind, vec, WF_ARG2(f), (size_t)ret);
}

/* Position -1 without flags is readv() and writev(): the only form that can wait. */
static bool is_plain_vector(const struct wf_frame *f)
{
	return WF_ARG3(f) == ~0ull && !WF_ARG5(f);
}

long sysc_preadv2(struct wf_frame *f)
{
	return is_plain_vector(f) ? sysc_readv(f) : sysc_file_read(f);
}

long sysc_pwritev2(struct wf_frame *f)
{
	return is_plain_vector(f) ? sysc_writev(f) : lx_fdwait_check_sigpipe(sysc_file_write(f));
}
