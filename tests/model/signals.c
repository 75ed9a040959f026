// SPDX-License-Identifier: Apache-2.0
/*
 * Signals to a thread: none is lost or comes twice, wherever the thread is at that moment, what waits is woken, what
 * is restartable restarts, and nothing ends with EINTR unless a handler ran.
 *
 * Every look and every order that this rests on is left out in turn, and found missing.
 */
#include "signal_cast.h"

#include "tap.h"

/* The target does this, and somebody who is no thread posts to it. */
static void play(void (*program)(void *), uint64_t mask, void (*poster)(void *))
{
	cast_begin(1);
	target = signal_thread(0, program, mask);
	machine_stranger(poster, target);
}

static void setup_running(void)
{
	play(spins, 0, posts_one);
}

static void setup_leaves_the_gate(void)
{
	play(calls_then_spins, 0, posts_one);
}

/* The target is ready, or on its way to or from a CPU: sender and target share one. */
static void sends_one(void *self)
{
	signal_send(target, SIGUSR1);
}

static void setup_queued(void)
{
	cast_begin(1);
	target = signal_thread(0, spins, 0);
	(void)signal_thread(0, sends_one, 0);
}

/* Two threads switch to each other on the only worker, where a switch takes no lock and orders nothing. */
static void yields(void *self)
{
	signal_call(NR_YIELD, 0, 0, 0);
	signal_call(NR_YIELD, 0, 0, 0);
}

static void yields_then_spins(void *self)
{
	signal_call(NR_YIELD, 0, 0, 0);
	spins(self);
}

static void setup_switched(void)
{
	play(yields_then_spins, 0, posts_one);
	(void)signal_thread(0, yields, 0);
	wf_rt.workers[0].rq.is_private = true;
}

/* The end of its slice would make it look, too. */
static void check_at_once(void)
{
	cast_check();
	model_expect(!one_took, "delivered late");
}

/* It is preempted, and goes on, meanwhile. */
static void setup_preempted(void)
{
	play(spins, 0, posts_one);
	(void)signal_thread(0, ends, 0);
	machine_stranger(ends_slice, &wf_rt.workers[0]);
}

/* The second signal at any moment of the first one's delivery. */
static void setup_nested(void)
{
	play(spins_for_both, 0, posts_both);
	cast_one_waits_for_two();
}

static void spins_for_three(void *self)
{
	signal_spin(&nr_rt, 3);
}

static void setup_queue(void)
{
	play(spins_for_three, 0, posts_three);
}

static void setup_park(void)
{
	play(parks, 0, posts_one);
	lx.action[SIGUSR1].flags &= ~(uint64_t)SA_RESTART;
}

static void setup_park_on(void)
{
	play(parks_on, 0, posts_one);
}

static void setup_read(void)
{
	play(reads, 0, posts_one);
	lx.action[SIGUSR1].flags &= ~(uint64_t)SA_RESTART;
}

static void setup_read_on(void)
{
	play(reads_on, 0, posts_one);
}

static void setup_suspend(void)
{
	play(suspends, ONE, posts_one);
}

static void setup_unblock(void)
{
	play(unblocks, ONE, posts_one);
}

static void setup_sigwait(void)
{
	play(waits, ONE, posts_one);
}

static void setup_end(void)
{
	play(ends, 0, posts_one);
}

/* Its slot is that of a thread which has nothing to do with it when the sender comes to it. */
static void makes_another(void *self)
{
	(void)signal_thread(0, ends, 0);
}

static bool has_ended(void *arg)
{
	return target->base.state == WF_FREE;
}

static void makes_another_later(void *self)
{
	(void)model_wait(has_ended, NULL, WF_NEVER);
	makes_another(self);
}

static void setup_new_thread(void)
{
	cast_begin(2);
	target = signal_thread(0, ends, 0);
	only_tid = lx_tid(target);
	(void)signal_thread(1, makes_another_later, 0);
	machine_stranger(posts_one_to_tid, (void *)(uintptr_t)only_tid);
}

/* A handler ends when the second signal comes. */
static void setup_two(void)
{
	play(spins_for_both, 0, posts_both);
}

static void setup_bound(void (*program)(void *))
{
	cast_begin(1);
	target = signal_bound_thread(program, 0);
	machine_stranger(posts_one, target);
}

static void setup_bound_spins(void)
{
	setup_bound(spins);
}

static void setup_bound_parks(void)
{
	setup_bound(parks_on);
}

