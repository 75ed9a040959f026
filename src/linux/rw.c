// SPDX-License-Identifier: Apache-2.0
/*
 * read, write and their vectors.
 *
 * Each is tried without blocking first: MSG_DONTWAIT on sockets, RWF_NOWAIT elsewhere; the descriptor's own
 * flags are never changed. If it would block and the program did not ask for O_NONBLOCK, the thread parks
 * until the descriptor is ready. A call that cannot be tried without blocking (a terminal, an old kernel) is made for
 * real, after a poll. Files go to the kernel on the thread itself; see file.c.
 */
#include "linux/rw.h"
#include "base/fmt.h"
#include "linux/call.h"
#include "linux/calls.h"
#include "linux/deadline.h"
#include "linux/fdwait.h"
#include "linux/lowmark.h"
#include "linux/msg.h"
#include "linux/sigwant.h"
#include "linux/tty.h"

#include <fcntl.h>
#include <sys/epoll.h>

#define NO_RWF 0x100 /* this kind of file does not know RWF_NOWAIT */
#define PIPE_BUF 4096
#define MAX_VECTOR 1024u

/* (a) The kernel (before 6.5) does not know RWF_NOWAIT of pipes. */
static bool pipes_lack_nowait;

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
		w->is_drained = true;
	if (*ret == -EAGAIN)
		note_empty(w);
	return lx_fdwait_is_over(w, f, ret);
}

struct termios_k {
	uint32_t iflag, oflag, cflag, lflag;
	uint8_t line, cc[19];
};

#define TCGETS 0x5401
#define FIONREAD 0x541b
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

/* Of length and place only: what lies there shows when it is used. */
static bool is_memory(uint64_t start, uint64_t len)
{
	return (int64_t)start >= 0 && (int64_t)len >= 0 && (int64_t)(start + len) >= 0;
}

static bool is_open_for(int fd, bool is_write)
{
	long flags = sys2(__NR_fcntl, fd, F_GETFL);

	return flags >= 0 && (flags & O_ACCMODE) != (is_write ? O_RDONLY : O_WRONLY);
}

/*
 * False where the kernel sees at once that the call is wrong: it is to say so, instead of a wait for what never comes.
 * Counters and the like transfer eight bytes and more.
 */
static bool is_sound(const struct wf_frame *f, bool is_write)
{
	int fd = (int)WF_ARG0(f);
	long bytes = (long)WF_ARG2(f);

	if (f->nr != __NR_read && f->nr != __NR_write) {
		if (WF_ARG2(f) > MAX_VECTOR)
			return false;
		bytes = lx_rw_vector_bytes((const struct iovec_k *)WF_ARG1(f), WF_ARG2(f));
	} else if (!is_memory(WF_ARG1(f), WF_ARG2(f))) {
		return false;
	}
	return is_open_for(fd, is_write) &&
	       bytes >= (wf_fd_kind(fd) == WF_FD_OTHER ? (long)sizeof(uint64_t) : 0);
}

static bool may_wait_to_read(const struct wf_frame *f)
{
	return is_told_by_poll((int)WF_ARG0(f), false) && is_sound(f, false);
}

static bool may_wait_to_write(const struct wf_frame *f)
{
	return is_told_by_poll((int)WF_ARG0(f), true) && is_sound(f, true);
}

static long write_for_real(int fd, char *buf, size_t len)
{
	long args[6] = { fd, (long)buf, (long)len };

	return lx_blocking_call(__NR_write, args, false, LX_RESTART_SYS);
}

/*
 * A descriptor that must be polled first. Of a terminal the kernel wants more than data: of the controlling one,
 * that the process is not in the background, and VMIN 0 sets a time limit, after which nothing was read.
 */
