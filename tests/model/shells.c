// SPDX-License-Identifier: Apache-2.0
/*
 * Shells (native/shell.c, native/joiner.c): threads that are spawned, begun by a shell that is called or made, joined, cancelled, and
 * the end of main. No function runs twice or not at all, even if those that run wait for it; one caller joins, no wake-up reaches a
 * later wait, and no canceller another thread. shells_room.c has what they do without room.
 */
#include "shells.h"

#include "tap.h"

/* One after the other, in the same object. */
static void joins_each(void *arg)
{
	for (int i = 0; i < 2; i++) {
		model_expect(spawn_one(&handles[0]), "refused");
		(void)join_until(&handles[0], arg ? model_now() + WF_MS : WF_NEVER);
		if (arg)
			sleep_undisturbed();
	}
	sleep_undisturbed();
	is_over = true;
}

static void spawns_in_turn(void *arg)
{
	for (int i = 0; i < nr_handles; i++)
		if (spawn_one(&handles[i]))
			(void)join_until(&handles[i], WF_NEVER);
	is_over = true;
}

/* Two at the same use. */
static void joins_first(void *arg)
{
	if (join_until(&handles[0], WF_NEVER))
		sleep_undisturbed();
}

static bool is_spawned;

static bool is_first_spawned(void *arg)
{
	return is_spawned;
}

static void spawns_and_joins_first(void *arg)
{
	model_expect(spawn_one(&handles[0]), "refused");
	wf_store_seq_cst(&is_spawned, true);
	joins_first(NULL);
}

static void waits_and_joins_first(void *arg)
{
	(void)model_wait(is_first_spawned, NULL, WF_NEVER);
	joins_first(NULL);
}

/* Shells rest, parked, which machine_check() would take for threads that were forgotten. */
static void check_uses(void)
{
	model_expect(is_over && nr_joins == 2, "a join has not returned");
	model_expect(nr_runs[0] == 2 && nr_begun == 2, "a function ran too often, or not");
	model_expect(wf_state_of(shells[0].core->state) == WF_PARKED, "the shell does not rest");
}

/* --- one after the other --- */

static void setup_joined(void)
{
	begin_shells(2, 1, 1, NULL); /* what has been joined leaves its room */
	add(0, joins_each, NULL);
}

static void setup_late(void)
{
	begin_shells(2, 1, 1, NULL);
	add(0, joins_each, "late");
	machine_stranger(expire, NULL);
}

static void signal_shell(void *arg)
{
	for (int i = 0; i < 2; i++) {
		model_step();
		if (nr_begun)
			(void)wf_unpark(shells[0].core, WF_WAKE_INTERRUPTED);
	}
}

static void setup_signalled(void)
{
	begin_shells(2, 1, 2, NULL); /* one more is made where the first one is away */
	add(0, joins_each, NULL);
	machine_stranger(signal_shell, NULL);
}

static void check_signalled(void)
{
	model_expect(is_over && nr_joins == 2, "a join has not returned");
	model_expect(nr_runs[0] == 2 && nr_begun == 2, "a function ran too often, or not");
}

/* --- several --- */

static void setup_crowd(void)
{
	begin_shells(2, 3, 3, NULL);
	add(0, spawns_all, NULL);
}

static void setup_waiting(void)
{
	begin_shells(2, 3, 3, waits_for_last);
	waiting = NULL;
	is_told = false;
	add(0, spawns_all, NULL);
}

/* --- cancellers --- */

static bool has_looked, has_found;

/* As weft_thread_cancel() of native/thread.c. */
static void cancel_first(void *arg)
{
	struct weft_thread *t = &handles[0];
	weft_scope *root;

	wf_store_seq_cst(&t->is_cancelled, 1u);
	(void)wf_fetch_add(&t->nr_cancelling, 1u);
	root = wf_load_seq_cst(&t->root);
	if (root) {
		has_found = true;
		model_step();
		model_expect(runs[root - roots] == t, "the next thread is cancelled");
	}
	wf_store_seq_cst(&has_looked, true);
	(void)wf_fetch_sub(&t->nr_cancelling, 1u);
}

