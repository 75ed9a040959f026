// SPDX-License-Identifier: Apache-2.0
/*
 * SIGSEGV and the like in children, right after they were made: who sends one to a child hits the child, with the
 * program's handler or without, and a fault in a child that shares our memory is its own.
 */
#include <sched.h>
#include <sys/resource.h>

#include "check.h"

#define NR_ROUNDS 20
#define STACK_BYTES 65536

static const int sigs[] = { SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV, SIGSYS };
static pid_t parent;
static volatile int *volatile nowhere = (int *)4;

static void handler(int sig)
{
	_exit(getpid() == parent ? 1 : 40 + sig);
}

static void set_handler(void (*function)(int))
{
	for (unsigned i = 0; i < 6; i++)
		CHECK(signal(sigs[i], function) != SIG_ERR);
}

static int status_of(pid_t pid)
{
	int status = -1;

	CHECK_SYS(pid);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	return status;
}

/* How a child ends by sig, with a handler and without. */
static int expected(int sig, int has_handler)
{
	return has_handler ? (40 + sig) << 8 : sig;
}

static void send_to_forked(int sig, int has_handler)
{
	pid_t pid = fork();

	if (pid == 0)
		for (;;)
			pause();
	CHECK_SYS(kill(pid, sig));
	CHECK_EQ(status_of(pid) & ~0x80, expected(sig, has_handler));
}

/* A signal that the child blocks waits for it. */
static void send_blocked(int sig)
{
	sigset_t set, old;
	pid_t pid;

	sigemptyset(&set);
	sigaddset(&set, sig);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, &old), 0);
	pid = fork();
	if (pid == 0) {
		int got = 0;

		_exit(sigwait(&set, &got) || got != sig ? 1 : 9);
	}
	CHECK_SYS(kill(pid, sig));
	CHECK_EQ(status_of(pid), 9 << 8);
	CHECK_EQ(pthread_sigmask(SIG_SETMASK, &old, NULL), 0);
}

static void sends_itself(int sig)
{
	pid_t pid = vfork();

	if (pid == 0) {
		kill(getpid(), sig);
		_exit(2);
	}
	CHECK_EQ(status_of(pid) & ~0x80, expected(sig, 0));
	set_handler(handler);
	pid = vfork();
	if (pid == 0) {
		kill(getpid(), sig);
		_exit(2);
	}
	CHECK_EQ(status_of(pid), expected(sig, 1));
	pid = vfork();
	if (pid == 0) {
		*nowhere = 1;
		_exit(2);
	}
	CHECK_EQ(status_of(pid), expected(SIGSEGV, 1));
	set_handler(SIG_DFL);
	pid = vfork();
	if (pid == 0) {
		*nowhere = 1;
		_exit(2);
	}
	CHECK_EQ(status_of(pid) & ~0x80, expected(SIGSEGV, 0));
}

/* A plain copy of a child that shares our memory. */
static void grandchild(int sig)
{
	pid_t pid = vfork();

	if (pid == 0) {
		int status = -1;
		long child = syscall(SYS_fork);

		if (child == 0) {
			kill(getpid(), sig);
			_exit(2);
		}
		_exit(waitpid((pid_t)child, &status, 0) == child && (status & 0x7f) == sig ? 8 : 3);
	}
	CHECK_EQ(status_of(pid), 8 << 8);
}

static int on_own_stack(void *arg)
{
	syscall(SYS_kill, syscall(SYS_getpid), *(int *)arg);
	return 2;
}

static void shares_memory(int sig)
{
	char *stack = malloc(STACK_BYTES);

	CHECK_EQ(status_of(clone(on_own_stack, stack + STACK_BYTES, CLONE_VM | SIGCHLD, &sig)) &
			 ~0x80,
		 expected(sig, 0));
	free(stack);
}

static void *works(void *arg)
{
	for (int round = 0; round < NR_ROUNDS; round++)
		send_to_forked(sigs[round % 6], 0);
	ok("sent to a child");
	set_handler(handler);
	for (int round = 0; round < NR_ROUNDS; round++)
		send_to_forked(sigs[round % 6], 1);
	set_handler(SIG_DFL);
	ok("sent to a child with a handler");
	for (int round = 0; round < NR_ROUNDS; round++)
		send_blocked(sigs[round % 6]);
	ok("sent to a child that blocks it");
	for (unsigned i = 0; i < 6; i++)
		sends_itself(sigs[i]);
	ok("in a child of vfork()");
	for (unsigned i = 0; i < 6; i++)
		grandchild(sigs[i]);
	ok("in a child of a child of vfork()");
	for (unsigned i = 0; i < 6; i++)
		shares_memory(sigs[i]);
	ok("in a child by clone()");
	return arg;
}

int main(void)
{
	const struct rlimit none = { 0, 0 };

	CHECK_SYS(setrlimit(RLIMIT_CORE, &none));
	parent = getpid();
	join(start(works, NULL));
	return finish();
}
