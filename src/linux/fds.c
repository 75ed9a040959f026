// SPDX-License-Identifier: Apache-2.0
/*
 * Calls that make, duplicate, change, send and close descriptors.
 *
 * Called by: table.c. Invariant: what io/facts.c and the poller know of a number is true, so everything that
 * a program can do to a descriptor or to its file passes here. The kernel's part comes first, and our
 * note after it, except where the file may be out of reach afterwards (close, fork, sending it away).
 */
#include "linux/fds.h"
#include "io/epoll_driver.h"
#include "io/facts.h"
#include "io/uses.h"
#include "linux/abi.h"
#include "linux/bind.h"
#include "linux/bindcalls.h"
#include "linux/call.h"
#include "linux/calls.h"
#include "linux/msg.h"
#include "linux/sockopt.h"
#include "linux/tty.h"

#include <fcntl.h>
#include <linux/ioctl.h>
#include <linux/sched.h>
#include <linux/userfaultfd.h>

#define F_OFD_SETLK 37
#define F_OFD_SETLKW 38
#define FIONBIO 0x5421
#define SOL_SOCKET 1
#define SCM_RIGHTS 1
#define AF_INET 2
#define AF_INET6 10
#define SOCK_STREAM 1
#define IPPROTO_TCP 6

#define LOCK_NB 4
#define CLOSE_RANGE_UNSHARE 2
#define CLOSE_RANGE_CLOEXEC 4

/* Locks: who holds one may need our worker to let it go. Most are free: only those that are not cost more. */
long sysc_flock(struct wf_frame *f)
{
	long ret = sys2(__NR_flock, WF_ARG0(f), WF_ARG1(f) | LOCK_NB);

	return ret == -EAGAIN && !(WF_ARG1(f) & LOCK_NB) ? lx_blocking(f, true) : ret;
}

static long lock_file(struct wf_frame *f)
{
	long ret = sys3(__NR_fcntl, WF_ARG0(f), WF_ARG1(f) == F_SETLKW ? F_SETLK : F_OFD_SETLK,
			WF_ARG2(f));

	return ret == -EAGAIN || ret == -EACCES ? lx_blocking(f, true) : ret;
}

long sysc_fcntl(struct wf_frame *f)
{
	int fd = (int)WF_ARG0(f);
	long ret;

	if (WF_ARG1(f) == F_SETLKW || WF_ARG1(f) == F_OFD_SETLKW)
		return lock_file(f);
	if (WF_ARG1(f) == F_SETOWN || WF_ARG1(f) == F_SETOWN_EX)
		return sysc_fcntl_owner(f);
	ret = lx_blocking(f, false);
	switch (WF_ARG1(f)) {
	case F_SETFL:
		wf_fd_changed(fd);
		break;
	case F_NOTIFY:
	case F_SETLEASE:
		/*
		 * The kernel makes the caller the owner, if there is none, and looks it up as a process: a kernel
		 * thread that is not the first is nobody.
		 */
		if (ret == 0 && WF_ARG2(f) != (WF_ARG1(f) == F_NOTIFY ? 0 : F_UNLCK) &&
		    sys2(__NR_fcntl, fd, F_GETOWN) == 0)
			(void)sys3(__NR_fcntl, fd, F_SETOWN, wf_rt.pid);
		break;
	case F_DUPFD:
	case F_DUPFD_CLOEXEC:
		if (ret < 0)
			break;
		wf_fd_shared(fd);
		wf_fd_forget((int)ret);
		break;
	}
	return ret;
}

long sysc_ioctl(struct wf_frame *f)
{
	long ret = lx_tty_before_ioctl((int)WF_ARG0(f), (uint32_t)WF_ARG1(f));

	if (ret == 0)
		ret = lx_blocking(f, false);
	if (ret >= 0 && _IOC_TYPE(WF_ARG1(f)) == UFFDIO)
		lx_bind_all_for_faults(); /* one that was there before we were, or is of /dev/userfaultfd */
	if (WF_ARG1(f) == FIONBIO)
		wf_fd_changed((int)WF_ARG0(f));
	return ret;
}

long sysc_close(struct wf_frame *f)
{
	if (wf_fd_is_own((int)WF_ARG0(f)))
		return -EBADF;
	wf_fd_closing((int)WF_ARG0(f));
	return lx_blocking(f, false); /* SO_LINGER, NFS: may block */
}

long sysc_dup(struct wf_frame *f)
{
	long fd = lx_blocking(f, false);

	if (fd >= 0) {
		wf_fd_shared((int)WF_ARG0(f));
		wf_fd_forget((int)fd);
	}
	return fd;
}

long sysc_dup2(struct wf_frame *f)
{
	long ret;

	if (wf_fd_is_own((int)WF_ARG0(f)) || wf_fd_is_own((int)WF_ARG1(f)))
		return -EBADF;
	if (WF_ARG0(f) == WF_ARG1(f))
		return lx_blocking(f, false);
	wf_fd_shared((int)WF_ARG0(f));
	wf_fd_closing((int)WF_ARG1(f));
	ret = lx_blocking(f, false);
	/* Again: somebody may have waited for the file that had the number until now. */
	wf_fd_forget((int)WF_ARG1(f));
	return ret;
}