static bool is_looked(void *arg)
{
	return has_looked;
}

static void outlives_canceller(struct weft_thread *t)
{
	model_step(); /* what the shell has stored may not be seen yet */
	if (t == &handles[0])
		(void)model_wait(is_looked, NULL, WF_NEVER);
}

static void begin_cancelled(void (*spawns)(void *arg), void (*f)(struct weft_thread *t))
{
	begin_shells(1, 2, 2, f);
	has_looked = has_found = false;
	add(0, spawns, NULL);
	machine_stranger(cancel_first, NULL);
}

static void setup_cancelled(void)
{
	begin_cancelled(spawns_all, NULL);
}

static void setup_cancelled_in_turn(void)
{
	begin_cancelled(spawns_in_turn, NULL);
}

static void setup_outliving(void)
{
	begin_cancelled(spawns_all, outlives_canceller);
}

static void check_outliving(void)
{
	check_all();
	model_expect(has_found || was_cancelled[0], "a cancel has gone by");
}

/* --- two joiners; nobody --- */

static void setup_two(void)
{
	begin_shells(2, 1, 1, NULL);
	is_spawned = false;
	add(0, spawns_and_joins_first, NULL);
	add(1, waits_and_joins_first, NULL);
}

static void check_two(void)
{
	model_expect(nr_joins == 1, "two have joined one, or nobody");
}

static void spawns_for_nobody(void *arg)
{
	handles[0].is_detached = true;
	model_expect(spawn_one(&handles[0]), "refused");
}

static void setup_detached(void)
{
	begin_shells(1, 1, 1, NULL);
	add(0, spawns_for_nobody, NULL);
	machine_stranger(end_main, NULL);
}

static void check_detached(void)
{
	model_expect(nr_runs[0] == 1 && nr_ended == 1, "a shell rests after the end of main");
}

static const struct model joined = {
	.setup = setup_joined, .check = check_uses, .bound = 1, .walks = 5000
};
static const struct model late = {
	.setup = setup_late, .check = check_uses, .bound = 1, .walks = 5000
};
static const struct model signalled = {
	.setup = setup_signalled, .check = check_signalled, .bound = 1, .walks = 20000
};
static const struct model crowd = {
	.setup = setup_crowd, .check = check_all, .bound = 1, .walks = 5000
};
static const struct model waits = {
	.setup = setup_waiting, .check = check_all, .bound = 1, .walks = 5000
};
static const struct model cancelled = {
	.setup = setup_cancelled, .check = check_all, .bound = 2, .walks = 5000
};
static const struct model in_turn = {
	.setup = setup_cancelled_in_turn, .check = check_all, .bound = 2, .walks = 5000
};
static const struct model outliving = {
	.setup = setup_outliving, .check = check_outliving, .bound = 2, .walks = 5000
};
static const struct model two = {
	.setup = setup_two, .check = check_two, .bound = 1, .walks = 5000
};
static const struct model detached = { .setup = setup_detached,
				       .check = check_detached,
				       .bound = 2 };

TEST(the_shell_of_one_that_was_joined_runs_the_next)
{
	model_verify(&joined);
}

TEST(a_join_that_is_late_comes_again_and_nothing_disturbs_it_in_between)
{
	model_verify(&late);
}

TEST(a_signal_ends_its_rest_and_no_order_is_lost)
{
	model_verify(&signalled);
}

TEST(each_of_a_crowd_runs_once)
{
	model_verify(&crowd);
}

TEST(those_that_wait_for_one_another_all_begin)
{
	model_verify(&waits);
}

TEST(no_canceller_reaches_the_next_thread)
{
	model_verify(&cancelled);
	model_verify(&in_turn);
}

TEST(no_cancel_goes_by)
{
	model_verify(&outliving);
}

TEST(one_of_two_joins_it)
{
	model_verify(&two);
}

TEST(none_rests_after_the_end_of_main)
{
	model_verify(&detached);
}

TEST(two_joins_without_a_lock_are_caught)
{
	struct model m = two;

	m.bound = 2;
	model_catches(m, "wf_spin_lock", "exchange");
}
