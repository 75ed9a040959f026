// SPDX-License-Identifier: Apache-2.0
/*
 * The one place in which `weft watch` waits, and the processes that it starts.
 *
 * Called by: all of this folder. Invariant: every child is reaped here, and only here, so a process ID that is not marked as over
 * is that of a process of ours.
 */
#include "watch/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "text.h"

#define COPY_BYTES 4096 /* a pipe that is ready to be written has room for as many */
#define HELPER_FILE_BYTES (64ull << 20)
#define HOOK_LIMIT (30 * WF_WATCH_S)

bool wf_watch_begin(struct wf_watch *w)
{
	static const int taken[] = { SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2 };
	int ends[2];
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
		sigaddset(&set, taken[i]);
	if (signal(SIGCHLD, SIG_DFL) == SIG_ERR || sigprocmask(SIG_BLOCK, &set, &w->old_mask) < 0)
		return false;
	w->had_sigpipe_ignored = signal(SIGPIPE, SIG_IGN) == SIG_IGN;
	w->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (w->signals < 0 || pipe2(ends, O_CLOEXEC) < 0)
		return false;
	(void)fcntl(ends[0], F_SETFL, O_NONBLOCK); /* of our end alone */
	w->err_in = ends[0];
	w->err_out = ends[1];
	w->kill_at = WF_WATCH_NEVER;
	/* A process that a hook of --process leaves behind is nobody's child, and goes on. */
	return w->process || prctl(PR_SET_CHILD_SUBREAPER, 1) == 0;
}

void wf_watch_restore(const struct wf_watch *w)
{
	if (!w->had_sigpipe_ignored)
		(void)signal(SIGPIPE, SIG_DFL);
	(void)sigprocmask(SIG_SETMASK, &w->old_mask, NULL);
}

static void reap(struct wf_watch *w)
{
	pid_t pid;
	int status;

	while ((pid = waitpid(-1, &status, WNOHANG | __WALL)) > 0) {
		if (pid == w->child && !w->is_child_over) {
			w->is_child_over = true;
			w->child_status = status;
		} else if (pid == w->helper && !w->is_helper_over) {
			w->is_helper_over = true;
			w->helper_status = status;
		}
	}
}

/* A signal that the terminal sent to us it has sent to the child, too. Without a child of ours there is nobody to pass it on to. */
static void take_signal(struct wf_watch *w, const struct signalfd_siginfo *info)
{
	int sig = (int)info->ssi_signo;

	if (sig == SIGCHLD)
		return;
	if (w->child && !w->is_child_over && info->ssi_code != SI_KERNEL)
		(void)kill(w->child, sig);
	if (w->is_ending || (sig != SIGTERM && sig != SIGINT && !w->foreign))
		return;
	w->is_ending = true;
	w->ended_by = sig;
	w->kill_at = wf_watch_now() + w->grace_ns;
}

static void take_signals(struct wf_watch *w)
{
	struct signalfd_siginfo info;

	while (read(w->signals, &info, sizeof(info)) == sizeof(info))
		take_signal(w, &info);
	reap(w);
}

static void keep_tail(struct wf_watch *w, const char *text, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		w->tail[w->tail_bytes++ % WF_WATCH_TAIL_BYTES] = text[i];
}

/* One piece of the child's standard error. False: there is none now. */
static bool copy_err(struct wf_watch *w)
{
	char text[COPY_BYTES];
	ssize_t n = read(w->err_in, text, sizeof(text)), done = 0, wrote;

	if (n <= 0)
		return false;
	keep_tail(w, text, (size_t)n);
	while (!w->is_err_gone && done < n) {
		wrote = write(STDERR_FILENO, text + done, (size_t)(n - done));
		if (wrote < 0 && errno == EAGAIN)
			(void)poll(&(struct pollfd){ .fd = STDERR_FILENO, .events = POLLOUT }, 1,
				   100);
		else if (wrote < 0)
			w->is_err_gone = errno != EINTR;
		else
			done += wrote;
	}
	return true;
}

static bool may_write_err(struct wf_watch *w)
{
	struct pollfd p = { .fd = STDERR_FILENO, .events = POLLOUT };

	if (!w->is_err_gone && poll(&p, 1, 0) == 1 && (p.revents & (POLLERR | POLLNVAL)))
		w->is_err_gone = true;
	return w->is_err_gone || (p.revents & POLLOUT);
}

static void kill_late(struct wf_watch *w)
{
	if (wf_watch_now() < w->kill_at || !w->child || w->is_child_over)
		return;
	(void)kill(w->child, SIGKILL);
	w->was_killed = true;
	w->kill_at = WF_WATCH_NEVER;
}

static int milliseconds_until(int64_t deadline)
{
	int64_t left = deadline - wf_watch_now();

	if (deadline == WF_WATCH_NEVER)
		return -1;
	if (left <= 0)
		return 0;
	return left > 3600 * WF_WATCH_S ? 3600 * 1000 : (int)(left / WF_WATCH_MS + 1);
}

/*
 * The child's standard error is read only when ours takes it: a reader that is slow there slows the child, as without us, but
 * not us.
 */
