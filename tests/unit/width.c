// SPDX-License-Identifier: Apache-2.0
/* When a program runs narrow: where that serves more, as long as it does, and seldom tried where it does not. */
#include "sched/width.h"
#include "sched/runtime.h"

#include "tap.h"

#include <string.h>

#define WORKERS 4
#define TICK_NS (8 * WF_MS)

static struct wf_worker workers[WORKERS];
static struct wf_kthread kthreads[WORKERS];
static struct wf_thread thread;
static int64_t now;

static bool is_narrow(void)
{
	return wf_rt.width.is_narrow;
}

static void begin(uint32_t nr_workers)
{
	memset(workers, 0, sizeof(workers));
	memset(kthreads, 0, sizeof(kthreads));
	memset(&wf_rt.width, 0, sizeof(wf_rt.width));
	wf_rt.workers = workers;
	wf_rt.nr_workers = nr_workers;
	for (uint32_t i = 0; i < nr_workers; i++) {
		workers[i].kthread = &kthreads[i];
		kthreads[i].cur = &thread;
	}
	now = WF_SEC;
	wf_width_look(now);
}

struct load {
	uint32_t wide, narrow; /* served per tick */
	uint32_t hauls;        /* per tick, while it is wide */
	int64_t turn_ns;
};

/* How long it ran narrow, of so long. */
static int64_t run(const struct load *l, int64_t ns)
{
	int64_t end = now + ns, narrow = 0;

	while (now < end) {
		now += TICK_NS;
		narrow += is_narrow() ? TICK_NS : 0;
		workers[0].served += is_narrow() ? l->narrow : l->wide;
		workers[1].hauls += is_narrow() ? 0 : l->hauls;
		for (int i = 0; i < WORKERS; i++)
			workers[i].seen_turn_ns = l->turn_ns;
		wf_width_look(now);
	}
	return narrow;
}

static const struct load
	one_lock = { .wide = 100, .narrow = 150, .hauls = 40, .turn_ns = WF_MS / 10 },
	parallel = { .wide = 200, .narrow = 110, .hauls = 40, .turn_ns = WF_MS / 10 },
	as_good = { .wide = 100, .narrow = 105, .hauls = 40, .turn_ns = WF_MS / 10 },
	at_home = { .wide = 100, .narrow = 150, .hauls = 1, .turn_ns = WF_MS / 10 },
	few = { .wide = 10, .narrow = 15, .hauls = 40, .turn_ns = WF_MS / 10 },
	computes = { .wide = 100, .narrow = 150, .hauls = 40, .turn_ns = 4 * WF_MS };

TEST(what_serves_more_narrow_runs_narrow)
{
	begin(WORKERS);
	(void)run(&one_lock, WF_SEC / 4);
	CHECK(run(&one_lock, 20 * WF_SEC) >= 19 * WF_SEC);
}

TEST(what_serves_more_wide_is_tried_ever_less)
{
	begin(WORKERS);
	CHECK(run(&parallel, 10 * WF_SEC) <= 60 * WF_MS);
	(void)run(&parallel, 100 * WF_SEC);
	CHECK(run(&parallel, 100 * WF_SEC) <= 30 * WF_MS);
	CHECK(!is_narrow());
}

TEST(what_serves_as_much_stays_wide)
{
	begin(WORKERS);
	CHECK(run(&as_good, 10 * WF_SEC) <= 5 * 4 * 2 * TICK_NS);
	CHECK(!is_narrow());
}

TEST(what_leaves_its_threads_where_they_are_is_not_tried)
{
	begin(WORKERS);
	CHECK_EQ(run(&at_home, 10 * WF_SEC), 0);
	begin(WORKERS);
	CHECK_EQ(run(&few, 10 * WF_SEC), 0);
	begin(WORKERS);
	CHECK_EQ(run(&computes, 10 * WF_SEC), 0);
}

TEST(one_worker_is_never_tried)
{
	begin(1);
	CHECK_EQ(run(&one_lock, 10 * WF_SEC), 0);
}

TEST(a_program_that_begins_to_compute_gets_its_workers_back)
{
	begin(WORKERS);
	(void)run(&one_lock, 2 * WF_SEC);
	CHECK(is_narrow());
	CHECK(run(&computes, WF_SEC) <= 4 * TICK_NS);
	CHECK(!is_narrow());
	/* and is tried again when that is over */
	(void)run(&one_lock, WF_SEC / 2);
	CHECK(is_narrow());
}

TEST(one_long_turn_changes_nothing)
{
	begin(WORKERS);
	(void)run(&one_lock, 2 * WF_SEC);
	CHECK(is_narrow());
	for (int i = 0; i < 100; i++) {
		(void)run(&computes, 2 * TICK_NS);
		(void)run(&one_lock, TICK_NS);
	}
	CHECK(is_narrow());
}

TEST(a_program_that_has_become_parallel_gets_its_workers_back)
{
	begin(WORKERS);
	(void)run(&one_lock, 60 * WF_SEC);
	CHECK(run(&parallel, 20 * WF_SEC) <= 9 * WF_SEC);
	CHECK(!is_narrow());
}

TEST(what_was_learnt_is_forgotten_while_nothing_runs)
{
	begin(WORKERS);
	(void)run(&one_lock, 2 * WF_SEC);
	CHECK(is_narrow());
	now += WF_SEC;
	wf_width_look(now);
	CHECK(!is_narrow());
}
