// SPDX-License-Identifier: Apache-2.0
/* No kernel thread can be made, and all that there are sit in calls: whoever is ready runs all the same. */
#include "machine.h"
#include "model.h"
#include "reader.h"
#include "sched/rescue.h"
#include "sched/insys.h"

#include "tap.h"

static uint32_t nr_released, nr_takers;

static bool is_released(void *arg)
{
	return nr_released;
}

/* As call_through() of linux/call.c: a call that is certain to block, until somebody else has run. */
static void takes_lock(void *arg)
{
	struct wf_thread *self = wf_self();
	bool has_it;

	do {
		(void)wf_fetch_and(&self->attention, ~WF_ATT_RESCHED);
		wf_store_relaxed(&self->repeats_call, true);
		wf_call_enter(true);
		has_it = machine_wait_in_call(is_released, NULL);
		wf_call_leave();
		wf_store_relaxed(&self->repeats_call, false);
		if (!has_it && !model_is_mutated("takes_lock", "give way"))
			wf_rescue_let_others_run();
	} while (!has_it);
	nr_takers++;
}

static void releases(void *arg)
{
	model_step();
	nr_released++;
}

static void sleeps_and_releases(void *arg)
{
	wf_park_begin(0, WF_WAIT_SLEEP, 0);
	(void)wf_park(model_now() + 3 * WF_MS);
	nr_released++;
}

static bool are_all_held(void *arg)
{
	return wf_rt.nr_vacant == wf_rt.nr_workers;
}

/* By somebody who carries no worker and makes no kernel thread, such as a bound thread's. */
static void submits(void *arg)
{
	(void)model_wait(are_all_held, NULL, model_now() + WF_MS);
	wf_worker_ready(arg);
}

static void computes(void *arg)
{
	machine_compute(is_released, NULL);
	nr_takers++;
}

static void reads_and_releases(void *arg)
{
	reader_reads(NULL);
	nr_released++;
}

static bool is_reader_waiting(void)
{
	return !reader_read_at;
}

static void data_comes(void *arg)
{
	(void)model_wait(are_all_held, NULL, model_now() + WF_MS);
	reader_data_comes();
}

static void setup(uint32_t nr_workers)
{
	nr_released = nr_takers = 0;
	machine_reset(nr_workers);
	machine_is_full = true;
}

static void check(void)
{
	machine_check();
	model_expect(nr_released && nr_takers, "somebody waits for ever");
}

static void setup_queued(void)
{
	setup(1);
	(void)machine_kthread(&wf_rt.workers[0]);
	machine_queue(&wf_rt.workers[0], machine_thread(takes_lock, NULL));
	machine_queue(&wf_rt.workers[0], machine_thread(releases, NULL));
	(void)machine_door(machine_monitor, NULL);
}

/* The one that is ready waits where no kernel thread comes back to. */
static void setup_elsewhere(void)
{
	setup(2);
	(void)machine_kthread(&wf_rt.workers[0]);
	machine_queue(&wf_rt.workers[0], machine_thread(takes_lock, NULL));
	machine_queue(&wf_rt.workers[1], machine_thread(releases, NULL));
	(void)machine_door(machine_monitor, NULL);
}

static void setup_two(void)
{
	setup(2);
	for (int i = 0; i < 2; i++) {
		(void)machine_kthread(&wf_rt.workers[i]);
		machine_queue(&wf_rt.workers[i], machine_thread(takes_lock, NULL));
	}
	machine_queue(&wf_rt.workers[0], machine_thread(sleeps_and_releases, NULL));
	(void)machine_door(machine_monitor, NULL);
}

static void setup_submitted(void)
{
	struct wf_thread *t;

	setup(1);
	(void)machine_kthread(&wf_rt.workers[0]);
	machine_queue(&wf_rt.workers[0], machine_thread(takes_lock, NULL));
	t = machine_thread(releases, NULL);
	machine_stranger(submits, t);
	(void)machine_door(machine_monitor, NULL);
}

/* The kernel thread that there is carries another worker, and its thread never waits. */
static void setup_computing(void)
{
	setup(2);
	(void)machine_kthread(&wf_rt.workers[0]);
	machine_queue(&wf_rt.workers[0], machine_thread(computes, NULL));
	machine_queue(&wf_rt.workers[1], machine_thread(releases, NULL));
	(void)machine_door(machine_monitor, NULL);
}

/* Nobody is left to sleep in the poller. */
static void setup_reading(void)
{
	nr_released = nr_takers = 0;
	reader_reset(1);
	reader_driver.has_waiters = is_reader_waiting;
	machine_is_full = true;
	machine_queue(&wf_rt.workers[0], machine_thread(reads_and_releases, NULL));
	machine_queue(&wf_rt.workers[0], machine_thread(takes_lock, NULL));
	machine_stranger(data_comes, NULL);
	(void)machine_door(machine_monitor, NULL);
}

static const struct model reading = { .setup = setup_reading, .check = check, .bound = 2 };
static const struct model computing = { .setup = setup_computing, .check = check, .bound = 2 };
static const struct model queued = { .setup = setup_queued, .check = check, .bound = 2 };
static const struct model elsewhere = { .setup = setup_elsewhere, .check = check, .bound = 2 };
static const struct model two = { .setup = setup_two, .check = check, .bound = 1, .walks = 100000 };
static const struct model submitted = {
	.setup = setup_submitted, .check = check, .bound = 1, .walks = 100000
};

TEST(who_is_queued_behind_a_call_runs)
{
	model_verify(&queued);
	model_verify(&elsewhere);
	model_verify(&computing);
}

TEST(who_is_woken_while_all_are_in_calls_runs)
{
	model_verify(&two);
	model_verify(&submitted);
	model_verify(&reading);
}

TEST(an_ended_call_that_lets_nobody_run_is_caught)
{
	model_catches(elsewhere, "takes_lock", "give way");
}