void wf_watch_round(struct wf_watch *w, int64_t deadline)
{
	struct pollfd p[6] = {
		{ .fd = w->signals, .events = POLLIN },
		{ .fd = w->err_in, .events = POLLIN },
		{ .fd = -1, .events = POLLOUT },
		{ .fd = w->door, .events = POLLIN },
		{ .fd = w->notify, .events = POLLIN },
		{ .fd = w->names ? w->names->wake : -1, .events = POLLIN },
	};
	int64_t until = w->kill_at < deadline ? w->kill_at : deadline;
	uint64_t nr;

	if (poll(&p[1], 1, 0) == 1 && !may_write_err(w)) {
		p[1].fd = -1;
		p[2].fd = STDERR_FILENO;
	}
	(void)poll(p, 6, milliseconds_until(until));
	/* Before the reaping: once a sender is gone nobody knows whose child it was. */
	wf_watch_notify_pass(w);
	if (w->names)
		wf_watch_names_take(w->names);
	take_signals(w);
	if (p[1].fd >= 0 && (p[1].revents & POLLIN) && may_write_err(w))
		(void)copy_err(w);
	if (w->door >= 0)
		(void)!read(w->door, &nr, sizeof(nr)); /* it has woken us, which is all */
	kill_late(w);
}

void wf_watch_drain(struct wf_watch *w)
{
	/* A pipe holds no more than this, however many still write. */
	for (size_t i = 0; i < (1u << 20) / COPY_BYTES && may_write_err(w) && copy_err(w); i++)
		;
}

static int wait_for_helper(struct wf_watch *w, int64_t limit_ns)
{
	int64_t until = wf_watch_now() + limit_ns;
	bool was_ending = w->is_ending, was_killed = false;

	while (!w->is_helper_over) {
		wf_watch_round(w, until);
		if (was_killed || w->is_helper_over ||
		    (wf_watch_now() < until && (was_ending || !w->is_ending)))
			continue;
		(void)kill(w->helper, SIGKILL);
		was_killed = true;
		until = WF_WATCH_NEVER;
	}
	w->helper = 0;
	return was_killed ? -1 : w->helper_status;
}

int wf_watch_call(struct wf_watch *w, void (*function)(void *arg), void *arg, int64_t limit_ns)
{
	pid_t parent = getpid(), pid = fork();

	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		wf_watch_restore(w);
		function(arg);
		_exit(0);
	}
	if (pid < 0)
		return -1;
	w->is_helper_over = false;
	w->helper = pid;
	return wait_for_helper(w, limit_ns);
}

struct program {
	char *const *argv;
	int out;
};

static void become(void *arg)
{
	const struct program *p = arg;
	const struct rlimit files = { HELPER_FILE_BYTES, HELPER_FILE_BYTES };

	if (p->out >= 0) {
		(void)setrlimit(RLIMIT_FSIZE, &files);
		(void)signal(SIGXFSZ, SIG_IGN);
		if (dup2(p->out, STDOUT_FILENO) < 0 || dup2(p->out, STDERR_FILENO) < 0)
			_exit(125);
	}
	execvp(p->argv[0], p->argv);
	_exit(127);
}

int wf_watch_run(struct wf_watch *w, char *const *argv, int out, int64_t limit_ns)
{
	struct program p = { argv, out };

	return wf_watch_call(w, become, &p, limit_ns);
}

/*
 * The process that passes on the locks of a program that was killed: it ends when that is done, and is not to be disturbed
 * over it.
 */
static bool is_heir(pid_t pid)
{
	char path[64], name[16] = "";
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	if (read(fd, name, sizeof(name) - 1) < 0)
		name[0] = '\0';
	close(fd);
	return strcmp(name, "weft-heir\n") == 0;
}

/* Each pass tells those that are our children now; a process that loses its parent by that is our child in the next. */
static void tell_children(int sig)
{
	char path[64], text[65536];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	for (char *at = text, *end; *at; at = end) {
		pid_t pid = (pid_t)strtol(at, &end, 10);

		if (end == at)
			return;
		if (sig == SIGKILL || !is_heir(pid))
			(void)kill(pid, sig);
	}
}

static bool has_children(void)
{
	siginfo_t info;

	return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0;
}

void wf_watch_end_all(struct wf_watch *w)
{
	int64_t until = wf_watch_now() + w->grace_ns;
	bool is_late = false;

	for (reap(w); has_children(); reap(w)) {
		tell_children(is_late ? SIGKILL : SIGTERM);
		wf_watch_round(w, is_late ? wf_watch_now() + 100 * WF_WATCH_MS : until);
		is_late |= wf_watch_now() >= until;
	}
}

void wf_watch_say(const struct wf_watch *w, pid_t pid, const char *format, ...)
{
	struct pollfd p = { .fd = STDERR_FILENO, .events = POLLOUT };
	char text[2048], line[2048], when[32];
	time_t now = time(NULL);
	struct tm tm;
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	wf_text_clean(line, sizeof(line), text);
	if (!localtime_r(&now, &tm) || !strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%S", &tm))
		when[0] = '\0';
	if (poll(&p, 1, 0) == 1 && (p.revents & POLLOUT))
		dprintf(STDERR_FILENO, "%s %s[%d]: %s\n", when, w->name, (int)pid, line);
}

void wf_watch_tell_hook(struct wf_watch *w, const struct wf_watch_event *e, char *const *argv)
{
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", (int)e->pid);
	if (setenv("WEFT_WATCH_NAME", w->name, 1) < 0 || setenv("WEFT_WATCH_PID", pid, 1) < 0 ||
	    setenv("WEFT_WATCH_EVENT", e->kind, 1) < 0 ||
	    setenv("WEFT_WATCH_WHAT", e->what, 1) < 0 ||
	    setenv("WEFT_WATCH_FOLDER", e->saved, 1) < 0 ||
	    wf_watch_run(w, argv, -1, HOOK_LIMIT) != 0)
		wf_watch_say(w, e->pid, "the hook %s failed", argv[0]);
	(void)unsetenv("WEFT_WATCH_NAME");
	(void)unsetenv("WEFT_WATCH_PID");
	(void)unsetenv("WEFT_WATCH_EVENT");
	(void)unsetenv("WEFT_WATCH_WHAT");
	(void)unsetenv("WEFT_WATCH_FOLDER");
}
