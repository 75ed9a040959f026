// SPDX-License-Identifier: Apache-2.0
/* Shared by the models of shells: spawners, joiners, the shells and the maker as native/thread.c and native/make.c have them. */
#ifndef WF_TESTS_MODEL_SHELLS_H
#define WF_TESTS_MODEL_SHELLS_H

#include "native/handle.h"
#include "native/joiner.h"
#include "native/maker.h"
#include "native/shell.h"
#include "sync.h"

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

void lx_shell_pass_on(struct lx_thread *self)
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

/* True: one is made, which is called to the shelf, or is for given alone. It is parked until then. */
static bool make(struct wf_shelf *shelf, struct weft_thread *given)
{
	struct wf_shell *s;

	wf_yield(); /* it is the program's code, which is preempted anywhere */
	if (nr_made == most_made || nr_made - nr_gone >= most_alive)
		return false;
	s = &shells[nr_made++];
	s->shelf = shelf;
	s->given = given;
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
		if (make_maker() || !wf_shell_withdraw(me(), 0, shelf, t, t->uses))
			return true;
	}
	if (how == WF_SPAWN_BEGINS)
		return true;
	if (how == WF_SPAWN_ALONE && make(NULL, t))
		return true;
	if (how == WF_SPAWN_MAKE && make(shelf, NULL)) {
		wf_shell_made(me(), shelf);
		return true;
	}
	if (how == WF_SPAWN_MAKE && !wf_shell_not_made(me(), 0, shelf, t))
		return true;
	nr_refused++;
	return false;
}

/* As in native/make.c. */
static bool serve(void)
{
	struct wf_shelf *shelf;

	if (!wf_shell_call_to_stuck(me(), 0, &shelf) || make(shelf, NULL))
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

/* As next() of native/thread.c. */
static void go_on(struct wf_shell *s, struct weft_thread **t, bool *out_wants)
{
	while (wf_shell_next(me(), s, t, out_wants) == WF_NEXT_AFTER_SIGNAL)
		sleep_undisturbed();
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
		go_on(s, &t, &wants);
	while (t) {
		if (wants && !make(s->shelf, NULL))
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
		go_on(s, &t, &wants);
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

static void check_all(void)
{
	for (int i = 0; i < nr_handles; i++)
		model_expect(nr_runs[i] <= 1, "a function ran twice");
	model_expect(nr_begun + nr_refused == nr_handles, "a function did not run");
	model_expect(nr_joins == nr_begun, "a join has not returned");
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

#endif