/*
 * A process with one thread has its table for itself, unless another has it too, and keeps it. Our kernel threads have the
 * same one, and if it got another they would hold open what it closes.
 */
static bool is_alone(void)
{
	return wf_load_acquire(&lx.nr_threads) == 1 && !lx.shares_files && !wf_fd_is_private();
}

/* Everything in the range but our own: in pieces around them. */
long sysc_close_range(struct wf_frame *f)
{
	uint64_t first = (uint32_t)WF_ARG0(f), last = (uint32_t)WF_ARG1(f), flags = WF_ARG2(f);
	long ret = 0;

	if (first > last || flags & ~(uint64_t)(CLOSE_RANGE_UNSHARE | CLOSE_RANGE_CLOEXEC))
		return -EINVAL;
	if (flags & CLOSE_RANGE_UNSHARE && is_alone())
		flags &= ~(uint64_t)CLOSE_RANGE_UNSHARE;
	if (flags & CLOSE_RANGE_UNSHARE) { /* a table of descriptors of its own from now on */
		ret = lx_bind_for(LX_BIND_STATE);
		if (ret == 0)
			ret = sys1(__NR_unshare, CLONE_FILES);
		if (ret < 0)
			return ret;
		wf_fd_make_private();
	}
	for (uint64_t fd = first; ret == 0 && fd <= last && fd < WF_MAX_FDS; fd++) {
		if (!wf_fd_is_own((int)fd)) {
			if (!(flags & CLOSE_RANGE_CLOEXEC))
				wf_fd_closing((int)fd);
			continue;
		}
		if (fd > first)
			ret = sys3(__NR_close_range, first, fd - 1, flags);
		first = fd + 1;
	}
	return ret == 0 && first <= last ? sys3(__NR_close_range, first, last, flags) : ret;
}

long lx_fds_unshare(struct wf_frame *f)
{
	struct wf_frame rest = *f;
	long ret;

	if (!(WF_ARG0(f) & CLONE_FILES))
		return lx_bind_call(f);
	if (is_alone()) {
		rest.rdi &= ~(uint64_t)CLONE_FILES;
		return rest.rdi ? lx_bind_call(&rest) : 0;
	}
	ret = lx_bind_call(f);
	if (ret == 0)
		wf_fd_make_private();
	return ret;
}

/* Calls that hand out a descriptor: its number may have been somebody else's, closed behind our back. */
long sysc_new_fd(struct wf_frame *f)
{
	long fd = lx_blocking(f, false);

	if (fd >= 0)
		wf_fd_forget((int)fd);
	return fd;
}

long sysc_socket(struct wf_frame *f)
{
	long fd = lx_raw(f);

	if (fd < 0)
		return fd;
	wf_fd_made((int)fd, WF_ARG1(f) & O_NONBLOCK);
	if ((WF_ARG0(f) == AF_INET || WF_ARG0(f) == AF_INET6) && (WF_ARG1(f) & 15) == SOCK_STREAM &&
	    (!WF_ARG2(f) || WF_ARG2(f) == IPPROTO_TCP))
		wf_fd_note_tcp((int)fd, true);
	return fd;
}

static long made_two(const int *user, bool is_nonblocking, long ret)
{
	int fds[2];

	if (ret < 0 || wf_arch_copy(fds, user, sizeof(fds)) < 0)
		return ret;
	wf_fd_made(fds[0], is_nonblocking);
	wf_fd_made(fds[1], is_nonblocking);
	return ret;
}

long sysc_pipe(struct wf_frame *f)
{
	bool is_nonblocking = f->nr == __NR_pipe2 && WF_ARG1(f) & O_NONBLOCK;

	return made_two((const int *)WF_ARG0(f), is_nonblocking, lx_raw(f));
}

long sysc_socketpair(struct wf_frame *f)
{
	return made_two((const int *)WF_ARG3(f), WF_ARG1(f) & O_NONBLOCK, lx_raw(f));
}

/* For every descriptor in a message. Bad addresses are the kernel's to complain about. */
static void each_passed(const struct msghdr_k *user, void (*note)(int fd))
{
	struct msghdr_k m;
	struct cmsghdr_k c;

	if (wf_arch_copy(&m, user, sizeof(m)) < 0 || !m.control)
		return;
	for (size_t at = 0; at + sizeof(c) <= m.controllen; at += (c.len + 7) & ~7ul) {
		int fd;

		if (wf_arch_copy(&c, m.control + at, sizeof(c)) < 0 || c.len < sizeof(c) ||
		    c.len > m.controllen - at)
			return;
		if (c.level != SOL_SOCKET || c.type != SCM_RIGHTS)
			continue;
		for (size_t i = sizeof(c); i + sizeof(fd) <= c.len; i += sizeof(fd))
			if (wf_arch_copy(&fd, m.control + at + i, sizeof(fd)) == 0)
				note(fd);
	}
}

void lx_fd_sent(const struct msghdr_k *user)
{
	each_passed(user, wf_fd_shared);
}

void lx_fd_received(const struct msghdr_k *user)
{
	each_passed(user, wf_fd_forget);
}

long sysc_userfaultfd(struct wf_frame *f)
{
	long ret = sysc_new_fd(f);

	if (ret >= 0)
		lx_bind_all_for_faults();
	return ret;
}
