// SPDX-License-Identifier: Apache-2.0
/*
 * A kernel thread in a call that may block, and the monitor that takes its worker meanwhile: exactly one of
 * the two keeps it.
 */
#include "machine.h"
#include "model.h"

#include "tap.h"

static void expect_carried(void)
{
	struct wf_kthread *k = wf_self_kthread();

	model_expect(k->worker && k->worker->kthread == k,
		     "a thread runs on a worker that another one carries");
	model_expect(k->cur == wf_self(), "a thread runs that is not the current one");
}

static void call(bool certain)
{
	wf_call_enter(certain);
	model_step();
	wf_call_leave();
	expect_carried();
	model_step();
	expect_carried();
}

static void one_call(void *arg)
{
	call(false);
}

static bool is_carried_by_another(void *arg)
{
	struct wf_kthread *k = wf_rt.workers[0].kthread;

	return (k && k != arg) ||
	       machine_nr_dead(); /* whom submit_to_vacant() sent has been there */
}

/* Loses worker 0 to another kernel thread in the middle, and goes on with worker 1. */
static void three_calls(void *arg)
{
	bool is_worker_0;

	call(false);
	is_worker_0 = wf_self_kthread()->worker == &wf_rt.workers[0];
	wf_call_enter(true);
	if (is_worker_0)
		(void)model_wait(is_carried_by_another, wf_self_kthread(), WF_NEVER);
	wf_call_leave();
	call(false);
}

static bool is_vacant(void *arg)
{
	return wf_rt.workers[0].is_vacant || machine_nr_dead();
}

static void submit_to_vacant(void *arg)
{
	(void)model_wait(is_vacant, NULL, WF_NEVER);
	wf_worker_ready(arg);
}

static void compute(void *arg)
{
	model_step();
	expect_carried();
}

static void retake(void *arg)
{
	(void)wf_call_retake(&wf_rt.workers[0]);
}

static uint32_t nr_want, nr_wanted;
static bool has_begun;

static bool has_begun_slice(void *arg)
{
	return has_begun;
}

static bool have_wanted_cpu(void *arg)
{
	return nr_wanted == nr_want;
}

/* Its worker is wanted for another just as it hands it on. */
static void wait_undisturbed(void *arg)
{
	has_begun = true;
	wf_rt.workers[0].slice_began = model_now() - 2 * WF_WAKE_GRANULARITY_NS;
	wf_call_enter(true);
	(void)model_wait(have_wanted_cpu, NULL, WF_NEVER);
	model_expect(!machine_is_kicked(),
		     "a wait is disturbed for the sake of a worker that it has handed on");
	wf_call_leave();
}

static void want_cpu(void *arg)
{
	(void)model_wait(has_begun_slice, NULL, WF_NEVER);
	wf_monitor_preempt_for_wake(&wf_rt.workers[0], NULL);
	nr_wanted++;
}

static void setup_wanted(void)
{
	has_begun = false;
	nr_wanted = 0;
	nr_want = 1;
	machine_reset(1);
	(void)machine_kthread(&wf_rt.workers[0]);
	(void)machine_kthread(NULL);
	machine_queue(&wf_rt.workers[0], machine_thread(wait_undisturbed, NULL));
	machine_queue(&wf_rt.workers[0], machine_thread(compute, NULL));
	(void)machine_door(want_cpu, NULL);
}

static void setup_wanted_by_two(void)
{
	setup_wanted();
	nr_want = 2;
	machine_stranger(want_cpu, NULL);
}

static void setup_one(void)
{
	machine_reset(1);
	(void)machine_kthread(&wf_rt.workers[0]);
	(void)machine_kthread(NULL);
	machine_queue(&wf_rt.workers[0], machine_thread(one_call, NULL));
	machine_queue(&wf_rt.workers[0], machine_thread(compute, NULL));
	(void)machine_door(retake, NULL);
}

/* A call that ends just as its worker is taken. */
static bool is_in_call, is_retaking, has_retaken;

static bool may_retake(void *arg)
{
	return is_in_call;
}

static bool may_return(void *arg)
{
	return is_retaking;
}

static bool may_end(void *arg)
{
	return has_retaken;
}

static void call_until_retake(void *arg)
{
	wf_call_enter(false);
	is_in_call = true;
	(void)model_wait(may_return, NULL, WF_NEVER);
	wf_call_leave();
	(void)model_wait(may_end, NULL, WF_NEVER);
	expect_carried();
}

static void retake_in_call(void *arg)
{
	(void)model_wait(may_retake, NULL, WF_NEVER);
	is_retaking = true;
	retake(NULL);
	has_retaken = true;
}