static long read_polled(struct wf_frame *f, int fd, enum wf_fd_kind kind)
{
	struct termios_k tio;
	struct lx_fdwait w;
	long ret;

	if (kind == WF_FD_PIPE || sys3(__NR_ioctl, fd, TCGETS, &tio) < 0)
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

/* -NO_RWF: not possible for this descriptor. */
static long try_vector(int fd, const struct iovec_k *vec, size_t nr, bool is_write,
		       enum wf_fd_kind kind)
{
	long ret;

	if (kind == WF_FD_PIPE && wf_load_relaxed(&pipes_lack_nowait))
		return -NO_RWF;
	ret = is_write ? LX_SEND(fd, sys6(__NR_pwritev2, fd, vec, nr, -1, -1, RWF_NOWAIT))
		       : sys6(__NR_preadv2, fd, vec, nr, -1, -1, RWF_NOWAIT);
	if (WF_LIKELY(ret != -EOPNOTSUPP))
		return ret;
	if (kind == WF_FD_PIPE)
		wf_store_relaxed(&pipes_lack_nowait, true);
	return -NO_RWF;
}

/*
 * One non-blocking transfer of a contiguous buffer, or -NO_RWF. The rest of a write that has got somewhere raises no
 * SIGPIPE on sockets.
 */
static long transfer(int fd, char *buf, size_t len, bool is_write, bool is_rest,
		     enum wf_fd_kind kind)
{
	struct iovec_k iov = { buf, len };

	if (kind == WF_FD_SOCKET)
		return is_write ? LX_SEND(fd,
					  sys6(__NR_sendto, fd, buf, len,
					       MSG_DONTWAIT | (is_rest ? MSG_NOSIGNAL : 0), 0, 0))
				: sys6(__NR_recvfrom, fd, buf, len, MSG_DONTWAIT, 0, 0);
	return try_vector(fd, &iov, 1, is_write, kind);
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
			return read_polled(f, fd, kind);
		if (is_read_over(f, &w, true, len, &ret))
			return ret;
	}
}

/* If a part was written before the pipe lost its reader, the part is returned, but SIGPIPE is raised. */
static long write_ended(size_t done, long ret)
{
	(void)lx_fdwait_check_sigpipe(ret);
	return done ? (long)done : ret;
}

/* Without O_NONBLOCK a write to it ends early for a signal or an error only. */
static bool takes_all(int fd, enum wf_fd_kind kind)
{
	struct termios_k tio;

	return kind == WF_FD_PIPE ||
	       (kind == WF_FD_CHAR && sys3(__NR_ioctl, fd, TCGETS, &tio) == 0);
}

/*
 * How much the kernel takes at once: a pipe that is empty what it can hold, and PIPE_BUF where poll() says that it takes
 * something. Others are asked to take all.
 */
static size_t room_of(int fd, size_t len, enum wf_fd_kind kind)
{
	int held = 0;
	long size = 0;

	if (kind != WF_FD_PIPE || len <= PIPE_BUF)
		return len;
	if (sys3(__NR_ioctl, fd, FIONREAD, &held) == 0 && held == 0)
		size = sys2(__NR_fcntl, fd, F_GETPIPE_SZ);
	return WF_MIN(len, WF_MAX((size_t)WF_MAX(size, 0), (size_t)PIPE_BUF));
}

/* Has a write of len bytes that did done of them ended where the program made none of it end? */
static bool is_cut_short(int fd, size_t done, size_t len, enum wf_fd_kind kind)
{
	return done < len && takes_all(fd, kind) && !lx_fdwait_is_nonblocking(fd) &&
	       !lx_signal_is_waiting(lx_self());
}

/*
 * It cannot be tried without blocking: when poll() says that something can be written, the real call. One that blocks
 * all the same is interrupted, so that its worker does not wait, and may have written a part: the rest follows.
 */
static long write_polled(int fd, char *buf, size_t len, bool is_rest, enum wf_fd_kind kind)
{
	struct lx_fdwait w;
	size_t done = 0;
	bool is_ready;
	long ret = kind == WF_FD_CHAR && !is_rest ? lx_tty_before_write(fd) : 0;

	if (ret < 0)
		return ret;
	lx_fdwait_init(&w, fd, EPOLLOUT);
	is_ready = lx_fdwait_is_ready(fd, EPOLLOUT);
	if ((!is_ready && (!is_told_by_poll(fd, true) || !is_open_for(fd, true) ||
			   !is_memory((uintptr_t)buf, len))) ||
	    (len > PIPE_BUF && lx_fdwait_is_nonblocking(fd)))
		return write_for_real(fd, buf, len);
	do {
		ret = is_ready ? 1 : lx_fdwait_until_ready(&w);
		is_ready = false;
		if (ret == 0) {
			ret = write_for_real(w.use.fd, buf + done, len - done);
		} else if (ret > 0) {
			long args[6] = { w.use.fd, (long)(buf + done),
					 (long)room_of(w.use.fd, len - done, kind) };

			ret = lx_breakable_call(__NR_write, args);
		}
		if (ret > 0)
			done += (size_t)ret;
	} while (ret == -EINTR || (ret > 0 && is_cut_short(w.use.fd, done, len, kind)));
	return write_ended(done, lx_fdwait_done(&w, ret));
}