static const struct model model_switched = {
	.setup = setup_switched, .check = check_at_once, .bound = 2, .walks = 1000
};

#define MODEL(name, b, w)                                                                          \
	static const struct model model_##name = {                                                 \
		.setup = setup_##name, .check = cast_check, .bound = (b), .walks = (w)             \
	}
MODEL(running, 2, 1000);
MODEL(leaves_the_gate, 2, 1000);
MODEL(queued, 2, 1000);
MODEL(preempted, 1, 4000);
MODEL(nested, 2, 1000);
MODEL(queue, 1, 1000);
MODEL(park, 2, 1000);
MODEL(park_on, 1, 1000);
MODEL(read, 2, 1000);
MODEL(read_on, 1, 1000);
MODEL(suspend, 1, 1000);
MODEL(unblock, 2, 1000);
MODEL(sigwait, 1, 1000);
MODEL(end, 1, 1000);
MODEL(new_thread, 1, 1000);
MODEL(two, 1, 1000);
MODEL(bound_spins, 1, 1000);
MODEL(bound_parks, 1, 1000);

TEST(a_running_thread_is_interrupted)
{
	model_verify(&model_running);
}

TEST(a_thread_that_leaves_the_gate_sees_it)
{
	model_verify(&model_leaves_the_gate);
}

TEST(a_thread_that_waits_for_a_cpu_sees_it)
{
	model_verify(&model_queued);
	model_verify(&model_switched);
}

TEST(a_preempted_thread_sees_it_when_it_goes_on)
{
	model_verify(&model_preempted);
}

TEST(a_handler_that_begins_sees_the_next_one)
{
	model_verify(&model_nested);
}

TEST(real_time_signals_come_all_and_in_order)
{
	model_verify(&model_queue);
}

TEST(a_parked_thread_is_woken)
{
	model_verify(&model_park);
	model_verify(&model_park_on);
}

TEST(a_call_in_the_kernel_is_interrupted)
{
	model_verify(&model_read);
	model_verify(&model_read_on);
}

TEST(a_suspended_thread_is_woken_and_gets_its_mask_back)
{
	model_verify(&model_suspend);
}

TEST(who_unblocks_gets_what_is_pending)
{
	model_verify(&model_unblock);
}

TEST(sigwait_gets_it)
{
	model_verify(&model_sigwait);
}

TEST(what_comes_to_a_thread_that_ends_is_gone)
{
	model_verify(&model_end);
}

TEST(a_new_thread_gets_nothing_that_was_sent_to_an_old_one)
{
	model_verify(&model_new_thread);
}

TEST(a_thread_that_returns_from_a_handler_sees_the_next_one)
{
	model_verify(&model_two);
}

TEST(a_bound_thread_gets_it)
{
	model_verify(&model_bound_spins);
	model_verify(&model_bound_parks);
}

TEST(a_post_that_does_not_order_all_processors_is_caught)
{
	model_catches(model_switched, "model_membarrier", "call");
}

TEST(a_gate_exit_without_its_test_is_caught)
{
	model_catches(model_running, "wf_arch_gate_exit", "test");
	model_catches(model_running, "wf_arch_gate_exit", "window");
}

TEST(a_handler_entered_without_its_test_is_caught)
{
	model_catches(model_nested, "wf_arch_enter_handler", "test");
	model_catches(model_nested, "wf_arch_enter_handler", "window");
}

TEST(a_return_from_a_handler_without_its_test_is_caught)
{
	struct model deeper = model_two;

	deeper.bound = 2;
	model_catches(deeper, "wf_arch_restorer", "test");
	model_catches(deeper, "wf_arch_restorer", "window");
}

TEST(a_preempted_thread_that_goes_on_without_its_test_is_caught)
{
	model_catches(model_preempted, "wf_arch_sigreturn", "test");
	model_catches(model_preempted, "wf_arch_sigreturn", "window");
}

TEST(a_call_made_without_its_test_is_caught)
{
	model_catches(model_read, "wf_arch_raw_call", "test");
	model_catches(model_read, "wf_arch_raw_call", "window");
}

TEST(a_kick_that_does_not_look_at_the_attention_word_is_caught)
{
	model_catches(model_running, "lx_signal_in_runtime", "look");
}

TEST(a_park_that_does_not_look_again_is_caught)
{
	model_catches(model_park, "wf_park", "look");
	model_catches(model_park, "wf_park_begin", "store");
}

TEST(a_mask_that_is_stored_late_is_caught)
{
	model_catches(model_unblock, "lx_signal_set_mask", "store");
}
