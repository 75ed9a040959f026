// SPDX-License-Identifier: Apache-2.0
/*
 * Processes that a thread makes by clone(), by hand, with a stack of their own or with its memory or descriptors in
 * common: each has the thread's signal mask, policy and nice value, and the program's handlers; the program stays whole.
 */
#include <sched.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "check.h"

#define STACK_BYTES (128 << 10)
#define NICE 3
#define STATUS 5

extern char **environ;

static const int kinds[] = {
	0,
	CLONE_VM,
	CLONE_FILES,
	CLONE_VM | CLONE_FILES | CLONE_FS,
	CLONE_VM | CLONE_SIGHAND,
	CLONE_VM | CLONE_VFORK,
};
#define NR_KINDS (sizeof(kinds) / sizeof(kinds[0]))

static char *stack;
static int *is_up;                             /* in memory that all share */
static char *volatile bad_address = (char *)8; /* volatile: unknown to the compiler */

static int run(int (*fn)(void *), int flags)
{
	int status = -1;
	pid_t pid = (pid_t)CHECK_SYS(clone(fn, stack + STACK_BYTES, flags | SIGCHLD, NULL));

	CHECK_EQ(waitpid(pid, &status, __WALL), pid);
	return status;
}

static void exits(int (*fn)(void *), int flags, int want)
{
	int status = run(fn, flags);

	CHECK(WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), want);
}

static int waits(void *arg)
{
	(void)arg;
	STORE(is_up, 1);
	while (pause() == -1)
		;
	return 0;
}

static void dies_by_signal(int flags)
{
	int status = 0;
	pid_t pid;

	STORE(is_up, 0);
	pid = (pid_t)CHECK_SYS(clone(waits, stack + STACK_BYTES, flags | SIGCHLD, NULL));
	while (!LOAD(is_up))
		sched_yield();
	CHECK_SYS(kill(pid, SIGTERM));
	CHECK_EQ(waitpid(pid, &status, __WALL), pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

static int nr_blocked(void *arg)
{
	sigset_t mask;
	int nr = 0;

	(void)arg;
	sigprocmask(SIG_BLOCK, NULL, &mask);
	for (int sig = 1; sig <= SIGRTMAX; sig++)
		nr += sigismember(&mask, sig) == 1;
	return sigismember(&mask, SIGUSR1) == 1 ? 100 + nr : nr;
}

static int nice_and_policy(void *arg)
{
	(void)arg;
	return getpriority(PRIO_PROCESS, 0) * 10 + sched_getscheduler(0);
}

static void on_fault(int sig)
{
	(void)sig;
	_exit(STATUS);
}

static int faults(void *arg)
{
	(void)arg;
	*bad_address = 1;
	return 0;
}

static void *nothing(void *arg)
{
	return arg;
}

static int makes_a_thread(void *arg)
{
	(void)arg;
	join(start(nothing, NULL));
	return STATUS;
}

/* No stack of its own: it goes on here, with a copy of the memory but the same descriptors. */
static void shares_files(void)
{
	int status = -1, fds[2];
	pid_t pid = (pid_t)CHECK_SYS(syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0));
	char c = 0;

	if (pid == 0) {
		join(start(nothing, NULL));
		_exit(STATUS);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == STATUS);
	/* Waiting still works here. */
	CHECK_SYS(pipe(fds));
	sleep_ns(MS);
	CHECK_EQ(write(fds[1], "x", 1), 1);
	CHECK_EQ(read(fds[0], &c, 1), 1);
	close(fds[0]);
	close(fds[1]);
}

static void inherited(void)
{
	struct sched_param none = { 0 };
	char *const argv[] = { "sh", "-c", "test $(nice) = 3", NULL };
	int status = -1;
	pid_t pid;

	CHECK_SYS(setpriority(PRIO_PROCESS, 0, NICE));
	CHECK_SYS(sched_setscheduler(0, SCHED_BATCH, &none));
	for (size_t i = 0; i < NR_KINDS; i++)
		exits(nice_and_policy, kinds[i], NICE * 10 + SCHED_BATCH);
	pid = fork();
	if (pid == 0)
		_exit(nice_and_policy(NULL));
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(WEXITSTATUS(status), NICE * 10 + SCHED_BATCH);
	pid = vfork();
	if (pid == 0)
		_exit(nice_and_policy(NULL));
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(WEXITSTATUS(status), NICE * 10 + SCHED_BATCH);
	CHECK_PT(posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, environ));
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void *makes_processes(void *arg)
{
	struct sigaction act = { .sa_handler = on_fault };
	sigset_t set;

	for (size_t i = 0; i < NR_KINDS - 1; i++)
		dies_by_signal(kinds[i]);
	ok("a signal reaches them");

	for (size_t i = 0; i < NR_KINDS; i++)
		exits(nr_blocked, kinds[i], 0);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	CHECK_PT(pthread_sigmask(SIG_BLOCK, &set, NULL));
	for (size_t i = 0; i < NR_KINDS; i++)
		exits(nr_blocked, kinds[i], 101);
	CHECK_PT(pthread_sigmask(SIG_UNBLOCK, &set, NULL));
	ok("they start with the thread's mask");

	CHECK_SYS(sigaction(SIGSEGV, &act, NULL));
	exits(faults, 0, STATUS);
	exits(makes_a_thread, 0, STATUS);
	ok("one with its own memory is a whole program");

	shares_files();
	ok("descriptors in common");
	inherited();
	ok("policy and nice value");
	return arg;
}

/* The process ends with its last thread, and has that one's status. */
static void last_thread(void)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		join(start(nothing, NULL));
		syscall(SYS_exit, STATUS);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == STATUS);
}

int main(void)
{
	stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	is_up = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	last_thread();
	ok("the last thread's status");
	join(start(makes_processes, NULL));
	return finish();
}
