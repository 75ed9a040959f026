// SPDX-License-Identifier: Apache-2.0
/*
 * One thread that parks, and everybody who may wake it: two wakers that find it on a list, a signal that may
 * come at any time, its deadline. The rest of the path is the real one: worker loop, switch, inbox.
 */
#include "machine.h"
#include "model.h"

#include "tap.h"

#define ALL_REASONS 4

static struct wf_thread *sleeper;
static struct wf_spin list_lock;
static bool is_listed, is_running;
static int nr_wins[ALL_REASONS], nr_reasons[ALL_REASONS];

static void list_sleeper(bool listed)
{
	wf_spin_lock(&list_lock);
	is_listed = listed;
	wf_spin_unlock(&list_lock);
}

static void park_once(uint32_t flags, int64_t deadline)
{
	enum wf_reason reason;

	wf_park_begin(flags, WF_WAIT_FUTEX, 1);
	list_sleeper(true);
	is_running = false;
	reason = wf_park(deadline);
	model_expect(!is_running, "the thread runs twice");
	is_running = true;
	list_sleeper(false);
	model_expect(reason > WF_WAKE_NONE && reason < ALL_REASONS, "woken for no reason");
	nr_reasons[reason]++;
}

static void park_uninterrupted(void *arg)
{
	park_once(0, WF_NEVER);
}

static void park_interruptible(void *arg)
{
	park_once(WF_INTR, WF_NEVER);
}

static void park_until_deadline_twice(void *arg)
{
	park_once(0, model_now() + WF_MS);
	park_once(0, model_now() + WF_MS);
}

static void park_or_abort(void *arg)
{
	enum wf_reason reason;

	wf_park_begin(WF_INTR, WF_WAIT_FUTEX, 1);
	list_sleeper(true);
	reason = wf_park_abort();
	list_sleeper(false);
	nr_reasons[reason]++;
}

/* The sleeper takes the lock before it counts, so the win is counted first. */
static void unpark(enum wf_reason reason)
{
	nr_wins[reason] += wf_unpark(sleeper, reason);
}

static bool can_wake(void *arg)
{
	return is_listed && !list_lock.held;
}

static void wake(void *arg)
{
	(void)model_wait(can_wake, NULL, WF_NEVER);
	wf_spin_lock(&list_lock);
	if (is_listed)
		unpark(WF_WAKE_EVENT);
	wf_spin_unlock(&list_lock);
}

static void interrupt(void *arg)
{
	wf_spin_lock(&list_lock);
	unpark(WF_WAKE_INTERRUPTED);
	wf_spin_unlock(&list_lock);
}

static void expire(void *arg)
{
	model_step();
	(void)wf_wheel_expire(&wf_rt.wheel, model_now() + WF_SEC);
}

static void begin(void (*script)(void *))
{
	machine_reset(1);
	(void)machine_kthread(&wf_rt.workers[0]);
	sleeper = machine_thread(script, NULL);
	machine_queue(&wf_rt.workers[0], sleeper);
	list_lock = (struct wf_spin){ 0 };
	is_listed = false;
	is_running = true;
	for (int i = 0; i < ALL_REASONS; i++)
		nr_wins[i] = nr_reasons[i] = 0;
}

static void setup_wakers(void)
{
	begin(park_uninterrupted);
	machine_stranger(wake, NULL);
	machine_stranger(wake, NULL);
}

static void setup_interrupted(void)
{
	begin(park_interruptible);
	machine_stranger(wake, NULL);
	machine_stranger(interrupt, NULL);
}

static void setup_uninterruptible(void)
{
	begin(park_uninterrupted);
	machine_stranger(wake, NULL);
	machine_stranger(interrupt, NULL);
}

static void setup_deadline(void)
{
	begin(park_until_deadline_twice);
	machine_stranger(wake, NULL);
	machine_stranger(expire, NULL);
}

static void setup_abort(void)
{
	begin(park_or_abort);
	machine_stranger(wake, NULL);
	machine_stranger(interrupt, NULL);
}

static void check(void)
{
	machine_check();
	for (int i = WF_WAKE_EVENT; i < ALL_REASONS; i++)
		model_expect(
			i == WF_WAKE_TIMEOUT || nr_wins[i] == nr_reasons[i],
			"a waker won and the thread did not hear of it, or the other way round");
}

static void check_uninterruptible(void)
{
	check();
	model_expect(!nr_reasons[WF_WAKE_INTERRUPTED], "a wait was interrupted that must not be");
}

static const struct model uninterruptible = { .setup = setup_uninterruptible,
					      .check = check_uninterruptible,
					      .bound = 2 };
static const struct model wakers = { .setup = setup_wakers, .check = check, .bound = 3 };
static const struct model interrupted = { .setup = setup_interrupted, .check = check, .bound = 2 };
static const struct model deadline = { .setup = setup_deadline, .check = check, .bound = 2 };
static const struct model aborted = { .setup = setup_abort, .check = check, .bound = 3 };

TEST(one_of_two_wakers_wins)
{
	model_verify(&wakers);
}

TEST(a_waker_and_a_signal_are_one_wake)
{
	model_verify(&interrupted);
}

TEST(a_wait_that_is_not_for_signals_is_not_ended_by_one)
{
	model_verify(&uninterruptible);
}

TEST(a_waker_and_a_deadline_are_one_wake)
{
	model_verify(&deadline);
}

TEST(a_park_given_up_keeps_the_reason)
{
	model_verify(&aborted);
}

TEST(an_unpark_that_is_not_atomic_is_caught)
{
	model_catches(wakers, "win", "cas");
}

TEST(a_commit_that_is_not_atomic_is_caught)
{
	model_catches(wakers, "commit_park", "cas");
}
