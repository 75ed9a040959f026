// SPDX-License-Identifier: Apache-2.0
/* The looks that the monitor need not take: every one costs a running thread tens of microseconds. */
#include "machine.h"
#include "model.h"
#include "reader.h"

#include "tap.h"

static uint32_t nr_turns; /* that have begun */
static uint32_t nr_over;  /* that may end */

static bool may_end(void *arg)
{
	return nr_over >= nr_turns;
}

static bool has_begun(void *arg)
{
	return nr_turns > nr_over;
}

static void takes_turns(void *arg)
{
	for (int i = 0; i < 2; i++) {
		nr_turns++;
		(void)model_wait(may_end, NULL, WF_NEVER);
		wf_yield();
	}
}

static int64_t look(void)
{
	return wf_monitor_tick(model_now()) - model_now();
}

/* Somebody is woken for a worker that has more to do anyhow, and whose threads take turns. */
static void look_twice(void *arg)
{
	(void)model_wait(has_begun, NULL, WF_NEVER);
	wf_monitor_preempt_for_wake(&wf_rt.workers[0], NULL);
	model_expect(look() <= WF_WAKE_GRANULARITY_NS,
		     "nobody looks whether a turn goes on for whom others are kept waiting");
	nr_over++;
	(void)model_wait(has_begun, NULL, WF_NEVER);
	model_expect(look() > WF_WAKE_GRANULARITY_NS,
		     "a turn that began after a wake-up is looked after");
	nr_over = UINT32_MAX;
	machine_monitor(NULL);
}

static void setup_turns(void)
{
	nr_turns = nr_over = 0;
	machine_reset(1);
	(void)machine_kthread(&wf_rt.workers[0]);
	(void)machine_door(look_twice, NULL);
	for (int i = 0; i < 2; i++)
		machine_queue(&wf_rt.workers[0], machine_thread(takes_turns, NULL));
}

static const struct model turns = { .setup = setup_turns, .check = machine_check };

TEST(a_wake_up_is_looked_after_for_one_turn)
{
	model_verify_walk(&turns, 100);
}

static bool has_reader(void)
{
	return wf_rt.workers[0].inbox;
}

/* The second look finds that the worker's own was long ago. */
static void look_for_events(void *arg)
{
	(void)model_wait(has_begun, NULL, WF_NEVER);
	reader_data_comes();
	wf_rt.workers[0].polled_at = wf_cpu_cycles();
	(void)look();
	model_expect(!has_reader(), "the monitor polls beside a worker that does");
	wf_rt.workers[0].polled_at = wf_cpu_cycles() - 3 * wf_span_cycles(WF_SPAN_POLL);
	(void)look();
	model_expect(has_reader(), "nobody polls");
	nr_over = UINT32_MAX;
	machine_monitor(NULL);
}

static void setup_events(void)
{
	nr_turns = nr_over = 0;
	reader_reset(1);
	(void)machine_door(look_for_events, NULL);
	machine_queue(&wf_rt.workers[0], machine_thread(reader_reads, NULL));
	machine_queue(&wf_rt.workers[0], machine_thread(takes_turns, NULL));
}

static const struct model events = { .setup = setup_events, .check = machine_check };

TEST(events_are_left_to_a_worker_that_polls)
{
	model_verify_walk(&events, 100);
}

static bool is_worker_asleep(void *arg)
{
	return wf_rt.nr_idle;
}

static bool never(void *arg)
{
	return false;
}

static bool stays_armed(void)
{
	wf_monitor_arm();
	(void)look();
	return wf_load_seq_cst(&wf_rt.monitor_armed);
}

static void arm_and_look(void *arg)
{
	(void)model_wait(is_worker_asleep, NULL, WF_NEVER);
	model_expect(!stays_armed(), "an idle program has ticks");
	model_expect(stays_armed(), "armed again at once, and disarmed for that");
	(void)model_wait(never, NULL, model_now() + 50 * WF_MS);
	(void)look();
	model_expect(!wf_load_seq_cst(&wf_rt.monitor_armed),
		     "a program that has become idle has ticks");
	(void)model_wait(never, NULL, model_now() + 50 * WF_MS);
	model_expect(!stays_armed(), "one that is idle for long has ticks after a moment's work");
	machine_monitor(NULL);
}

static void setup_moments(void)
{
	machine_reset(1);
	(void)machine_kthread(&wf_rt.workers[0]);
	(void)machine_door(arm_and_look, NULL);
}

