// SPDX-License-Identifier: Apache-2.0
/*
 * Direct waits: no state in which work is queued or a timer is due, and everybody sleeps, some of them in calls of their
 * threads.
 */
#include "machine.h"
#include "model.h"

#include "tap.h"

#define NR_OTHERS 2

static bool are_others_dead(void *arg)
{
	return machine_nr_dead() >= NR_OTHERS;
}

static bool is_one_dead(void *arg)
{
	return machine_nr_dead() > 0;
}

/* The other worker sleeps in the poller, so that the loop may wait directly: the others begin now. */
static bool has_begun;

static bool is_other_asleep(void *arg)
{
	return wf_rt.nr_idle > 0;
}

static bool is_begun(void *arg)
{
	return has_begun;
}

/* An event loop: its event comes when all others have ended. */
static void loop(void *arg)
{
	(void)model_wait(is_other_asleep, NULL, WF_NEVER);
	has_begun = true;
	while (!are_others_dead(NULL)) {
		if (machine_wait_directly(are_others_dead, NULL, WF_NEVER))
			continue;
		wf_park_begin(0, WF_WAIT_SLEEP, 0);
		(void)wf_park(model_now() + WF_MS);
	}
}

static void nothing(void *arg)
{
	model_step();
}

static void submit(void *arg)
{
	(void)model_wait(is_begun, NULL, WF_NEVER);
	wf_worker_ready(arg);
}

/* Keeps its worker until the other thread has ended. */
static void hold_worker(void *arg)
{
	(void)model_wait(is_one_dead, NULL, WF_NEVER);
}

static void sleep_short(void *arg)
{
	wf_park_begin(0, WF_WAIT_SLEEP, 0);
	(void)wf_park(model_now() + WF_MS / 2);
}

static void setup_loop(void)
{
	machine_reset(2);
	has_begun = false;
	(void)machine_kthread(&wf_rt.workers[0]);
	(void)machine_kthread(&wf_rt.workers[1]);
	machine_queue(&wf_rt.workers[0], machine_thread(loop, NULL));
}

static void submit_from_outside(void (*fn)(void *))
{
	struct wf_thread *t = machine_thread(fn, NULL);

	t->home = &wf_rt.workers[0];
	machine_stranger(submit, t);
}

/* Of two, one keeps the sleeper's worker busy: the other one needs that of the loop. */
static void setup_submitters(void)
{
	setup_loop();
	submit_from_outside(hold_worker);
	submit_from_outside(nothing);
}

/* The only sleeper is called away, and a timer has to wake somebody. */
static void setup_timer(void)
{
	setup_loop();
	machine_queue(&wf_rt.workers[1], machine_thread(sleep_short, NULL));
	submit_from_outside(hold_worker);
}

/* Work that a thread beside it queues, and does not come back to. */
static void submit_and_hold(void *arg)
{
	sleep_short(NULL); /* so that the loop finds its worker asleep */
	wf_worker_ready(arg);
	hold_worker(NULL);
}

static void setup_neighbour(void)
{
	struct wf_thread *t;

	setup_loop();
	t = machine_thread(nothing, NULL);
	t->home = &wf_rt.workers[1];
	machine_queue(&wf_rt.workers[1], machine_thread(submit_and_hold, t));
}

#define MODEL(name, b)                                                                             \
	static const struct model name = {                                                         \
		.setup = setup_##name, .check = machine_check, .bound = (b), .walks = 20000        \
	}
MODEL(submitters, 1);
MODEL(timer, 1);
MODEL(neighbour, 1);

TEST(work_from_outside_ends_a_direct_wait)
{
	model_verify(&submitters);
}

TEST(the_last_sleeper_is_replaced_in_the_poller)
{
	model_verify(&timer);
}

TEST(work_of_a_busy_worker_ends_a_direct_wait)
{
	model_verify(&neighbour);
}
