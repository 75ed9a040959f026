// SPDX-License-Identifier: Apache-2.0
/* A loop that never ends and calls nothing takes a part of a worker, and no more. A signal gets the thread out of it. */
#include "rules.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <weft/weft.h>

static sigjmp_buf out[RULE_NR];
static pthread_t looping[RULE_NR];
static weft_chan *begun;

/* Of the copy that loops on this thread: 0 when none does; else its number, from 1. */
static _Thread_local volatile sig_atomic_t inside;
static bool is_out[RULE_NR];

static void gets_out(int sig)
{
	(void)sig;
	if (inside)
		siglongjmp(out[inside - 1], 1);
}

/* Threads that run tasks have all signals blocked, so that those of the process come to the program's own. */
static void loops(int nr)
{
	sigset_t wanted, before;

	sigemptyset(&wanted);
	sigaddset(&wanted, SIGUSR1);
	CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &wanted, &before), 0);
	if (!sigsetjmp(out[nr], 1)) {
		looping[nr] = pthread_self();
		CHECK_EQ(weft_chan_send(begun, &nr, WEFT_NEVER), 0);
		inside = nr + 1;
		while (1)
			;
	}
	inside = 0;
	CHECK_EQ(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
	rule_turn();
	__atomic_store_n(&is_out[nr], true, __ATOMIC_RELEASE);
}

static void end_it(int nr)
{
	while (!__atomic_load_n(&is_out[nr], __ATOMIC_ACQUIRE)) {
		CHECK_EQ(pthread_kill(looping[nr], SIGUSR1), 0);
		rule_wait();
	}
}

/* Of threads all loop at once, which is more than there are workers. Tasks and fibers may wait for others to end. */
static void end_them(enum rule_place place)
{
	int nr[RULE_NR];

	for (int i = 0; i < RULE_NR; i++) {
		CHECK_EQ(weft_chan_recv(begun, &nr[i], WEFT_NEVER), 0);
		if (place != IN_THREADS)
			end_it(nr[i]);
	}
	for (int i = 0; place == IN_THREADS && i < RULE_NR; i++)
		end_it(nr[i]);
}

static void run(enum rule_place place)
{
	const struct sigaction action = { .sa_handler = gets_out };

	sigaction(SIGUSR1, &action, NULL);
	begun = weft_chan_new(sizeof(int), RULE_NR, "begun");
	memset(is_out, 0, sizeof(is_out));
	rule_run(place, loops, end_them);
	weft_chan_free(begun);
}

#ifdef __SANITIZE_THREAD__
#define LACK "ThreadSanitizer keeps signals until the thread makes a call"
#else
#define LACK rule_lack()
#endif

TEST(endless_loops_are_preempted_in_threads)
{
	if (LACK)
		SKIP(LACK);
	run(IN_THREADS);
}

TEST(endless_loops_are_preempted_in_tasks)
{
	if (LACK)
		SKIP(LACK);
	run(IN_TASKS);
}

TEST(endless_loops_are_preempted_in_fibers)
{
	if (LACK)
		SKIP(LACK);
	run(IN_FIBERS);
}
