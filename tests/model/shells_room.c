// SPDX-License-Identifier: Apache-2.0
/*
 * No room for another shell, or for the maker (native/shell.c, native/maker.c): each thread is refused or runs, whatever the shells that
 * run do, and nothing rests when main has ended.
 */
#include "shells.h"

#include "tap.h"

static void spawns_first_two(void *arg)
{
	bool is_there[2];

	for (int i = 0; i < 2; i++)
		is_there[i] = spawn_one(&handles[i]);
	for (int i = 0; i < 2; i++)
		if (is_there[i])
			(void)join_until(&handles[i], WF_NEVER);
}

static void spawns_one(void *arg)
{
	if (spawn_one(arg))
		(void)join_until(arg, WF_NEVER);
	sleep_undisturbed();
}

static void setup_no_room(void)
{
	begin_shells(2, 3, 1, NULL);
	add(0, spawns_all, NULL);
}

/* Each is gone before there is room for the next one. */
static void setup_ending(void)
{
	begin_shells(2, 3, 3, NULL);
	most_alive = 1;
	shells_end = true;
	add(0, spawns_all, NULL);
}

/* The first thread joins the third one, if that is not refused. */
static void grows(struct weft_thread *t)
{
	if (t == &handles[0] && spawn_one(&handles[2]))
		(void)join_until(&handles[2], WF_NEVER);
}

static void setup_tree(void)
{
	begin_shells(1, 3, 1, grows);
	add(0, spawns_first_two, NULL);
}

static void setup_no_maker(void)
{
	setup_ending();
	has_room_for_makers = false;
}

static void spawns_what_is_waited_for(void *arg)
{
	bool is_there[2];

	for (int i = 0; i < 2; i++)
		is_there[i] = spawn_one(&handles[i]);
	if (!is_there[1])
		tell_first();
	for (int i = 0; i < 2; i++)
		if (is_there[i])
			(void)join_until(&handles[i], WF_NEVER);
}

static void find_room(void *arg)
{
	model_step();
	most_alive++;
}

/* The one that runs waits for the one that is stuck. */
static void setup_passing(void)
{
	begin_shells(2, 2, 2, waits_for_last);
	most_alive = 1;
	waiting = NULL;
	is_told = false;
	add(0, spawns_what_is_waited_for, NULL);
	machine_stranger(find_room, NULL);
}

static void signal_maker(void *arg)
{
	for (int i = 0; i < 3; i++) {
		model_step();
		(void)wf_unpark(makers[0], WF_WAKE_INTERRUPTED);
	}
}

static void setup_signalled(void)
{
	setup_ending();
	machine_stranger(signal_maker, NULL);
}

static bool is_asked;
static struct wf_thread *rester;

static bool is_wanted(void)
{
	return wf_load_seq_cst(&is_asked);
}

static void rests_once(void *arg)
{
	wf_store_seq_cst(&rester, me());
	(void)wf_maker_rest(me(), is_wanted);
	sleep_undisturbed();
	is_over = true;
}

static void wakes_it(void *arg)
{
	wf_store_seq_cst(&is_asked, true);
	wf_maker_wake();
}

static void signal_it(void *arg)
{
	struct wf_thread *t;

	model_step();
	t = wf_load_seq_cst(&rester);
	if (t)
		(void)wf_unpark(t, WF_WAKE_INTERRUPTED);
}

static void setup_both(void)
{
	begin_shells(2, 0, 0, NULL);
	rester = NULL;
	is_asked = false;
	add(0, rests_once, NULL);
	add(1, wakes_it, NULL);
	machine_stranger(signal_it, NULL);
}

static void check_both(void)
{
	model_expect(is_over, "it was not woken");
}

static void setup_none(void)
{
	begin_shells(1, 2, 0, NULL);
	add(0, spawns_all, NULL);
}

static void setup_two_spawners(void)
{
	begin_shells(2, 2, 1, NULL);
	add(0, spawns_one, &handles[0]);
	add(1, spawns_one, &handles[1]);
}

/* The second one queues its thread where the first one is about to find that there is no room. */
static void setup_same_shelf(void)
{
	begin_shells(2, 3, 1, NULL);
	add(0, spawns_first_two, NULL);
	add(0, spawns_one, &handles[2]);
}

static void check_none(void)
{
	model_expect(is_over && nr_refused == 2 && !nr_begun, "a thread without a pthread");
}

/* The second one is queued behind a shell that is being made, which needs a maker. */
static void setup_left(void)
{
	begin_shells(2, 3, 3, NULL);
	most_alive = 1;
	shells_end = true;
	add(0, spawns_first_two, NULL);
	add(1, spawns_one, &handles[2]);
	machine_stranger(end_main, NULL);
}

static void check_left(void)
{
	check_all();
	model_expect(nr_makers == nr_makers_gone, "a maker rests after the end of main");
}

static const struct model no_room = {
	.setup = setup_no_room, .check = check_all, .bound = 1, .walks = 5000
};
static const struct model two_spawners = {
	.setup = setup_two_spawners, .check = check_all, .bound = 1, .walks = 5000
};
static const struct model same_shelf = {
	.setup = setup_same_shelf, .check = check_all, .bound = 1, .walks = 20000
};
static const struct model no_maker = {
	.setup = setup_no_maker, .check = check_all, .bound = 1, .walks = 5000
};
static const struct model ending = {
	.setup = setup_ending, .check = check_all, .bound = 1, .walks = 5000
};
static const struct model signalled = {
	.setup = setup_signalled, .check = check_all, .bound = 1, .walks = 20000
};
static const struct model both = {
	.setup = setup_both, .check = check_both, .bound = 1, .walks = 100000
};
static const struct model tree = {
	.setup = setup_tree, .check = check_all, .bound = 1, .walks = 20000
};
static const struct model passing = {
	.setup = setup_passing, .check = check_all, .bound = 1, .walks = 5000
};
static const struct model left = {
	.setup = setup_left, .check = check_left, .bound = 1, .walks = 5000
};
static const struct model none = { .setup = setup_none, .check = check_none, .bound = 1 };

TEST(without_room_for_more_shells_the_others_run_all)
{
	model_verify(&no_room);
}

TEST(without_room_for_a_maker_nothing_is_promised)
{
	model_verify(&no_maker);
}

TEST(what_is_stuck_begins_where_shells_end)
{
	model_verify(&ending);
}

TEST(a_signal_ends_the_rest_of_the_maker_and_it_is_woken_none_the_less)
{
	model_verify(&signalled);
	model_verify(&both);
}

TEST(nobody_who_has_room_joins_what_has_none)
{
	model_verify(&tree);
}

TEST(what_is_stuck_begins_when_there_is_room_again)
{
	model_verify(&passing);
}

TEST(of_two_spawners_without_room_none_is_forgotten)
{
	model_verify(&two_spawners);
	model_verify(&same_shelf);
}

TEST(without_any_shell_each_is_refused)
{
	model_verify(&none);
}

TEST(no_maker_rests_after_the_end_of_main)
{
	model_verify(&left);
}