static const struct model moments = { .setup = setup_moments, .check = machine_check };

TEST(what_is_idle_for_moments_stays_armed)
{
	model_verify_walk(&moments, 100);
}

static bool is_carried(void)
{
	struct wf_kthread *k = wf_rt.workers[0].kthread;

	return k && k->worker == &wf_rt.workers[0];
}

static void call_once(void)
{
	wf_call_enter(false);
	nr_turns++;
	(void)model_wait(may_end, NULL, WF_NEVER);
	wf_call_leave();
}

static void calls_shortly(void *arg)
{
	for (int i = 0; i < 3; i++)
		call_once();
}

static void look_at_short_calls(void *arg)
{
	for (int i = 0; i < 3; i++) {
		(void)model_wait(has_begun, NULL, WF_NEVER);
		(void)look();
		model_expect(is_carried(), "a worker is taken for a call that has just begun");
		nr_over++;
	}
	nr_over = UINT32_MAX;
	machine_monitor(NULL);
}

static bool breaks;

static void calls_for_long(void *arg)
{
	wf_self()->breaks_call = breaks;
	call_once();
}

/* A call that may be interrupted is, at the second look; what that does not end is handed on at the third. */
static void look_at_long_call(void *arg)
{
	(void)model_wait(has_begun, NULL, WF_NEVER);
	(void)look();
	model_expect(is_carried(), "a worker is taken at first sight");
	(void)look();
	model_expect(is_carried() == breaks,
		     breaks ? "a call is not interrupted first" : "a long call keeps its worker");
	(void)look();
	model_expect(!is_carried(), "a call that nothing ends keeps its worker");
	nr_over = UINT32_MAX;
	machine_monitor(NULL);
}

static void setup_calls(void (*door)(void *), void (*thread)(void *), bool may_break)
{
	nr_turns = nr_over = 0;
	breaks = may_break;
	machine_reset(1);
	(void)machine_kthread(&wf_rt.workers[0]);
	(void)machine_door(door, NULL);
	machine_queue(&wf_rt.workers[0], machine_thread(thread, NULL));
}

static void setup_short_calls(void)
{
	setup_calls(look_at_short_calls, calls_shortly, false);
}

static void setup_long_call(void)
{
	setup_calls(look_at_long_call, calls_for_long, false);
}

static void setup_breakable_call(void)
{
	setup_calls(look_at_long_call, calls_for_long, true);
}

static const struct model short_calls = { .setup = setup_short_calls, .check = machine_check };
static const struct model long_call = { .setup = setup_long_call, .check = machine_check };
static const struct model breakable = { .setup = setup_breakable_call, .check = machine_check };

TEST(short_calls_keep_their_worker)
{
	model_verify_walk(&short_calls, 100);
}

TEST(a_long_call_is_handed_on_at_the_second_look)
{
	model_verify_walk(&long_call, 100);
}

TEST(a_call_that_an_interruption_does_not_end_is_handed_on_at_the_third_look)
{
	model_verify_walk(&breakable, 100);
}

static void computes(void *arg)
{
	nr_turns++;
	(void)model_wait(may_end, NULL, WF_NEVER);
}

static void submit(void *arg)
{
	wf_worker_ready(arg);
}

static bool is_asleep_or_begun(void *arg)
{
	return is_worker_asleep(NULL) || has_begun(NULL);
}

/* A thread begins to run just as the last look found nobody. */
static void look_once(void *arg)
{
	(void)model_wait(is_asleep_or_begun, NULL, WF_NEVER);
	wf_monitor_arm();
	wf_rt.disarmed_at = model_now() - WF_SEC;
	(void)look();
	(void)model_wait(has_begun, NULL, WF_NEVER);
	model_expect(wf_load_seq_cst(&wf_rt.monitor_armed),
		     "nobody looks after a thread that computes");
	nr_over = UINT32_MAX;
	machine_monitor(NULL);
}

static void setup_beginning(void)
{
	struct wf_thread *t;

	nr_turns = nr_over = 0;
	machine_reset(1);
	(void)machine_kthread(&wf_rt.workers[0]);
	(void)machine_door(look_once, NULL);
	t = machine_thread(computes, NULL);
	t->home = &wf_rt.workers[0];
	machine_stranger(submit, t);
}

static const struct model beginning = {
	.setup = setup_beginning, .check = machine_check, .bound = 2, .walks = 20000
};

TEST(a_thread_that_begins_as_nobody_was_busy_is_looked_after)
{
	model_verify(&beginning);
}
