// SPDX-License-Identifier: Apache-2.0
/*
 * SIGSEGV and the like sent by another process in a storm, to threads that make calls and have faults of their
 * own: both kinds reach the handler, and nothing breaks.
 */
#include "check.h"

#include <setjmp.h>

#define NR_THREADS 4

static const int sigs[] = { SIGSEGV, SIGFPE, SIGSYS, SIGTRAP };
static int nr_sent, nr_faults, is_over;
static volatile int *volatile nowhere = (int *)4;
static __thread sigjmp_buf back;
static __thread int may_fault;

static void handler(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	if (info->si_code <= 0) {
		ADD(&nr_sent, 1);
		return;
	}
	CHECK(may_fault);
	CHECK_EQ((long)info->si_addr, 4);
	ADD(&nr_faults, 1);
	siglongjmp(back, 1);
}

static void *works(void *arg)
{
	char c = 'x';
	int fds[2];

	while (!LOAD(&is_over)) {
		free(malloc(100));
		CHECK_SYS(pipe(fds));
		CHECK_EQ(write(fds[1], &c, 1), 1);
		CHECK_EQ(read(fds[0], &c, 1), 1);
		close(fds[0]);
		close(fds[1]);
		may_fault = 1;
		if (!sigsetjmp(back, 1))
			*nowhere = 1;
		may_fault = 0;
		sched_yield();
	}
	return arg;
}

int main(void)
{
	struct sigaction act = { .sa_sigaction = handler,
				 .sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART };
	pthread_t t[NR_THREADS];
	pid_t parent = getpid(), pid;
	int before;

	for (int i = 0; i < 4; i++)
		sigaction(sigs[i], &act, NULL);
	for (int i = 0; i < NR_THREADS; i++)
		t[i] = start(works, NULL);
	pid = fork();
	if (pid == 0) {
		for (int i = 0; i < 30000; i++)
			kill(parent, sigs[i % 4]);
		_exit(0);
	}
	reap(pid);
	while (!LOAD(&nr_sent) || !LOAD(&nr_faults))
		sched_yield();
	before = LOAD(&nr_sent);
	kill(getpid(), SIGSEGV);
	while (LOAD(&nr_sent) == before)
		sched_yield();
	STORE(&is_over, 1);
	for (int i = 0; i < NR_THREADS; i++)
		join(t[i]);
	ok("sent and real ones");
	return finish();
}
