// SPDX-License-Identifier: Apache-2.0
/*
 * Shells (native/shell.c, native/joiner.c, native/maker.c): threads that are spawned, begun by a shell that is called or made, joined,
 * cancelled, no room for a shell, and the end of main. No function runs twice or not at all, even if those that run wait for it; one caller joins, no wake-up reaches a
 * later wait, and no canceller another thread.
 */
#include "native/handle.h"
#include "native/joiner.h"
#include "native/maker.h"
#include "native/shell.h"
#include "sync.h"

#include "tap.h"

#define MOST 3 /* threads, shells */

struct wf_kthread *wf_self_come_in(void);
struct lx_config lx_config;
struct lx_process lx;

static struct weft_thread handles[MOST];
static struct wf_shell shells[MOST];
static weft_scope roots[MOST];         /* by shell */
static struct weft_thread *runs[MOST]; /* by shell: what it is */
static int nr_handles, nr_made, most_made, nr_refused;
static int nr_runs[MOST], nr_joins, nr_begun, nr_ended;
static bool is_over;
static int most_alive, nr_gone;  /* room for so many shells; of those that were made */
static bool shells_end;          /* each with its first function */
static bool has_room_for_makers; /* two at most: the second one after the first one has left */
static struct wf_thread *makers[2];
static int nr_makers, nr_makers_gone;
static struct wf_spin maker_lock;
static uint32_t is_maker_there;

/* --- what shell.c asks of linux/ and for handles --- */

struct wf_kthread *wf_self_come_in(void)
{
	return wf_self_kthread();
}

bool lx_shell_may_inherit(const struct lx_thread *self)
{
	return true;
}

void lx_shell_inherit(const struct lx_thread *self, struct lx_shell_heritage *out)
{
	*out = (struct lx_shell_heritage){ 0 };
}

bool lx_shell_is_plain(const struct lx_thread *self)
{
	return true;
}

void lx_shell_leave(struct lx_thread *self)
{
}

void lx_shell_rest(struct lx_thread *self)
{
}

void lx_shell_pass_on(void)
{
}

void lx_shell_begin(struct lx_thread *self, const struct lx_shell_heritage *h)
{
	wf_store_seq_cst(&self->sig_mask, h->mask);
}

void wf_handle_put(const struct wf_thread *self, struct weft_thread *t)
{
	wf_store_release(&t->state, WF_USE_FREE);
}

/* --- the cast --- */

/* True: one is made, which is called there. It is parked until then. */
static bool make(struct wf_shelf *shelf)
{
	struct wf_shell *s;

	wf_yield(); /* it is the program's code, which is preempted anywhere */
	if (nr_made == most_made || nr_made - nr_gone >= most_alive)
		return false;
	s = &shells[nr_made++];
	s->shelf = shelf;
	model_expect(wf_unpark(s->core, WF_WAKE_EVENT), "it was made twice");
	return true;
}

/* As wf_make_maker(). */
static bool make_maker(void)
{
	bool ret = true;

	if (wf_load_seq_cst(&is_maker_there))
		return true;
	wf_spin_lock(&maker_lock);
	if (!is_maker_there) {
		ret = has_room_for_makers;
		model_expect(!ret || (nr_makers == nr_makers_gone &&
				      wf_unpark(makers[nr_makers++], WF_WAKE_EVENT)),
			     "too many makers");
		wf_store_seq_cst(&is_maker_there, ret);
	}
	wf_spin_unlock(&maker_lock);
	return ret;
}

/* As weft_thread_spawn(): false, and it will not run. */
static bool spawn_one(struct weft_thread *t)
{
	enum wf_shell_spawn how;
	struct wf_shelf *shelf;

	t->is_joined = 0;
	wf_store_relaxed(&t->root, NULL);
	wf_store_release(&t->state, WF_USE_RUNNING);
	how = wf_shell_spawn(me(), 0, t, &shelf);
	if (how == WF_SPAWN_QUEUED) {
		wf_yield();
		if (make_maker() || !wf_shell_withdraw(me(), 0, shelf, t))
			return true;
	}
	if (how == WF_SPAWN_BEGINS)
		return true;
	if (how == WF_SPAWN_MAKE && (make(shelf) || !wf_shell_not_made(me(), 0, shelf, t)))
		return true;
	nr_refused++;
	return false;
}

/* As in native/make.c. */
static bool serve(void)
{
	struct wf_shelf *shelf;

	if (!wf_shell_call_to_stuck(me(), 0, &shelf) || make(shelf))
		return true;
	(void)wf_shell_not_made(me(), 0, shelf, NULL);
	return false;
}

