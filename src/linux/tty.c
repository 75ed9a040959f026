// SPDX-License-Identifier: Apache-2.0
/*
 * Job control: who is in the background and asks for the controlling terminal is stopped by SIGTTIN or SIGTTOU.
 *
 * The kernel asks whether the calling kernel thread blocks that signal. All of ours do, so it would let reads fail
 * with EIO and everything else pass. Here the same is asked of the thread.
 *
 * Reads are made for real, each on a kernel thread: one that was begun in the foreground must fail when the process
 * is stopped and goes on in the background, and the kernel sees to that by making the call again.
 */
#include "linux/tty.h"
#include "base/fmt.h"
#include "linux/call.h"
#include "linux/doorbell.h"
#include "linux/fdwait.h"
#include "linux/sigwant.h"

#include <fcntl.h>
#include <signal.h>

#define TCSETS 0x5402 /* the first of several up to TCFLSH, with one gap */
#define TCGETA 0x5405
#define TCGETS 0x5401
#define TCFLSH 0x540b
#define TIOCGPGRP 0x540f
#define TIOCSPGRP 0x5410
#define TCSBRKP 0x5425
#define TIOCSBRK 0x5427
#define TIOCCBRK 0x5428
#define TCSETS2 0x402c542b
#define TCSETSF2 0x402c542d
#define TIOCGPTN 0x80045430 /* known to the master's side only, where nobody is in the background */
#define TOSTOP 0x100

#define MAX_ANCESTORS 64
#define STAT_BYTES 200

/* Of the terminal fd; 0 if it is not the controlling one, or has no foreground. */
static int foreground_of(int fd)
{
	int group = 0, number;

	return sys3(__NR_ioctl, fd, TIOCGPGRP, &group) == 0 &&
			       sys3(__NR_ioctl, fd, TIOCGPTN, &number) < 0
		       ? group
		       : 0;
}

bool lx_tty_is_controlling(int fd)
{
	return foreground_of(fd) != 0;
}

/* The parent of a process: the second number behind the name in its stat, which may contain anything. */
static int parent_of(int pid)
{
	char path[32], text[STAT_BYTES + 1];
	int parent = 0, fields = 0;
	struct wf_fmt f;
	long fd, n;

	wf_fmt_init(&f, path, sizeof(path) - 1);
	wf_fmt_str(&f, "/proc/");
	wf_fmt_u64(&f, (uint64_t)pid);
	wf_fmt_str(&f, "/stat");
	path[f.len] = 0;
	fd = sys4(__NR_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return 0;
	n = sys3(__NR_read, fd, text, STAT_BYTES);
	(void)sys_close((int)fd);
	text[n > 0 ? n : 0] = 0;
	while (n > 0 && text[n - 1] != ')')
		n--;
	for (const char *p = text + n; *p && fields <= 2; p++) {
		if (*p == ' ')
			fields++;
		else if (fields == 2)
			parent = parent * 10 + (*p - '0');
	}
	return parent;
}

/*
 * Nobody outside of the group, but in the session, would ever continue it. The kernel asks the parents of all
 * members; we those of our ancestors among them, one of whom the shell has made.
 */
static bool is_orphaned(void)
{
	long group = sys1(__NR_getpgid, 0), session = sys1(__NR_getsid, 0);
	int pid = wf_rt.pid;

	for (int i = 0; i < MAX_ANCESTORS && (pid = parent_of(pid)) > 0; i++)
		if (sys1(__NR_getpgid, pid) != group)
			return sys1(__NR_getsid, pid) != session;
	return true;
}

static bool is_in_background(int fd)
{
	int foreground = foreground_of(fd);

	return foreground && foreground != sys1(__NR_getpgid, 0);
}

/* 0: go ahead. Nobody stops the process between the look and the signal, which would stop it in the foreground. */
static long check(int fd, int sig)
{
	long ret = 0;

	if (!is_in_background(fd))
		return 0;
	wf_spin_lock(&lx.stop_lock);
	if (is_in_background(fd)) {
		if (lx_self()->sig_mask & lx_bit(sig) || lx_signal_is_ignored(sig))
			ret = sig == SIGTTIN ? -EIO : 0;
		else
			ret = is_orphaned() ? -EIO : -ERESTARTSYS;
		if (ret == -ERESTARTSYS)
			(void)sys2(__NR_kill, 0, sig);
	}
	wf_spin_unlock(&lx.stop_lock);
	if (ret == -ERESTARTSYS)
		lx_door_pass();
	return ret;
}

long lx_tty_read(struct wf_frame *f, int fd)
{
	for (bool is_again = false;; is_again = true) {
		long ret = lx_blocking(f, !lx_fdwait_is_nonblocking(fd)), why;

		if (ret != -EIO)
			return ret;
		why = check(fd, SIGTTIN);
		if (why < 0 || is_again)
			return why < 0 ? why : ret;
		/* in the foreground by now, or hung up */
	}
}

long lx_tty_before_write(int fd)
{
	uint32_t tio[16]; /* struct termios of the kernel; the fourth word has the flags */

	if (WF_LIKELY(!foreground_of(fd)) || sys3(__NR_ioctl, fd, TCGETS, tio) < 0 ||
	    !(tio[3] & TOSTOP))
		return 0;
	return check(fd, SIGTTOU);
}

static bool changes_terminal(uint32_t request)
{
	return (request >= TCSETS && request <= TCFLSH && request != TCGETA) ||
	       request == TIOCSPGRP || request == TCSBRKP || request == TIOCSBRK ||
	       request == TIOCCBRK || (request >= TCSETS2 && request <= TCSETSF2);
}

long lx_tty_before_ioctl(int fd, uint32_t request)
{
	long ret;

	if (WF_LIKELY(!changes_terminal(request)))
		return 0;
	ret = check(fd, SIGTTOU);
	return ret == -EIO && request == TIOCSPGRP ? -ENOTTY : ret;
}
