// SPDX-License-Identifier: Apache-2.0
/*
 * Signals to the process: somebody who wants it gets it, whatever becomes of those who wanted it before. It lies in the
 * kernel while nobody does, and stop signals and SIGCONT undo each other.
 */
#include "linux/signals.h"
#include "signal_cast.h"

#include "tap.h"

static void by_kill(void *self)
{
	signal_kill(SIGUSR1);
}

static void outside(void)
{
	machine_stranger(signal_from_outside, (void *)SIGUSR1);
}

/* The door posts, while the target is on its way to its CPU. */
static void setup_door(void)
{
	cast_begin(1);
	target = signal_thread(0, spins, 0);
	outside();
}

static void setup_door_park(void)
{
	cast_begin(1);
	target = signal_thread(0, parks_on, 0);
	outside();
}

/* Nobody wants it at first: it lies in the kernel. */
static void setup_parked(void)
{
	cast_begin(1);
	target = signal_thread(0, unblocks, ONE);
	outside();
}

static void setup_parked_waited(void)
{
	cast_begin(1);
	target = signal_thread(0, waits, ONE);
	outside();
}

/* Older ones lie in the kernel when a newer one is sent. */
static void queues_two(void *arg)
{
	signal_queue_from_outside(RT, 0);
	signal_queue_from_outside(RT, 1);
}

static void unblocks_then_queues(void *self)
{
	const struct wf_siginfo third = { .code = SI_QUEUE, .kill = { .pid = 1, .value = 2 } };

	signal_mask(SIG_UNBLOCK, lx_bit(RT));
	signal_call(__NR_rt_sigqueueinfo, (uint64_t)wf_rt.pid, RT, (uint64_t)&third);
	signal_spin(&nr_rt, 3);
}

static bool has_two(void *arg)
{
	return lx.parked & lx_bit(RT) && signal_nr_pending() + lx.nr_sigqs == 2;
}

static void waits_for_two_then_queues(void *self)
{
	(void)model_wait(has_two, NULL, WF_NEVER);
	unblocks_then_queues(self);
}

static void setup_order(void)
{
	cast_begin(1);
	target = signal_thread(0, waits_for_two_then_queues, lx_bit(RT));
	machine_stranger(queues_two, NULL);
}

/* The thread that it is meant for blocks it meanwhile; the other one has it then. */
static void blocks(void *self)
{
	signal_mask(SIG_BLOCK, ONE);
	signal_step();
}

static void setup_blocks(void)
{
	cast_begin(1);
	other = signal_thread(0, blocks, 0);
	target = signal_thread(0, spins, 0);
	outside();
}

static void setup_ends(void)
{
	cast_begin(1);
	other = signal_thread(0, ends, 0);
	target = signal_thread(0, spins, 0);
	outside();
}

static void setup_ends_parked(void)
{
	cast_begin(1);
	other = signal_thread(0, ends, 0);
	target = signal_thread(0, unblocks_later, ONE);
	outside();
}

/* The thread that it woke from a call finds that the other one took it: the call is made again, or interrupted by the next signal. */
static void parks_for_two(void *self)
{
	model_expect(signal_call(NR_PARK, 0, 0, 0) == 0, "a handler with SA_RESTART ended a call");
	spins_for_both(self);
}

static bool has_one(void *arg)
{
	(void)arg;
	return nr_one;
}

static void one_to_process_two_to_target(void *arg)
{
	struct wf_siginfo two = { .signo = SIGUSR2, .code = SI_QUEUE };

	signal_from_outside((void *)SIGUSR1);
	(void)model_wait(has_one, NULL, WF_NEVER);
	(void)lx_signal_post(lx_tid(target), SIGUSR2, &two);
}

static void setup_taken(void)
{
	cast_begin(2);
	target = signal_thread(0, parks_for_two, 0);
	other = signal_thread(1, unblocks, ONE);
	machine_stranger(one_to_process_two_to_target, NULL);
}

/* Sent by a thread of the process, which blocks it. */
static void setup_kill(void)
{
	cast_begin(2);
	target = signal_thread(0, spins, 0);
	(void)signal_thread(1, by_kill, ONE);
}

static void setup_kill_waited(void)
{
	cast_begin(1);
	target = signal_thread(0, waits, ONE);
	(void)signal_thread(0, by_kill, ONE);
}

/* A wait or a handler has it, and one of them only. */
static void setup_look_or_handler(void)
{
	cast_begin(1);
	other = signal_thread(0, waits_shortly, ONE);
	target = signal_thread(0, unblocks_later, ONE);
	outside();
}

static void setup_wait_or_handler(void)
{
	cast_begin(1);
	other = signal_thread(0, waits_a_while, ONE);
	target = signal_thread(0, unblocks_later, ONE);
	outside();
}

/* A timer expires three times; what is not delivered was counted. */
static void expires_three_times(void *sig)
{
	for (int i = 0; i < 3; i++)
		signal_timer_expires(sig);
}

