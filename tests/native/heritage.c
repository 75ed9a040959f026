// SPDX-License-Identifier: Apache-2.0
/*
 * A thread with a nice value has a pthread that its spawner makes for it. That one runs the next thread when it has done with it, if no
 * other comes first: with one worker, none does. The next thread is a new one all the same.
 */
#include <weft/weft.h>

#include "native.h"
#include "tap.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/resource.h>

static pthread_t own[2];
static sem_t go;
static int nice_of_main;

#define MOST_TRIES 1000

static int leaves_a_mask(void *arg)
{
	sigset_t set;

	(void)arg;
	own[0] = pthread_self();
	while (sem_wait(&go))
		;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	return 0;
}

static int looks(void *out_name)
{
	sigset_t set;

	own[1] = pthread_self();
	pthread_sigmask(SIG_SETMASK, NULL, &set);
	pthread_getname_np(pthread_self(), out_name, 16);
	return sigismember(&set, SIGUSR2) || getpriority(PRIO_PROCESS, 0) != nice_of_main;
}

/* One behind the other. */
static void run_both(const struct weft_thread_opts *opts, const char *of_main)
{
	char name[16] = "";
	int is_other = -1;
	weft_thread *t[2];

	CHECK_EQ(weft_thread_spawn(leaves_a_mask, NULL, opts, &t[0]), 0);
	sem_post(&go);
	CHECK_EQ(weft_thread_spawn(looks, name, NULL, &t[1]), 0);
	CHECK_EQ(weft_thread_join(t[0], NULL, WEFT_NEVER), 0);
	CHECK_EQ(weft_thread_join(t[1], &is_other, WEFT_NEVER), 0);
	CHECK_EQ(is_other, 0);
	CHECK(strcmp(name, of_main) == 0);
}

TEST(the_next_thread_finds_nothing_of_one_that_had_a_pthread_for_itself)
{
	struct weft_thread_opts opts = { .size = sizeof(opts), .name = "first" };
	char of_main[16];
	int tries = 0;
	weft_scope s;

	/* The first scope of a program takes a look at libc, for which its thread waits. */
	weft_scope_open(&s, WEFT_NEVER, NULL);
	CHECK_EQ(weft_scope_close(&s), 0);
	pthread_getname_np(pthread_self(), of_main, sizeof(of_main));
	nice_of_main = getpriority(PRIO_PROCESS, 0);
	if (nice_of_main >= 19)
		SKIP("nobody can be nicer than the test");
	opts.nice = nice_of_main + 1;
	sem_init(&go, 0, 0);
	/* Where many run at a time, the second may begin in another pthread. */
	do
		run_both(&opts, of_main);
	while (!is_native_run() && !pthread_equal(own[0], own[1]) && ++tries < MOST_TRIES);
	CHECK(tries < MOST_TRIES);
}
