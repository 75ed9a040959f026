// SPDX-License-Identifier: Apache-2.0
/*
 * sigaltstack belongs to a thread; SA_ONSTACK handlers run there, also when blocked or preempted.
 */
#include "check.h"

#define NR 6
#define BYTES 65536

static int fds[2], nr_handled, stop;
static __thread char *my_stack;
static __thread int handled_here;

static void on_signal(int sig)
{
	char here;
	stack_t now;

	(void)sig;
	CHECK(&here >= my_stack && &here < my_stack + BYTES);
	CHECK_SYS(sigaltstack(NULL, &now));
	CHECK_EQ(now.ss_flags, SS_ONSTACK);
	now.ss_flags = SS_DISABLE;
	CHECK_ERRNO(sigaltstack(&now, NULL), EPERM);
	/* A switch in the middle of the handler must not move anybody to a wrong stack. */
	for (int i = 0; i < 5; i++)
		sched_yield();
	CHECK(&here >= my_stack && &here < my_stack + BYTES);
	handled_here++;
	ADD(&nr_handled, 1);
}

static void *receives(void *arg)
{
	stack_t mine = { .ss_size = BYTES }, old;
	char c;

	my_stack = mine.ss_sp = malloc(BYTES);
	CHECK_SYS(sigaltstack(NULL, &old));
	CHECK_EQ(old.ss_flags, SS_DISABLE);
	CHECK_SYS(sigaltstack(&mine, NULL));
	raise(SIGUSR1);
	CHECK_EQ(handled_here, 1);
	if (ADD((int *)arg, 1) % 2)
		CHECK_EQ(read(fds[0], &c, 1), 1);
	else
		while (!LOAD(&stop))
			;
	CHECK_SYS(sigaltstack(NULL, &old));
	CHECK(old.ss_sp == my_stack);
	CHECK_EQ(old.ss_size, BYTES);
	CHECK_EQ(old.ss_flags, 0);
	old.ss_flags = SS_DISABLE;
	CHECK_SYS(sigaltstack(&old, NULL));
	free(my_stack);
	return NULL;
}

int main(void)
{
	pthread_t t[NR];
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK | SA_RESTART };
	stack_t tiny = { .ss_sp = fds, .ss_size = 8 };
	int nr_ready = 0;

	CHECK_SYS(pipe(fds));
	sigaction(SIGUSR1, &sa, NULL);
	CHECK_ERRNO(sigaltstack(&tiny, NULL), ENOMEM);
	for (int i = 0; i < NR; i++)
		t[i] = start(receives, &nr_ready);
	while (LOAD(&nr_ready) < NR)
		sched_yield();
	CHECK_EQ(nr_handled, NR);
	ok("raise on six threads with own alternate stacks");
	for (int round = 0; round < 10; round++) {
		int want = LOAD(&nr_handled) + NR;

		for (int i = 0; i < NR; i++)
			CHECK_PT(pthread_kill(t[i], SIGUSR1));
		while (LOAD(&nr_handled) < want)
			sched_yield();
	}
	ok("sent from outside");
	STORE(&stop, 1);
	for (int i = 0; i < NR; i++)
		CHECK_EQ(write(fds[1], "x", 1), 1);
	for (int i = 0; i < NR; i++)
		join(t[i]);
	stack_t mains;
	CHECK_SYS(sigaltstack(NULL, &mains));
	CHECK_EQ(mains.ss_flags, SS_DISABLE);
	ok("main has none");
	return finish();
}
