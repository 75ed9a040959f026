// SPDX-License-Identifier: Apache-2.0
/* Included by: reads_whole.c, signal_no_eintr.c. After check.h. A thread that disturbs main by signals. */
#ifndef WEFT_TESTS_ABI_DISTURB_H
#define WEFT_TESTS_ABI_DISTURB_H

static int nr_handled, is_over; /* atomic */

static inline void on_signal(int sig)
{
	(void)sig;
	ADD(&nr_handled, 1);
}

/* One signal as soon as the last was handled: it meets the victim everywhere. */
static inline void *disturbs(void *victim)
{
	int seen = -1;

	while (!LOAD(&is_over)) {
		if (LOAD(&nr_handled) == seen) {
			sched_yield();
			continue;
		}
		seen = LOAD(&nr_handled);
		CHECK_PT(pthread_kill(*(pthread_t *)victim, SIGUSR1));
	}
	return NULL;
}

/* Of the caller, until is_over; the first signal has come. The handler has no SA_RESTART. */
static inline pthread_t begin_disturbing(void)
{
	static pthread_t self;
	struct sigaction sa = { .sa_handler = on_signal };
	pthread_t t;

	self = pthread_self();
	CHECK_SYS(sigaction(SIGUSR1, &sa, NULL));
	t = start(disturbs, &self);
	while (!LOAD(&nr_handled))
		sched_yield();
	return t;
}

#endif
