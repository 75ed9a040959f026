// SPDX-License-Identifier: Apache-2.0
/*
 * Submitters against sleepers: no state in which work is queued, everybody sleeps and nobody was woken.
 */
#include "machine.h"
#include "model.h"

#include "tap.h"

static void nothing(void *arg)
{
	model_step();
}

static void submit(void *arg)
{
	wf_worker_ready(arg);
}

static struct wf_thread *work(void)
{
	struct wf_thread *t = machine_thread(nothing, NULL);

	t->home = &wf_rt.workers[0];
	return t;
}

static void setup_strangers(void)
{
	machine_reset(1);
	(void)machine_kthread(&wf_rt.workers[0]);
	machine_stranger(submit, work());
	machine_stranger(submit, work());
}

static void setup_two_workers(void)
{
	machine_reset(2);
	(void)machine_kthread(&wf_rt.workers[0]);
	(void)machine_kthread(&wf_rt.workers[1]);
	machine_stranger(submit, work());
}

static void setup_vacant(void)
{
	machine_reset(2);
	(void)machine_kthread(NULL);
	(void)machine_kthread(NULL);
	machine_stranger(submit, work());
	machine_stranger(submit, work());
}

/* The submitter never comes back to its own queue: somebody else must take what it queued. */
static bool never(void *arg)
{
	return machine_nr_dead() > 0;
}

static void submit_and_block(void *arg)
{
	submit(arg);
	(void)model_wait(never, NULL, WF_NEVER);
}

static struct wf_thread *setup_with_busy_submitter(void)
{
	struct wf_thread *t;

	machine_reset(2);
	(void)machine_kthread(&wf_rt.workers[0]);
	(void)machine_kthread(&wf_rt.workers[1]);
	t = work();
	machine_queue(&wf_rt.workers[0], machine_thread(submit_and_block, t));
	return t;
}

static void setup_busy_submitter(void)
{
	(void)setup_with_busy_submitter();
}

static void setup_busy_submitter_vacant(void)
{
	struct wf_thread *t;

	machine_reset(2);
	(void)machine_kthread(&wf_rt.workers[0]);
	(void)machine_kthread(NULL);
	t = work();
	machine_queue(&wf_rt.workers[0], machine_thread(submit_and_block, t));
}

static void sleep_short(void *arg)
{
	wf_park_begin(0, WF_WAIT_SLEEP, 0);
	(void)wf_park(model_now() + WF_MS);
}

static void setup_timers(void)
{
	machine_reset(2);
	(void)machine_kthread(&wf_rt.workers[0]);
	(void)machine_kthread(&wf_rt.workers[1]);
	machine_queue(&wf_rt.workers[0], machine_thread(sleep_short, NULL));
	machine_queue(&wf_rt.workers[1], machine_thread(sleep_short, NULL));
}

static void sleep_shorter(void *arg)
{
	wf_park_begin(0, WF_WAIT_SLEEP, 0);
	(void)wf_park(model_now() + WF_MS / 2);
}

/* Two earliest timers at the same time, while somebody sleeps in the poller. */
static void setup_two_timers(void)
{
	machine_reset(3);
	for (int i = 0; i < 3; i++)
		(void)machine_kthread(&wf_rt.workers[i]);
	machine_queue(&wf_rt.workers[1], machine_thread(sleep_short, NULL));
	machine_queue(&wf_rt.workers[2], machine_thread(sleep_shorter, NULL));
}

/* More wake-ups than sleepers: a token given up late must not swallow somebody's. */
static void setup_three_strangers(void)
{
	machine_reset(2);
	for (int i = 0; i < 2; i++)
		(void)machine_kthread(&wf_rt.workers[i]);
	for (int i = 0; i < 3; i++) {
		struct wf_thread *t = work();

		t->home = &wf_rt.workers[i & 1];
		machine_stranger(submit, t);
	}
}

static void wake_anybody(void *arg)
{
	wf_idle_wake();
}

static void one_event(void *arg)
{
	machine_event();
}

static void setup_event(void)
{
	machine_reset(1);
	(void)machine_kthread(&wf_rt.workers[0]);
	machine_stranger(wake_anybody, NULL);
	machine_stranger(submit, work());
	machine_stranger(one_event, NULL);
}

static void make_turns_short(void)
{
	for (uint32_t i = 0; i < wf_rt.nr_workers; i++)
		wf_rt.workers[i].turn_ns = 0;
}

/* An idle worker beside one that is said to come to its work soon sleeps a nap; that it comes is not promised. */
static void setup_warm(void)
{
	setup_busy_submitter();
	make_turns_short();
}

