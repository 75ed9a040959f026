// SPDX-License-Identifier: Apache-2.0
/* Where threads go that have used their slices: nobody is left on the worker with more of them for long. */
#include "sched/balance.h"
#include "sched/runtime.h"

#include "tap.h"

#include <string.h>

#define WORKERS 3
#define THREADS 16

static struct wf_worker workers[WORKERS];
static struct wf_kthread kthreads[WORKERS];
static struct wf_thread threads[THREADS];
/* The times of the threads on each; the first one runs. */
static uint32_t queue[WORKERS][THREADS], length[WORKERS], slices[THREADS];

static void set_up(uint32_t nr_workers)
{
	memset(workers, 0, sizeof(workers));
	memset(kthreads, 0, sizeof(kthreads));
	memset(threads, 0, sizeof(threads));
	memset(length, 0, sizeof(length));
	memset(slices, 0, sizeof(slices));
	wf_rt.workers = workers;
	wf_rt.nr_workers = nr_workers;
	for (uint32_t i = 0; i < nr_workers; i++) {
		workers[i].index = i;
		workers[i].kthread = &kthreads[i];
		kthreads[i].worker = &workers[i];
	}
}

static void put(uint32_t worker, uint32_t thread)
{
	queue[worker][length[worker]++] = thread;
}

static void show(uint32_t i)
{
	wf_store_relaxed(&workers[i].rq.nr, length[i] ? length[i] - 1 : 0);
	wf_store_relaxed(&kthreads[i].cur, length[i] ? &threads[queue[i][0]] : NULL);
}

/* The thread that runs on worker i leaves: where to? */
static uint32_t leave(uint32_t i)
{
	kthreads[i].joins = NULL;
	if (wf_balance_leave(&kthreads[i], WF_PREV_PREEMPT) == WF_PREV_PREEMPT)
		return i;
	return kthreads[i].joins->index;
}

static void end_slice(uint32_t i)
{
	uint32_t t = queue[i][0], to;

	slices[t]++;
	if (length[i] == 1)
		return;
	to = leave(i);
	memmove(queue[i], queue[i] + 1, --length[i] * sizeof(queue[i][0]));
	put(to, t);
	show(i);
	show(to);
}

TEST(two_more_on_one_worker_are_one_too_many)
{
	set_up(2);
	put(0, 0), put(0, 1), put(0, 2), put(1, 3);
	show(0), show(1);
	CHECK_EQ(leave(0), 1);
	CHECK_EQ(leave(1), 1);
}

TEST(who_has_slice_left_stays)
{
	set_up(2);
	put(0, 0), put(0, 1), put(0, 2), put(1, 3);
	show(0), show(1);
	threads[0].slice_left = 1;
	put(1, 4);
	show(1);
	CHECK_EQ(leave(0), 0);
}

TEST(who_has_slice_left_goes_where_two_fewer_are)
{
	set_up(2);
	put(0, 0), put(0, 1), put(0, 2), put(1, 3);
	show(0), show(1);
	threads[0].slice_left = 1;
	CHECK_EQ(leave(0), 1);
}

TEST(who_has_slice_left_stays_beside_its_peer)
{
	set_up(2);
	put(0, 0), put(0, 1), put(0, 2), put(1, 3);
	show(0), show(1);
	threads[0].slice_left = 1;
	threads[0].peer_here = 15;
	CHECK_EQ(leave(0), 1); /* the other processor has nobody else */
	workers[1].peers_here = 15;
	CHECK_EQ(leave(0), 0);
	threads[0].slice_left = 0;
	CHECK_EQ(leave(0), 1);
}

TEST(nobody_makes_room_for_those_with_less_weight_only)
{
	set_up(2);
	put(0, 0), put(0, 1), put(1, 2);
	show(1);
	wf_store_relaxed(&kthreads[0].cur, &threads[0]);
	threads[0].level = WF_LEVEL_NORMAL;
	threads[1].level = WF_LEVEL_NORMAL + 5;
	wf_runq_push(&workers[0].rq, &threads[1], WF_PLACE_TAIL);
	wf_rt.has_levels = 1;
	CHECK_EQ(leave(0), 0);
	threads[0].level = WF_LEVEL_NORMAL + 5;
	CHECK_EQ(leave(0), 1);
	wf_rt.has_levels = 0;
}

TEST(nobody_goes_where_nobody_runs_or_a_call_blocks)
{
	set_up(2);
	put(0, 0), put(0, 1), put(0, 2);
	show(0), show(1);
	CHECK_EQ(leave(0), 0);
	put(1, 3);
	show(1);
	kthreads[1].insys = 1;
	CHECK_EQ(leave(0), 0);
	kthreads[1].insys = 0;
	CHECK_EQ(leave(0), 1);
}

/* All start on the first worker; every worker ends a slice in each round. In thousandths of a fair share. */
static void check_shares(uint32_t nr_workers, uint32_t nr_threads, uint32_t rounds)
{
	uint32_t fair = nr_workers * rounds / nr_threads;

	set_up(nr_workers);
	for (uint32_t t = 0; t < nr_threads; t++)
		put(t < nr_workers ? t : 0, t);
	for (uint32_t i = 0; i < nr_workers; i++)
		show(i);
	for (uint32_t r = 0; r < rounds; r++)
		for (uint32_t i = 0; i < nr_workers; i++)
			end_slice(i);
	for (uint32_t t = 0; t < nr_threads; t++)
		if (!CHECK(slices[t] * 100 >= fair * 95 && slices[t] * 100 <= fair * 105))
			tap_note("%u workers, %u threads: thread %u had %u slices, fair are %u",
				 nr_workers, nr_threads, t, slices[t], fair);
}

TEST(within_a_hundred_slices_all_have_had_as_many)
{
	for (uint32_t w = 2; w <= WORKERS; w++)
		for (uint32_t n = w; n <= 7; n++)
			check_shares(w, n, 100 * n / w);
}
