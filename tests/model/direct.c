// SPDX-License-Identifier: Apache-2.0
/*
 * Direct waits: no state in which work is queued or a timer is due, and everybody sleeps, some of them in calls of their
 * threads.
 */
#include "model.h"
#include "reader.h"

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
static void loop_beside_any(void *arg)
{
	while (!are_others_dead(NULL)) {
		if (machine_wait_directly(are_others_dead, NULL, WF_NEVER))
			continue;
		wf_park_begin(0, WF_WAIT_SLEEP, 0);
		(void)wf_park(model_now() + WF_MS);
	}
}

static void loop(void *arg)
{
	(void)model_wait(is_other_asleep, NULL, WF_NEVER);
	has_begun = true;
	loop_beside_any(NULL);
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

/*
 * While nobody waits for a descriptor or a timer the loop needs no sleeper beside it. Then somebody does, and the other worker
 * goes on with a thread that computes until that one has got what it waits for.
 */
static uint32_t nr_waiting;

static bool is_waited_for(void)
{
	return wf_load_seq_cst(&nr_waiting) != 0;
}

static void wait_for_data(void *arg)
{
	(void)wf_fetch_add(&nr_waiting, 1u);
	reader_reads(NULL);
	(void)wf_fetch_sub(&nr_waiting, 1u);
}

static void bring_data(void *arg)
{
	model_step();
	reader_data_comes();
}

static void setup_beside(void (*wait)(void *))
{
	reader_reset(2);
	reader_driver.has_waiters = is_waited_for;
	nr_waiting = 0;
	machine_queue(&wf_rt.workers[0], machine_thread(loop_beside_any, NULL));
	machine_queue(&wf_rt.workers[1], machine_thread(wait, NULL));
}

static void setup_new_waiter(void)
{
	setup_beside(wait_for_data);
	machine_queue(&wf_rt.workers[1], machine_thread(hold_worker, NULL));
	machine_stranger(bring_data, NULL);
}

static void setup_new_timer(void)
{
	setup_beside(sleep_short);
	machine_queue(&wf_rt.workers[1], machine_thread(hold_worker, NULL));
}

static int64_t late_by;

static void sleep_long(void *arg)
{
	int64_t deadline = model_now() + 30 * WF_MS;

	wf_park_begin(0, WF_WAIT_SLEEP, 0);
	(void)wf_park(deadline);
	late_by = model_now() - deadline;
}

/* A timer that is not near: the loop may wait directly, but not so long. */
static void setup_far_timer(void)
{
	setup_beside(sleep_long);
	machine_queue(&wf_rt.workers[1], machine_thread(hold_worker, NULL));
}

static void check_far_timer(void)
{
	machine_check();
	model_expect(late_by < WF_MS, "a sleeper beside a direct wait is late");
}

/* The other worker has nothing left but to sleep, until it is called away. */
static void setup_waiter_left(void)
{
	setup_beside(wait_for_data);
	machine_stranger(bring_data, NULL);
	has_begun = true;
	submit_from_outside(hold_worker);
}

/* While the program runs narrow it rests then, instead of sleeping in the poller. */
static void setup_waiter_rested(void)
{
	setup_beside(nothing);
	wf_rt.width.is_narrow = 1;
	machine_queue(&wf_rt.workers[1], machine_thread(wait_for_data, NULL));
	machine_stranger(bring_data, NULL);
}

/* A timer so near that a direct wait would be over too late for it, though it ends no later. */
static int64_t near_deadline;

static void sleep_near(void *arg)
{
	near_deadline = model_now() + 8 * WF_MS;
	wf_park_begin(0, WF_WAIT_SLEEP, 0);
	(void)wf_park(near_deadline);
}

static void begin_and_hold(void *arg)
{
	has_begun = true;
	hold_worker(NULL);
}

static void wait_beside_near_timer(void *arg)
{
	(void)model_wait(is_begun, NULL, WF_NEVER);
	model_expect(!machine_wait_directly(is_one_dead, NULL, near_deadline),
		     "a direct wait ends when a timer is due");
}

static void setup_near_timer(void)
{
	reader_reset(2);
	reader_driver.has_waiters = is_waited_for;
	nr_waiting = 0;
	machine_queue(&wf_rt.workers[0], machine_thread(wait_beside_near_timer, NULL));
	machine_queue(&wf_rt.workers[1], machine_thread(sleep_near, NULL));
	machine_queue(&wf_rt.workers[1], machine_thread(begin_and_hold, NULL));
	has_begun = false;
}

/* Two that came to a worker together: it keeps the first, and who began to wait directly meanwhile has to take the other. */
static void setup_inbox(void)
{
	reader_reset(2);
	reader_driver.has_waiters = is_waited_for;
	nr_waiting = 0;
	machine_queue(&wf_rt.workers[0], machine_thread(loop_beside_any, NULL));
	wf_inbox_push(&wf_rt.workers[1], machine_thread(hold_worker, NULL));
	wf_inbox_push(&wf_rt.workers[1], machine_thread(nothing, NULL));
}

static const struct model far_timer = {
	.setup = setup_far_timer, .check = check_far_timer, .bound = 1, .walks = 20000
};

#define MODEL(name, b)                                                                             \
	static const struct model name = {                                                         \
		.setup = setup_##name, .check = machine_check, .bound = (b), .walks = 20000        \
	}
MODEL(submitters, 1);
MODEL(timer, 1);
MODEL(neighbour, 1);
MODEL(new_waiter, 1);
MODEL(new_timer, 1);
MODEL(waiter_left, 1);
MODEL(waiter_rested, 1);
MODEL(near_timer, 0);
MODEL(inbox, 2);

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

TEST(who_comes_to_wait_beside_a_direct_wait_has_a_poller)
{
	model_verify(&new_waiter);
}

TEST(a_timer_beside_a_direct_wait_has_a_poller)
{
	model_verify(&new_timer);
}

TEST(a_direct_wait_ends_before_a_timer_that_is_not_near)
{
	model_verify(&far_timer);
}

TEST(who_waited_already_keeps_a_poller)
{
	model_verify(&waiter_left);
}

TEST(a_worker_that_rests_leaves_a_poller)
{
	model_verify(&waiter_rested);
}

TEST(a_direct_wait_that_ends_at_a_timer_is_none)
{
	model_verify(&near_timer);
}

TEST(of_several_that_came_together_a_direct_wait_takes_some)
{
	model_verify(&inbox);
}
