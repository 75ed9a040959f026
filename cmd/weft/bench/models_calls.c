// SPDX-License-Identifier: Apache-2.0
/*
 * Counts the system calls of a process, all its threads together, while something happens.
 *
 * Called by: models_pair.c, in a run of its own: a traced program is many times slower. ptrace, since the kernel's own
 * counter (raw_syscalls:sys_enter) is for the privileged.
 *
 * Counting begins when the server is idle, every thread inside a call: those calls were made before. A server that
 * has made so many calls by then that it cannot be about to idle never does, and is counted from there. In the same way
 * it ends when the server idles again.
 */
#include <errno.h>
#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/models.h"

#define SYSCALL_STOP (SIGTRAP | 0x80)
#define SETTLE_CALLS(nr_threads) (1000 + 10 * (nr_threads))

struct counter {
	int nr_threads; /* traced */
	int nr_inside;  /* of them, in a system call */
	long long nr_calls;
};

/* Take every thread that is not ours yet. Returns how many, or -1: we may not. */
static int seize(pid_t pid)
{
	const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL;
	struct dirent *entry;
	char path[64];
	int nr = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	while (dir && nr >= 0 && (entry = readdir(dir))) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (tid <= 0)
			continue;
		if (ptrace(PTRACE_SEIZE, tid, NULL, options) == 0) {
			(void)ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
			nr++;
		} else if (errno != ESRCH && nr == 0) {
			nr = -1;
		}
	}
	if (dir)
		closedir(dir);
	return nr;
}

/* One stop of one thread: note what it is, and let it go on. */
static void stopped(struct counter *c, pid_t tid, int status)
{
	struct __ptrace_syscall_info info = { .op = PTRACE_SYSCALL_INFO_NONE };
	int sig = WSTOPSIG(status);

	if (sig == SYSCALL_STOP) {
		(void)ptrace(PTRACE_GET_SYSCALL_INFO, tid, sizeof(info), &info);
		if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
			c->nr_calls++;
			c->nr_inside++;
		} else if (info.op == PTRACE_SYSCALL_INFO_EXIT) {
			c->nr_inside--;
		}
		sig = 0;
	} else if (status >> 16 == PTRACE_EVENT_CLONE) {
		c->nr_threads++;
		sig = 0;
	} else if (status >> 16) {
		sig = 0; /* our own interruption, or a new thread's first stop */
	}
	(void)ptrace(PTRACE_SYSCALL, tid, NULL, (long)sig);
}

long long wf_models_calls_count(pid_t server, int cpu, pid_t until, void (*go)(void *),
				void *argument)
{
	struct counter c = { 0 };
	bool has_begun = false, never_idles = false, has_ended = false;

	c.nr_threads = seize(server);
	if (c.nr_threads <= 0)
		return -1;
	/*
	 * Where the server is, a stop is a switch and not a wake-up of another processor. Not before it has been
	 * interrupted: one that never sleeps and has a real-time policy would let nobody in.
	 */
	wf_models_pin(cpu);
	for (;;) {
		int status;
		pid_t tid = waitpid(-1, &status, __WALL);

		if (tid < 0 && errno == EINTR)
			continue;
		if (tid < 0)
			return -1;
		if (WIFSTOPPED(status))
			stopped(&c, tid, status);
		else if (tid == until)
			has_ended = true;
		else if (tid == server)
			return WF_MODELS_CALLS_DEAD;
		else
			c.nr_threads--;
		if (!has_begun && c.nr_calls > SETTLE_CALLS(c.nr_threads))
			never_idles = true;
		if (!never_idles && c.nr_inside < c.nr_threads)
			continue;
		if (has_ended)
			return c.nr_calls;
		if (!has_begun) {
			has_begun = true;
			c.nr_calls = 0;
			go(argument);
		}
	}
}