/* So does who has peers of its own beside a thread whose peer is there. */
static void setup_beside_peer(void)
{
	struct wf_thread *t = setup_with_busy_submitter();

	t->peer_here = 15;
	for (uint32_t i = 0; i < wf_rt.nr_workers; i++)
		wf_rt.workers[i].peers_here = 15;
}

/* An event on its way to the worker where the thread ran last, while that one is about to go to sleep. */
static void park_here(void *arg)
{
	wf_park_begin(0, WF_WAIT_SLEEP, 0);
	(void)wf_park(model_now() + WF_MS);
	model_step();
}

static void setup_event_for_another(void)
{
	machine_reset(2);
	make_turns_short();
	for (int i = 0; i < 2; i++) {
		(void)machine_kthread(&wf_rt.workers[i]);
		machine_queue(&wf_rt.workers[0], machine_thread(park_here, NULL));
	}
}

static void hold(void *arg)
{
	(void)model_wait(never, NULL, WF_NEVER);
}

/* To a worker that may be about to sleep, by one who goes on. */
static void send_and_hold(void *arg)
{
	wf_worker_ready_on(&wf_rt.workers[1], arg);
	(void)model_wait(never, NULL, WF_NEVER);
}

static void setup_sent(void)
{
	struct wf_thread *t;

	machine_reset(2);
	(void)machine_kthread(&wf_rt.workers[0]);
	(void)machine_kthread(&wf_rt.workers[1]);
	t = work();
	machine_queue(&wf_rt.workers[0], machine_thread(send_and_hold, t));
}

static uint32_t nr_submitted;

static bool are_two_idle(void *arg)
{
	return wf_rt.nr_idle >= 2 || nr_submitted;
}

static void submit_to_sleepers(void *arg)
{
	(void)model_wait(are_two_idle, NULL, WF_NEVER);
	nr_submitted++;
	submit(arg);
}

/* Of two that come at once the first keeps its worker: who finds it has to wake somebody for the other. */
static void setup_held(void)
{
	struct wf_thread *t;

	machine_reset(2);
	nr_submitted = 0;
	t = machine_thread(hold, NULL);
	t->home = &wf_rt.workers[0];
	(void)machine_kthread(&wf_rt.workers[0]);
	(void)machine_kthread(&wf_rt.workers[1]);
	machine_stranger(submit_to_sleepers, t);
	machine_stranger(submit_to_sleepers, work());
}

#define MODEL(name, b)                                                                             \
	static const struct model name = {                                                         \
		.setup = setup_##name, .check = machine_check, .bound = (b), .walks = 20000        \
	}
MODEL(strangers, 3);
MODEL(two_workers, 2);
MODEL(vacant, 1);
MODEL(busy_submitter, 2);
MODEL(busy_submitter_vacant, 2);
MODEL(warm, 2);
MODEL(beside_peer, 2);
MODEL(event_for_another, 1);
MODEL(timers, 1);
MODEL(two_timers, 1);
MODEL(sent, 2);
static const struct model held = { .setup = setup_held, .check = machine_check, .bound = 1 };
MODEL(three_strangers, 1);
MODEL(event, 3);

TEST(work_from_outside_wakes_the_sleeper)
{
	model_verify(&strangers);
}

TEST(work_from_outside_wakes_one_of_two)
{
	model_verify(&two_workers);
}

TEST(work_from_outside_staffs_a_vacant_worker)
{
	model_verify(&vacant);
}

TEST(work_of_a_busy_worker_is_taken_by_a_sleeper)
{
	model_verify(&busy_submitter);
}

TEST(work_of_a_busy_worker_is_taken_by_a_vacant_one)
{
	model_verify(&busy_submitter_vacant);
}

TEST(work_that_should_have_come_soon_is_taken_after_a_nap)
{
	model_verify(&warm);
}

TEST(work_that_is_beside_its_peer_is_taken_after_a_nap)
{
	model_verify(&beside_peer);
}

TEST(a_thread_sent_to_where_it_ran_last_is_not_left_there)
{
	model_verify(&event_for_another);
}

TEST(timers_wake_sleepers_and_leave_no_token)
{
	model_verify(&timers);
}

TEST(a_thread_sent_to_a_worker_that_goes_to_sleep_runs)
{
	model_verify(&sent);
}

TEST(who_finds_work_wakes_another_for_the_rest)
{
	model_verify(&held);
}

TEST(two_first_timers_at_once_leave_no_token)
{
	model_verify(&two_timers);
}

TEST(three_submitters_and_two_sleepers_lose_nothing)
{
	model_verify(&three_strangers);
}

TEST(a_waker_that_comes_too_late_passes_nothing_over)
{
	model_verify(&event);
}

TEST(a_submitter_without_its_fence_is_caught)
{
	model_catches(busy_submitter, "ready_by_thread", "fence");
}