/* A blocking write; it ends when all is written. is_rest: of a call that has written something already. */
static long write_from(int fd, char *buf, size_t len, bool is_rest, enum wf_fd_kind kind)
{
	struct lx_fdwait w;
	size_t done = 0;
	long ret;

	lx_fdwait_init(&w, fd, EPOLLOUT);
	for (;;) {
		ret = LX_TRY(&w, transfer(w.use.fd, buf + done, len - done, true, is_rest || done,
					  kind));
		if (ret == -NO_RWF)
			return done ? (long)done : write_polled(fd, buf, len, is_rest, kind);
		if (ret >= 0) {
			done += (size_t)ret;
			if (done == len || !ret || lx_fdwait_is_nonblocking(w.use.fd))
				return lx_fdwait_done(&w, (long)done);
			continue;
		}
		if (ret == -EAGAIN)
			ret = lx_fdwait_park(&w);
		if (ret == -EPERM && !done)
			return write_for_real(fd, buf, len);
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
	if (kind == WF_FD_SOCKET && lx_lowmark_wanted(fd, 0))
		return lx_lowmark_read(f);
	return read_into(f, fd, (char *)WF_ARG1(f), WF_ARG2(f), kind);
}

long sysc_write(struct wf_frame *f)
{
	int fd = (int)WF_ARG0(f);
	enum wf_fd_kind kind = wf_fd_kind(fd);

	if (goes_to_file(kind) || !WF_ARG2(f))
		return lx_fdwait_check_sigpipe(sysc_file_write(f));
	return write_from(fd, (char *)WF_ARG1(f), WF_ARG2(f), false, kind);
}

long sysc_readv(struct wf_frame *f)
{
	int fd = (int)WF_ARG0(f);
	enum wf_fd_kind kind = wf_fd_kind(fd);
	struct lx_fdwait w;
	long ret;

	if (goes_to_file(kind) || !WF_ARG2(f))
		return sysc_file_read(f);
	if (kind == WF_FD_SOCKET && lx_lowmark_wanted(fd, 0))
		return lx_lowmark_read(f);
	lx_fdwait_init(&w, fd, EPOLLIN);
	for (;;) {
		ret = LX_TRY(&w, try_vector(w.use.fd, (const struct iovec_k *)WF_ARG1(f),
					    WF_ARG2(f), false, kind));
		if (ret == -NO_RWF)
			return read_polled(f, fd, kind);
		if (is_read_over(f, &w, false, 0, &ret))
			return ret;
	}
}

/* Element by element: no copy of the vector is needed. */
long lx_rw_write_rest(int fd, enum wf_fd_kind kind, const struct iovec_k *vec, size_t nr,
		      size_t done)
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
		ret = write_from(fd, v.base + skip, v.len - skip, true, kind);
		if (ret < 0)
			return done ? (long)done : ret;
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

/* As write_polled(). Up to PIPE_BUF bytes go to a pipe in one piece. */
static long writev_polled(struct wf_frame *f, int fd, enum wf_fd_kind kind)
{
	const struct iovec_k *vec = (const struct iovec_k *)WF_ARG1(f);
	size_t nr = WF_ARG2(f);
	long total = nr <= MAX_VECTOR ? lx_rw_vector_bytes(vec, nr) : -EINVAL;
	long ret = kind == WF_FD_CHAR ? lx_tty_before_write(fd) : 0;

	if (ret < 0)
		return ret;
	if (total > PIPE_BUF && kind == WF_FD_PIPE && !lx_fdwait_is_nonblocking(fd))
		return lx_rw_write_rest(fd, kind, vec, nr, 0);
	ret = lx_fdwait_poll_then_call_if(f, fd, EPOLLOUT, may_wait_to_write);
	if (ret > 0 && total > 0 && is_cut_short(fd, (size_t)ret, (size_t)total, kind))
		ret = lx_rw_write_rest(fd, kind, vec, nr, (size_t)ret);
	return ret;
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
		ret = LX_TRY(&w, try_vector(w.use.fd, vec, WF_ARG2(f), true, kind));
		if (ret == -NO_RWF)
			return lx_fdwait_check_sigpipe(writev_polled(f, fd, kind));
		if (ret >= 0)
			break;
		if (ret == -EAGAIN)
			ret = lx_fdwait_park(&w);
		if (ret == -EPERM)
			return lx_blocking(f, false);
		if (ret < 0)
			return lx_fdwait_check_sigpipe(lx_fdwait_done(&w, ret));
	}
	(void)lx_fdwait_done(&w, ret);
	if (ret >= lx_rw_vector_bytes(vec, WF_ARG2(f)) || lx_fdwait_is_nonblocking(fd))
		return ret;
	return lx_rw_write_rest(fd, kind, vec, WF_ARG2(f), (size_t)ret);
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
