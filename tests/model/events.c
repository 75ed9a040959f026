// SPDX-License-Identifier: Apache-2.0
/*
 * Events (sync/event.c): nobody sleeps beside an event that was set while they waited, whoever else comes and goes; and an
 * event is not touched after a wait for it has returned.
 */
#include "sync/event.h"
#include "sync.h"

#include "tap.h"

static struct wf_sync_event event, buried;
static uint32_t nr_late, nr_found;

static void waits(void *arg)
{
	model_expect(THROUGH_SIGNALS(wf_event_wait(me(), &event, WF_NEVER)) == 0, "a wait failed");
	nr_found++;
}

static void waits_for_a_while(void *arg)
{
	int ret = wf_event_wait(me(), &event, model_now() + WF_MS);

	model_expect(ret == 0 || ret == -ETIMEDOUT, "a wait failed");
	nr_late += ret == -ETIMEDOUT;
	nr_found += ret == 0;
	sleep_undisturbed();
}

static void sets(void *arg)
{
	wf_event_set(me(), &event);
}

static bool is_waited_for(void *arg)
{
	return event.word == WF_EVENT_WAITERS;
}

/* The waiter goes on, although it is clear again by then. */
static void sets_for_a_moment(void *arg)
{
	(void)model_wait(is_waited_for, NULL, WF_NEVER);
	wf_event_set(me(), &event);
	wf_event_clear(&event);
}

/* Its memory is something else as soon as the wait has returned. */
static void waits_and_frees(void *arg)
{
	waits(NULL);
	memset(&event, 0x58, sizeof(event));
	buried = event;
}

static void begin_event(uint32_t nr_workers)
{
	begin(nr_workers);
	event = (struct wf_sync_event){ 0 };
	memset(&buried, 0, sizeof(buried));
	nr_late = nr_found = 0;
}

static void check_set(void)
{
	machine_check();
	model_expect(event.word == WF_EVENT_SET && !event.first, "the event is not as it was left");
	model_expect(nr_late + nr_found == nr_threads, "somebody did not return");
}

static void check_clear(void)
{
	machine_check();
	model_expect(!event.word && !event.first, "the event is not as it was left");
}

static void check_gone(void)
{
	machine_check();
	model_expect(!memcmp(&event, &buried, sizeof(event)), "an event was used that had gone");
}

static void setup_set(void)
{
	begin_event(2);
	add(0, waits, NULL);
	add(1, waits, NULL);
	add(0, sets, NULL);
	nr_found++; /* the setter */
}

static void setup_set_once(void)
{
	begin_event(2);
	add(0, waits, NULL);
	add(1, sets, NULL);
	nr_found++;
}

static void setup_late(void)
{
	begin_event(2);
	add(0, waits_for_a_while, NULL);
	add(1, waits_for_a_while, NULL);
	add(1, sets, NULL);
	nr_found++;
	machine_stranger(expire, NULL);
}

static void setup_late_once(void)
{
	begin_event(1);
	add(0, waits_for_a_while, NULL);
	machine_stranger(sets, NULL);
	machine_stranger(expire, NULL);
}

static void setup_moment(void)
{
	begin_event(2);
	add(0, waits, NULL);
	add(1, sets_for_a_moment, NULL);
}

static void setup_gone(void)
{
	begin_event(2);
	add(0, waits_and_frees, NULL);
	add(1, sets, NULL);
}

static void setup_outside(void)
{
	begin_event(1);
	add(0, waits, NULL);
	machine_stranger(waits, NULL);
	machine_stranger(sets, NULL);
	nr_found--; /* the stranger */
}

static void setup_gone_outside(void)
{
	begin_event(1);
	machine_stranger(waits_and_frees, NULL);
	add(0, sets, NULL);
}

static void setup_interrupted(void)
{
	begin_event(2);
	add(0, waits, NULL);
	add(1, sets, NULL);
	nr_found++;
	machine_stranger(interrupt_first, NULL);
}

static void setup_disturbed(void)
{
	begin_event(1);
	add(0, waits, NULL);
	machine_stranger(sets, NULL);
	machine_stranger(interrupt_first_in_vain, NULL);
}

#define MODEL(name, judge, b)                                                                      \
	static const struct model name = {                                                         \
		.setup = setup_##name, .check = (judge), .bound = (b), .walks = 2000               \
	}
MODEL(set, check_set, 1);
MODEL(set_once, check_set, 2);
MODEL(late, check_set, 1);
MODEL(late_once, check_set, 2);
MODEL(moment, check_clear, 1);
MODEL(gone, check_gone, 1);
MODEL(outside, check_set, 1);
MODEL(gone_outside, check_gone, 2);
MODEL(interrupted, check_set, 1);
MODEL(disturbed, check_set, 2);

TEST(all_waiters_find_it_set)
{
	model_verify(&set);
}

TEST(a_waiter_and_a_setter_do_not_miss_each_other)
{
	model_verify(&set_once);
}

TEST(a_time_out_and_a_setter_are_one)
{
	model_verify(&late);
}

TEST(a_time_out_and_a_setter_from_outside_are_one)
{
	model_verify(&late_once);
}

TEST(an_event_that_is_cleared_at_once_was_set)
{
	model_verify(&moment);
}

TEST(an_event_may_go_when_the_wait_has_returned)
{
	model_verify(&gone);
}

TEST(kernel_threads_that_are_not_ours_wait_and_set)
{
	model_verify(&outside);
}

TEST(an_event_may_go_when_their_wait_has_returned)
{
	model_verify(&gone_outside);
}

TEST(a_signal_ends_a_wait_and_the_next_one_is_complete)
{
	model_verify(&interrupted);
}

TEST(a_wait_goes_on_when_it_was_disturbed_in_vain)
{
	model_verify(&disturbed);
}

TEST(a_wait_that_goes_on_without_looking_is_caught)
{
	model_catches(disturbed, "wf_wait_begin_again", "look");
}

TEST(a_lock_that_is_not_atomic_is_caught)
{
	model_catches(set, "wf_event_lock", "cas");
}

TEST(a_set_that_is_not_atomic_is_caught)
{
	model_catches(set_once, "wf_event_set", "cas");
}

TEST(a_claim_that_is_not_atomic_is_caught)
{
	model_catches(late_once, "wf_wait_claim", "cas");
}

TEST(a_waiter_that_gives_up_without_looking_is_caught)
{
	model_catches(late_once, "wf_wait_give_up", "cas");
}
