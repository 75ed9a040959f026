// SPDX-License-Identifier: Apache-2.0
/*
 * A process between us and one run: it becomes the reaper of all that the program starts, so that what they used can be
 * told when it is over, and so that nothing is left.
 *
 * See keeper.h. Invariant: when the keeper has reported, nothing that the program started lives.
 */
#include "keeper.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define GRACE_MS 10000 /* for a server that was told to end */

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

/* In the child of the keeper. */
static void become(char **argv, int in, int out, int err)
{
	sigset_t none;

	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)signal(SIGPIPE, SIG_DFL);
	(void)signal(SIGINT, SIG_DFL);
	(void)setsid();
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 ||
	    dup2(err, STDERR_FILENO) < 0)
		_exit(125);
	execvp(argv[0], argv);
	dprintf(STDERR_FILENO, "cannot run %s: %s\n", argv[0], strerror(errno));
	_exit(127);
}

/* Each pass ends what is our child now; what loses its parent by that is our child in the next. */
static void end_all_children(void)
{
	char path[64], text[65536];

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	for (;;) {
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

		if (fd >= 0)
			close(fd);
		text[n > 0 ? n : 0] = '\0';
		for (char *at = text, *end; *at; at = end) {
			pid_t pid = (pid_t)strtol(at, &end, 10);

			if (end == at)
				break;
			(void)kill(pid, SIGKILL);
		}
		if (waitpid(-1, NULL, __WALL) < 0 && errno == ECHILD)
			return;
	}
}

/* Until the program has ended. SIGTERM to us is passed on, and means that it shall. */
static int wait_for(pid_t program)
{
	sigset_t set;
	struct pollfd p = { .events = POLLIN };
	int64_t kill_at = INT64_MAX;
	int status;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	p.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	for (;;) {
		struct signalfd_siginfo info;
		pid_t pid;

		while ((pid = waitpid(-1, &status, WNOHANG | __WALL)) > 0) {
			if (pid == program)
				return status;
		}
		(void)poll(&p, 1, kill_at == INT64_MAX ? -1 : 100);
		while (read(p.fd, &info, sizeof(info)) == sizeof(info)) {
			if (info.ssi_signo == SIGTERM && kill_at == INT64_MAX) {
				kill_at = now_ns() + GRACE_MS * 1000000LL;
				(void)kill(program, SIGTERM);
			}
		}
		if (now_ns() > kill_at)
			(void)kill(program, SIGKILL);
	}
}

static int64_t ns_of(struct timeval tv)
{
	return tv.tv_sec * 1000000000LL + tv.tv_usec * 1000LL;
}

static void keep(char **argv, int in, int out, int err, int report)
{
	struct wf_keeper_report r = { 0 };
	struct rusage used;
	int64_t began;
	pid_t program;

	began = now_ns();
	program = fork();
	if (program == 0)
		become(argv, in, out, err);
	if (write(report, &program, sizeof(program)) != sizeof(program) || program < 0)
		_exit(1);
	r.status = wait_for(program);
	r.wall_ns = now_ns() - began;
	end_all_children();
	(void)getrusage(RUSAGE_CHILDREN, &used);
	r.cpu_ns = ns_of(used.ru_utime) + ns_of(used.ru_stime);
	r.switches = used.ru_nvcsw + used.ru_nivcsw;
	r.memory_bytes = used.ru_maxrss * 1024LL;
	_exit(write(report, &r, sizeof(r)) == sizeof(r) ? 0 : 1);
}

int wf_keeper_start(struct wf_keeper *k, char **argv, int in, int out_fd, int err_fd)
{
	sigset_t set, old;
	pid_t parent = getpid();
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	(void)sigprocmask(SIG_BLOCK, &set, &old);
	k->pid = fork();
	if (k->pid == 0) {
		/* Not SIGKILL: there is somebody to end first. An interrupt is for our parent. */
		(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
		(void)signal(SIGINT, SIG_IGN);
		(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
		if (getppid() != parent)
			_exit(1);
		keep(argv, in, out_fd, err_fd, ends[1]);
	}
	(void)sigprocmask(SIG_SETMASK, &old, NULL);
	close(ends[1]);
	if (k->pid < 0 || read(ends[0], &k->program, sizeof(k->program)) != sizeof(k->program) ||
	    k->program < 0) {
		close(ends[0]);
		return -1;
	}
	k->report = ends[0];
	return 0;
}

void wf_keeper_stop(const struct wf_keeper *k)
{
	(void)kill(k->pid, SIGTERM);
}

bool wf_keeper_take(struct wf_keeper *k, struct wf_keeper_report *out)
{
	bool is_good = read(k->report, out, sizeof(*out)) == sizeof(*out);

	close(k->report);
	(void)waitpid(k->pid, NULL, 0);
	return is_good;
}

/* The keeper goes last: what it leaves would be our parent's. */
void wf_keeper_kill(struct wf_keeper *k)
{
	struct wf_keeper_report ignored;

	(void)kill(k->program, SIGKILL);
	(void)wf_keeper_take(k, &ignored);
}

static int tasks_of(pid_t pid)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	return stat(path, &st) == 0 ? (int)st.st_nlink - 2 : 0;
}

int wf_keeper_kthreads(const struct wf_keeper *k, bool all)
{
	struct dirent *entry;
	int sum = 0;
	DIR *dir;

	if (!all)
		return tasks_of(k->program);
	dir = opendir("/proc");
	while (dir && (entry = readdir(dir))) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (pid > 0 && getsid(pid) == k->program)
			sum += tasks_of(pid);
	}
	if (dir)
		closedir(dir);
	return sum;
}
