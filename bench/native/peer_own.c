// SPDX-License-Identifier: Apache-2.0
/* Workloads that other runtimes have nothing for, and those without a partner: in ns each. */
#include "peer.h"

#include <stdlib.h>

#define BATCH 1000 /* threads that wait to be cancelled */

static long nr;

static double each(weft_time began, long n)
{
	return (double)(weft_now() - began) / (double)n;
}

static double scope(void *arg)
{
	const weft_time began = weft_now(), until = began + 3600 * WEFT_SEC;

	(void)arg;
	for (long i = 0; i < nr; i++) {
		weft_scope s;

		weft_scope_open(&s, until, NULL);
		(void)weft_scope_close(&s);
	}
	return each(began, nr);
}

static int waits_for_ever(void *arg)
{
	weft_event e = { { 0 } };

	(void)weft_chan_give(arg, WEFT_NEVER);
	return weft_event_wait(&e, WEFT_NEVER);
}

/* All are parked; from the first cancellation to the last join. */
static double cancel(void *arg)
{
	weft_chan *there = weft_chan_new(0, BATCH, "there");
	weft_thread *threads[BATCH];
	weft_time began;

	(void)arg;
	for (int i = 0; i < BATCH; i++)
		threads[i] = peer_spawn(waits_for_ever, there, 0);
	for (int i = 0; i < BATCH; i++)
		(void)weft_chan_take(there, WEFT_NEVER);
	began = weft_now();
	for (int i = 0; i < BATCH; i++)
		weft_thread_cancel(threads[i]);
	for (int i = 0; i < BATCH; i++)
		peer_join(threads[i]);
	weft_chan_free(there);
	return each(began, BATCH);
}

static double channel(void *arg)
{
	weft_chan *ch = weft_chan_new(sizeof(long), 16, "alone");
	const weft_time began = weft_now();
	double ns;

	(void)arg;
	for (long i = 0; i < nr; i++) {
		long item;

		if (weft_chan_send(ch, &i, WEFT_NEVER) || weft_chan_recv(ch, &item, WEFT_NEVER))
			abort();
	}
	ns = each(began, nr);
	weft_chan_free(ch);
	return ns;
}

/* The one that is ready stands last; what makes it ready is in it. */
static double select_4(void *arg)
{
	weft_chan *ch[4];
	weft_time began;
	double ns;

	(void)arg;
	for (int i = 0; i < 4; i++)
		ch[i] = weft_chan_new(0, 1, "alone");
	began = weft_now();
	for (long i = 0; i < nr; i++) {
		struct weft_op ops[] = { WEFT_TAKE(ch[0]), WEFT_TAKE(ch[1]), WEFT_TAKE(ch[2]),
					 WEFT_TAKE(ch[3]) };

		if (weft_chan_give(ch[3], WEFT_NEVER) || weft_select(ops, 4, WEFT_NEVER) != 3)
			abort();
	}
	ns = each(began, nr);
	for (int i = 0; i < 4; i++)
		weft_chan_free(ch[i]);
	return ns;
}

static void *yields(void *arg)
{
	while (arg != yields)
		arg = weft_fiber_yield(arg);
	return NULL;
}

static double fiber(void *arg)
{
	weft_fiber *f = weft_fiber_new(yields, NULL);
	const weft_time began = weft_now();
	double ns;

	(void)arg;
	for (long i = 0; i < nr; i++)
		(void)weft_fiber_resume(f, NULL);
	ns = each(began, nr);
	weft_fiber_free(f);
	return ns;
}

static void nothing(void *arg)
{
	(void)arg;
}

static double task(void *arg)
{
	const weft_time began = weft_now();

	(void)arg;
	for (long i = 0; i < nr; i++) {
		weft_task t;

		weft_task_fork(&t, nothing, NULL);
		weft_task_join(&t);
	}
	return each(began, nr);
}

void peer_own(void)
{
	nr = peer_arg(1, 1000000);
	peer_row("scope", peer_best(scope, NULL), "ns/open+close");
	peer_row("cancel", peer_best(cancel, NULL), "ns/parked-thread");
	peer_row("channel", peer_best(channel, NULL), "ns/send+receive");
	peer_row("select-4", peer_best(select_4, NULL), "ns/give+select");
	peer_row("fiber", peer_best(fiber, NULL), "ns/resume+yield");
	peer_row("task", peer_best(task, NULL), "ns/fork+join");
}