static bool leave(void)
{
	bool ret;

	wf_spin_lock(&maker_lock);
	wf_store_seq_cst(&is_maker_there, 0u);
	ret = !wf_shell_is_any_queued(me());
	if (!ret)
		wf_store_seq_cst(&is_maker_there, 1u);
	nr_makers_gone += ret;
	wf_spin_unlock(&maker_lock);
	return ret;
}

static void is_maker(void *arg)
{
	for (;;) {
		if (serve()) {
			if (wf_maker_rest(me(), wf_shell_is_stuck))
				continue;
			if (leave())
				return;
		}
		sleep_undisturbed();
	}
}

static void (*function)(struct weft_thread *t);
static bool was_cancelled[MOST]; /* by thread: it has seen that */

/* As run() of native/thread.c. */
static void is_shell(void *arg)
{
	struct wf_shell *s = arg;
	struct weft_thread *t;
	bool wants = false;

	t = wf_shell_arrive(me(), s, &wants);
	if (!t)
		(void)wf_shell_next(me(), s, &t, &wants);
	while (t) {
		if (wants && !make(s->shelf))
			(void)wf_shell_not_made(me(), 0, s->shelf, NULL);
		wants = false;
		runs[s - shells] = t;
		wf_shell_begin(me(), s, t, &roots[s - shells]);
		was_cancelled[t - handles] = wf_load_seq_cst(&t->is_cancelled);
		nr_begun++;
		nr_runs[t - handles]++;
		if (function)
			function(t);
		if (shells_end) {
			nr_gone++;
			(void)wf_joiner_tell(t);
			break;
		}
		(void)wf_shell_next(me(), s, &t, &wants);
	}
	nr_ended++;
}

/* False: somebody else joins it. */
static bool join_until(struct weft_thread *t, int64_t until)
{
	struct wf_joiner join = { 0 };

	while (wf_load_acquire(&t->state) == WF_USE_RUNNING) {
		int ret = THROUGH_SIGNALS(wf_joiner_await(me(), t, &join, until));

		if (ret == -EBUSY)
			return false;
		if (ret == -ETIMEDOUT) {
			sleep_undisturbed();
			until = WF_NEVER;
			continue;
		}
		model_expect(ret == 0, "a join failed");
	}
	if (!join.is_claimed && wf_exchange(&t->is_joined, 1u))
		return false;
	model_expect(t->state == WF_USE_DONE, "joined before its end");
	nr_joins++;
	return true;
}

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

