// SPDX-License-Identifier: Apache-2.0
/*
 * For programs that show what calls return, good and bad arguments alike, and leave the judgement to the
 * comparison with the plain kernel in run.py.
 *
 * Included by: the errors_* programs. Their calls are made by a second thread, as the first is often special.
 */
#ifndef WEFT_TESTS_ABI_SHOW_H
#define WEFT_TESTS_ABI_SHOW_H

#include "check.h"

#include <limits.h>

/* Old calls are calls too. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#pragma GCC diagnostic ignored "-Wnonnull"

#define BAD ((void *)1)
#define KERNEL ((void *)0xffff800000001000ul)
#define NOT_CANONICAL ((void *)0x0123800000001000ul)

#define CALL(nr, ...) syscall(SYS_##nr, ##__VA_ARGS__)

/* The result of a call; large ones are descriptors, sizes or IDs that differ from run to run. */
#define SHOW(call)                                                                                 \
	do {                                                                                       \
		errno = 0;                                                                         \
		show(#call, (long)(call));                                                         \
	} while (0)

/* The same for calls that return an error number. */
#define SHOW_PT(call)                                                                              \
	do {                                                                                       \
		int ret_ = (call);                                                                 \
		printf("%s: %s\n", #call, ret_ ? strerrorname_np(ret_) : "0");                     \
	} while (0)

/* Another thread, which is parked and blocks all signals, and one that has ended. */
static pthread_t other;
static pid_t other_tid, dead_tid;
static int is_parked; /* atomic */

static inline void show(const char *what, long ret)
{
	if (ret == -1)
		printf("%s: %s\n", what, strerrorname_np(errno));
	else if (ret > 4096)
		printf("%s: large\n", what);
	else
		printf("%s: %ld\n", what, ret);
}

static inline pid_t my_tid(void)
{
	return (pid_t)syscall(SYS_gettid);
}

static void *parks(void *arg)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	other_tid = my_tid();
	STORE(&is_parked, 1);
	for (;;)
		pause();
	return arg;
}

static void *notes_its_tid(void *arg)
{
	dead_tid = my_tid();
	return arg;
}

/* Runs calls in a thread of its own and ends the process there: some calls make it unfit to be joined. */
static inline int show_in_thread(void *(*calls)(void *))
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	sigaddset(&set, SIGRTMIN);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	other = start(parks, NULL);
	join(start(notes_its_tid, NULL));
	wait_until_gone(dead_tid);
	while (!LOAD(&is_parked))
		sched_yield();
	join(start(calls, NULL));
	return finish();
}

#endif