static void setup_met(void)
{
	machine_reset(1);
	is_in_call = is_retaking = has_retaken = false;
	(void)machine_kthread(&wf_rt.workers[0]);
	(void)machine_kthread(NULL);
	machine_queue(&wf_rt.workers[0], machine_thread(call_until_retake, NULL));
	(void)machine_door(retake_in_call, NULL);
}

/* The worker that is asked for is another's by now, and its kernel thread in a call again, with another worker. */
static void call_with_another(void *arg)
{
	bool is_worker_0;

	wf_call_enter(false);
	is_in_call = true;
	(void)model_wait(may_return, NULL, WF_NEVER);
	wf_call_leave();
	is_worker_0 = wf_self_kthread()->worker == &wf_rt.workers[0];
	wf_call_enter(true);
	if (is_worker_0)
		(void)model_wait(is_carried_by_another, wf_self_kthread(), WF_NEVER);
	wf_call_leave();
	wf_call_enter(false);
	(void)model_wait(may_end, NULL, WF_NEVER);
	wf_call_leave();
	expect_carried();
}

static void setup_late(void)
{
	machine_reset(2);
	is_in_call = is_retaking = has_retaken = false;
	(void)machine_kthread(&wf_rt.workers[0]);
	(void)machine_kthread(NULL);
	machine_queue(&wf_rt.workers[0], machine_thread(call_with_another, NULL));
	machine_stranger(submit_to_vacant, machine_thread(compute, NULL));
	(void)machine_door(retake_in_call, NULL);
}

static void setup_three(void)
{
	machine_reset(2);
	(void)machine_kthread(&wf_rt.workers[0]);
	(void)machine_kthread(NULL);
	machine_queue(&wf_rt.workers[0], machine_thread(three_calls, NULL));
	machine_stranger(submit_to_vacant, machine_thread(compute, NULL));
	(void)machine_door(retake, NULL);
}

/* Nobody monitors: only the call itself can have handed the worker on. */
static bool has_run;

static bool has_behind_run(void *arg)
{
	return has_run;
}

static void call_unknown(void *arg)
{
	wf_call_enter_unknown();
	(void)model_wait(has_behind_run, NULL, WF_NEVER);
	wf_call_leave();
	expect_carried();
	wf_call_enter_unknown();
	model_expect(wf_self_kthread()->worker, "a worker is handed on for nobody");
	wf_call_leave();
}

static void run_behind(void *arg)
{
	has_run = true;
}

static void rests(void *arg)
{
}

static void setup_unknown(void)
{
	machine_reset(1);
	has_run = false;
	(void)machine_kthread(&wf_rt.workers[0]);
	(void)machine_kthread(NULL);
	machine_queue(&wf_rt.workers[0], machine_thread(call_unknown, NULL));
	machine_queue(&wf_rt.workers[0], machine_thread(run_behind, NULL));
	(void)machine_door(rests, NULL);
}

static const struct model unknown = { .setup = setup_unknown, .check = machine_check, .bound = 1 };
static const struct model one = { .setup = setup_one, .check = machine_check, .bound = 2 };
static const struct model wanted = { .setup = setup_wanted, .check = machine_check, .bound = 2 };
static const struct model wanted_by_two = {
	.setup = setup_wanted_by_two, .check = machine_check, .bound = 1, .walks = 200000
};
static const struct model met = { .setup = setup_met, .check = machine_check, .bound = 1 };
static const struct model late = { .setup = setup_late, .check = machine_check, .bound = 1 };
static const struct model three = {
	.setup = setup_three, .check = machine_check, .bound = 1, .walks = 50000
};

TEST(a_worker_taken_during_a_call_is_kept_by_one)
{
	model_verify(&one);
}

TEST(a_call_that_is_not_known_keeps_nobody_waiting)
{
	model_verify(&unknown);
}

TEST(a_retake_that_comes_late_takes_what_is_there_now)
{
	model_verify(&late);
	model_verify(&three);
}

TEST(a_call_that_ends_as_its_worker_is_taken_waits_for_that)
{
	model_verify(&met);
}

TEST(who_has_handed_its_worker_on_is_not_disturbed_for_it)
{
	model_verify(&wanted);
	model_verify(&wanted_by_two);
}

TEST(a_return_that_is_not_atomic_is_caught)
{
	model_catches(one, "wf_call_leave", "cas");
}

TEST(a_retake_that_is_not_atomic_is_caught)
{
	struct model deeper = one;

	deeper.bound = 3;
	model_catches(deeper, "wf_call_retake", "cas");
}