static void spawns_all(void *arg)
{
	bool is_there[MOST];

	for (int i = 0; i < nr_handles; i++)
		is_there[i] = spawn_one(&handles[i]);
	for (int i = 0; i < nr_handles; i++)
		if (is_there[i])
			(void)join_until(&handles[i], WF_NEVER);
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

/* The main thread has ended. */
static void end_main(void *arg)
{
	void (*hook)(void);

	wf_store_seq_cst(&lx.main_has_ended, true);
	hook = wf_load_seq_cst(&lx_config.on_main_end);
	if (hook)
		hook();
}

/* most: as many shells can be made, which all have room. */
static void begin_shells(uint32_t nr_workers, int nr, int most, void (*f)(struct weft_thread *t))
{
	machine_object_bytes = sizeof(struct lx_thread);
	begin(nr_workers);
	wf_shell_forget();
	lx.main_has_ended = false;
	lx_config.on_main_end = NULL;
	nr_handles = nr;
	most_made = most;
	wf_maker_forget();
	most_alive = most;
	shells_end = false;
	has_room_for_makers = true;
	nr_gone = nr_makers = nr_makers_gone = 0;
	is_maker_there = 0;
	maker_lock = (struct wf_spin){ 0 };
	for (int i = 0; i < 2; i++) {
		makers[i] = machine_thread(is_maker, NULL);
		makers[i]->state = WF_PARKED;
	}
	nr_made = nr_joins = nr_begun = nr_ended = nr_refused = 0;
	is_over = false;
	function = f;
	for (int i = 0; i < MOST; i++) {
		handles[i] = (struct weft_thread){ 0 };
		shells[i] = (struct wf_shell){ .left_at = UINT64_MAX };
		runs[i] = NULL;
		nr_runs[i] = 0;
		was_cancelled[i] = false;
	}
	for (int i = 0; i < most; i++) {
		shells[i].core = machine_thread(is_shell, &shells[i]);
		shells[i].core->state = WF_PARKED;
	}
}

/* Shells rest, parked, which machine_check() would take for threads that were forgotten. */
static void check_uses(void)
{
	model_expect(is_over && nr_joins == 2, "a join has not returned");
	model_expect(nr_runs[0] == 2 && nr_begun == 2, "a function ran too often, or not");
	model_expect(wf_state_of(shells[0].core->state) == WF_PARKED, "the shell does not rest");
}

static void check_all(void)
{
	for (int i = 0; i < nr_handles; i++)
		model_expect(nr_runs[i] <= 1, "a function ran twice");
	model_expect(nr_begun + nr_refused == nr_handles, "a function did not run");
	model_expect(nr_joins == nr_begun, "a join has not returned");
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

static void interrupt_shell(void *arg)
{
	model_step();
	if (nr_begun)
		(void)wf_unpark(shells[0].core, WF_WAKE_INTERRUPTED);
}

static void setup_interrupted(void)
{
	begin_shells(1, 1, 1, NULL);
	add(0, joins_each, NULL);
	machine_stranger(interrupt_shell, NULL);
}

/* --- several --- */

static void setup_crowd(void)
{
	begin_shells(2, 3, 3, NULL);
	add(0, spawns_all, NULL);
}

static struct wf_thread *waiting;
static bool is_told;

static void tell_first(void)
{
	wf_store_seq_cst(&is_told, true);
	if (wf_load_seq_cst(&waiting))
		(void)wf_unpark(waiting, WF_WAKE_EVENT);
}

/* The first one waits for the last one. */
static void waits_for_last(struct weft_thread *t)
{
	if (t == &handles[0]) {
		wf_park_begin(0, WF_WAIT_SLEEP, 0);
		wf_store_seq_cst(&waiting, me());
		if (wf_load_seq_cst(&is_told))
			(void)wf_park_abort();
		else
			(void)wf_park(WF_NEVER);
	}
	if (t == &handles[nr_handles - 1])
		tell_first();
}

static void setup_waiting(void)
{
	begin_shells(2, 3, 3, waits_for_last);
	waiting = NULL;
	is_told = false;
	add(0, spawns_all, NULL);
}

/* --- no room for another pthread --- */

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

static const struct model joined = {
	.setup = setup_joined, .check = check_uses, .bound = 1, .walks = 5000
};
static const struct model late = {
	.setup = setup_late, .check = check_uses, .bound = 1, .walks = 5000
};
static const struct model interrupted = { .setup = setup_interrupted,
					  .check = check_uses,
					  .bound = 2 };
static const struct model crowd = {
	.setup = setup_crowd, .check = check_all, .bound = 1, .walks = 5000
};
static const struct model waits = {
	.setup = setup_waiting, .check = check_all, .bound = 1, .walks = 5000
};
static const struct model no_room = {
	.setup = setup_no_room, .check = check_all, .bound = 1, .walks = 5000
};
static const struct model two_spawners = {
	.setup = setup_two_spawners, .check = check_all, .bound = 1, .walks = 5000
};
static const struct model no_maker = {
	.setup = setup_no_maker, .check = check_all, .bound = 1, .walks = 5000
};
static const struct model ending = {
	.setup = setup_ending, .check = check_all, .bound = 1, .walks = 5000
};
static const struct model passing = {
	.setup = setup_passing, .check = check_all, .bound = 1, .walks = 5000
};
static const struct model left = {
	.setup = setup_left, .check = check_left, .bound = 1, .walks = 5000
};
static const struct model none = { .setup = setup_none, .check = check_none, .bound = 1 };
static const struct model cancelled = {
	.setup = setup_cancelled, .check = check_all, .bound = 2, .walks = 5000
};
static const struct model in_turn = {
	.setup = setup_cancelled_in_turn, .check = check_all, .bound = 2, .walks = 5000
};
static const struct model same_shelf = {
	.setup = setup_same_shelf, .check = check_all, .bound = 1, .walks = 20000
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

TEST(no_signal_ends_its_rest)
{
	model_verify(&interrupted);
}

TEST(each_of_a_crowd_runs_once)
{
	model_verify(&crowd);
}

TEST(those_that_wait_for_one_another_all_begin)
{
	model_verify(&waits);
}

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
	model_verify(&left);
}

TEST(two_joins_without_a_lock_are_caught)
{
	struct model m = two;

	m.bound = 2;
	model_catches(m, "wf_spin_lock", "exchange");
}