static void spins_for_timer(void *self)
{
	signal_spin(&nr_expired, 3);
}

static void unblocks_timer(void *self)
{
	signal_mask(SIG_UNBLOCK, lx_bit(RT));
	spins_for_timer(self);
}

static void setup_timer(void)
{
	cast_begin(1);
	target = signal_thread(0, unblocks_timer, lx_bit(RT));
	machine_stranger(expires_three_times, (void *)RT);
}

static void setup_timer_of_thread(void)
{
	setup_timer();
	signal_timer_for(target);
}

/* --- stop signals --- */

static void spins_until_continued(void *self)
{
	signal_spin(&nr_continued, 1);
}

static void check_stopped_once(void)
{
	cast_check();
	model_expect(signal_nr_stops() == 1, "stopped more often than once");
}

/* Each of two threads has a stop signal when the process is continued. */
static void post_stops(void *arg)
{
	struct lx_thread *both[] = { target, other };

	for (int i = 0; i < 2; i++) {
		struct wf_siginfo info = { .signo = SIGTTOU, .code = SI_KERNEL };

		(void)lx_signal_post(lx_tid(both[i]), SIGTTOU, &info);
	}
	signal_continue_stopped(NULL);
}

static void setup_two_stops(void)
{
	cast_begin(1);
	target = signal_bound_thread(spins_until_continued, 0);
	other = signal_bound_thread(spins_until_continued, 0);
	machine_stranger(post_stops, NULL);
}

/* One that comes before the process has stopped. */
static void stop_and_continue(void *arg)
{
	signal_from_outside((void *)SIGTSTP);
	signal_continue_any_time(NULL);
}

static void setup_stop_and_continue(void)
{
	cast_begin(1);
	target = signal_thread(0, spins_until_continued, 0);
	machine_stranger(stop_and_continue, NULL);
}

#define MODEL(name, judge, b, w)                                                                   \
	static const struct model model_##name = {                                                 \
		.setup = setup_##name, .check = (judge), .bound = (b), .walks = (w)                \
	}
MODEL(door, cast_check, 2, 1000);
MODEL(door_park, cast_check, 1, 1000);
MODEL(parked, cast_check, 2, 1000);
MODEL(parked_waited, cast_check, 1, 1000);
MODEL(order, cast_check, 2, 1000);
MODEL(blocks, cast_check, 1, 1000);
MODEL(ends, cast_check, 1, 1000);
MODEL(ends_parked, cast_check, 1, 1000);
MODEL(taken, cast_check, 1, 1000);
MODEL(kill, cast_check, 1, 1000);
MODEL(kill_waited, cast_check, 1, 1000);
MODEL(look_or_handler, cast_check, 1, 1000);
MODEL(wait_or_handler, cast_check, 1, 1000);
MODEL(timer, cast_check, 1, 1000);
MODEL(timer_of_thread, cast_check, 1, 1000);
MODEL(two_stops, check_stopped_once, 0, 1000);
MODEL(stop_and_continue, cast_check, 1, 1000);

TEST(a_thread_on_its_way_to_a_cpu_gets_it)
{
	model_verify(&model_door);
	model_verify(&model_door_park);
}

TEST(who_starts_to_want_it_gets_what_lay_in_the_kernel)
{
	model_verify(&model_parked);
	model_verify(&model_parked_waited);
}

TEST(what_lay_in_the_kernel_comes_before_what_is_sent_now)
{
	model_verify(&model_order);
}

TEST(another_thread_gets_it_when_the_first_blocks_it)
{
	model_verify(&model_blocks);
}

TEST(another_thread_gets_it_when_the_first_ends)
{
	model_verify(&model_ends);
	model_verify(&model_ends_parked);
}

TEST(a_call_goes_on_when_another_thread_took_the_signal)
{
	model_verify(&model_taken);
}

TEST(what_a_thread_sends_to_the_process_arrives)
{
	model_verify(&model_kill);
	model_verify(&model_kill_waited);
}

TEST(either_a_wait_or_a_handler_gets_it)
{
	model_verify(&model_look_or_handler);
	model_verify(&model_wait_or_handler);
}

TEST(each_expiry_of_a_timer_is_delivered_or_counted)
{
	model_verify(&model_timer);
	model_verify(&model_timer_of_thread);
}

TEST(a_stop_from_before_a_continue_stops_nobody)
{
	model_verify(&model_two_stops);
	model_verify(&model_stop_and_continue);
}

TEST(a_stop_without_a_look_for_a_continue_is_caught)
{
	model_catches(model_stop_and_continue, "stop_process", "look");
}

TEST(a_park_in_the_kernel_that_does_not_look_again_is_caught)
{
	model_catches(model_parked, "lx_signal_set_mask", "look");
	model_catches(model_parked, "lx_signal_set_mask", "store");
}

TEST(an_end_that_does_not_look_again_is_caught)
{
	model_catches(model_ends, "lx_signal_retarget", "look");
}
