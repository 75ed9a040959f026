// SPDX-License-Identifier: Apache-2.0
/* Shells; see shell.h. */
#include "native/shell.h"
#include "base/die.h"
#include "native/handle.h"
#include "native/joiner.h"
#include "native/maker.h"
#include "native/order.h"
#include "native/shelf.h"
#include "sched/account.h"
#include "sched/idle.h"
#include "sched/runtime.h"

#include <limits.h>

/*
 * Of a class. Two pages and a kilobyte stay with each, as with the stacks that libc keeps under weft run; to end so many and to make
 * them again costs a hundred times what they do.
 */
#define MOST_RESTING 16384u
/* Of a class, where they ran last: what is theirs is in the caches there, and no other worker is at that lock. */
#define MOST_HERE 32u

static struct wf_shelf everywhere[WF_SHELL_CLASSES];
static struct {
	struct wf_shelf shelves[WF_SHELL_CLASSES];
} WF_ALIGNED(WF_CACHE_LINE) here[WF_MAX_WORKERS]; /* by worker */
static uint32_t nr_ending;                        /* (a) that were told to */
static uint32_t nr_here; /* (a) that may have been used: a fork child's runtime knows of none */

/* --- calls --- */

/* That of self's worker. Without one, as no spawner is, that of all. */
static struct wf_shelf *shelf_here(int shell_class)
{
	const struct wf_worker *w = wf_own_kthread()->worker;

	return w ? &here[w->index].shelves[shell_class] : &everywhere[shell_class];
}

/* It is the caller's, which has taken it from where it rests. */
static void call(struct wf_shell *shell, struct wf_shelf *to, struct weft_thread *given)
{
	shell->shelf = to;
	shell->given = given;
	wf_order_give(shell->core, &shell->order);
}

/* Even if none seems to rest: one that comes behind our look sees what we have stored before. */
static struct wf_shell *take_surely(struct wf_shelf *s)
{
	struct wf_shell *shell;

	wf_spin_lock(&s->lock);
	shell = wf_shelf_pop(s);
	wf_spin_unlock(&s->lock);
	return shell;
}

static struct wf_shell *take_from(struct wf_shelf *s)
{
	return wf_load_hint(&s->resting) ? take_surely(s) : NULL;
}

/* Near by, or where there are most; the shelves of other workers are for need. */
static struct wf_shell *take(int shell_class)
{
	struct wf_shell *shell = take_from(shelf_here(shell_class));

	if (!shell)
		shell = take_from(&everywhere[shell_class]);
	for (uint32_t w = 0; !shell && w < wf_rt.nr_workers; w++)
		shell = take_from(&here[w].shelves[shell_class]);
	return shell;
}

/* False: none rests. found: one that the caller has. */
static bool call_to(struct wf_shelf *to, int shell_class, struct wf_shell *found)
{
	if (!found)
		found = take(shell_class);
	if (found)
		call(found, to, NULL);
	return found;
}

static enum wf_shell_spawn spawn(struct wf_shelf *s, int shell_class, struct weft_thread *t)
{
	struct wf_shell *shell = NULL;
	bool is_given, calls = false;

	/* Even while the maker tries. */
	if (WF_UNLIKELY(wf_load_hint(&everywhere[shell_class].is_stuck)))
		return WF_SPAWN_REFUSED;
	wf_spin_lock(&s->lock);
	if (WF_UNLIKELY(wf_load_acquire(&s->is_unsure))) {
		wf_spin_unlock(&s->lock);
		return WF_SPAWN_ALONE;
	}
	is_given = s->resting && !s->first && !s->is_called && !wf_load_acquire(&s->given_to);
	if (is_given) {
		shell = wf_shelf_pop(s);
		wf_store_relaxed(&s->given_to, shell);
	} else {
		wf_shelf_append(s, t, t);
		calls = !s->is_called;
		s->is_called = true;
		if (calls)
			shell = wf_shelf_pop(s);
		if (calls && !shell)
			wf_store_relaxed(&s->is_unsure, true);
	}
	wf_spin_unlock(&s->lock);
	if (is_given)
		call(shell, s, t);
	else if (
		!calls &&
		wf_idle_is_anybody()) /* it may fetch the one that is called, behind which others come */
		wf_idle_wake();
	if (is_given)
		return WF_SPAWN_BEGINS;
	if (!calls)
		return WF_SPAWN_QUEUED;
	if (!shell) {
		shell = take(shell_class);
		if (shell)
			wf_store_release(&s->is_unsure, false);
	}
	if (shell) {
		call(shell, s, NULL);
		return WF_SPAWN_BEGINS;
	}
	wf_store_relaxed(&nr_here, wf_rt.nr_workers);
	return WF_SPAWN_MAKE;
}

/* --- those that are to end --- */

/* False: none rested. */
static bool end_all(struct wf_shelf *s)
{
	struct wf_shell *shell;
	bool ret = false;

	for (; (shell = take_surely(s)); ret = true) {
		shell->is_to_end = true;
		(void)wf_fetch_add(&nr_ending, 1u);
		wf_order_give(shell->core, &shell->order);
	}
	return ret;
}

static bool end_class(int shell_class)
{
	bool ret = end_all(&everywhere[shell_class]);

	for (uint32_t w = 0; w < wf_rt.nr_workers; w++)
		ret |= end_all(&here[w].shelves[shell_class]);
	return ret;
}

/* Main has ended, and whoever rests would keep the process. Under its shelf's lock each finds that out, or is found here. */
static void close_all(void)
{
	for (int i = 0; i < WF_SHELL_CLASSES; i++)
		(void)end_class(i);
	wf_maker_wake();
}

/* Before anybody looks at the flag: pairs with the other order in end_main(). */
static void watch_main(void)
{
	if (wf_load_relaxed(&lx_config.on_main_end))
		return;
	wf_store_relaxed(&nr_here, wf_rt.nr_workers);
	wf_store_seq_cst(&lx_config.on_main_end, close_all);
}

enum wf_shell_spawn wf_shell_spawn(struct wf_thread *self, int shell_class, struct weft_thread *t,
				   struct wf_shelf **out_shelf)
{
	enum wf_shell_spawn ret = WF_SPAWN_ALONE;

	wf_self_enter(self);
	watch_main();
	if (lx_shell_may_inherit(lx_of(self))) {
		lx_shell_inherit(lx_of(self), &t->heritage);
		wf_own_kthread()->count.spawns++;
		*out_shelf = shelf_here(shell_class);
		ret = spawn(*out_shelf, shell_class, t);
		wf_own_kthread()->count.begins += ret == WF_SPAWN_REFUSED || ret == WF_SPAWN_ALONE;
	}
	wf_self_leave(self);
	return ret;
}

/* --- where none can be made --- */

/* False: a shell has it, or has had it: it may be queued again, as another thread. */
static bool withdraw_from(struct wf_shelf *s, struct weft_thread *t, uint32_t uses)
{
	bool is_withdrawn;

	wf_spin_lock(&s->lock);
	is_withdrawn = wf_load_relaxed(&t->uses) == uses && wf_shelf_withdraw(s, t);
	wf_spin_unlock(&s->lock);
	return is_withdrawn;
}

bool wf_shell_withdraw(struct wf_thread *self, int shell_class, struct wf_shelf *shelf,
		       struct weft_thread *t, uint32_t uses)
{
	bool is_withdrawn;

	wf_self_enter(self);
	is_withdrawn = withdraw_from(shelf, t, uses) ||
		       withdraw_from(&everywhere[shell_class], t, uses);
	wf_own_kthread()->count.begins += is_withdrawn;
	wf_self_leave(self);
	return is_withdrawn;
}

/* All but t, if that is there still. Nobody is called to it any more. True: it is stuck everywhere. */
static bool give_up(struct wf_shelf *s, int shell_class, struct weft_thread *t,
		    bool *out_is_withdrawn)
{
	struct wf_shelf *all = &everywhere[shell_class];
	struct weft_thread *first;

	wf_spin_lock(&s->lock);
	*out_is_withdrawn = t && wf_shelf_withdraw(s, t);
	first = s->first;
	s->is_called = false;
	if (first && s != all) {
		/* Under both locks: one that looks for its thread here and then there finds it. */
		wf_spin_lock(&all->lock);
		wf_shelf_append(all, first, s->last);
		wf_store_hint(&all->is_stuck, true);
		wf_spin_unlock(&all->lock);
		wf_store_hint(&s->first, NULL);
	}
	wf_spin_unlock(&s->lock);
	return first;
}

bool wf_shell_not_made(struct wf_thread *self, int shell_class, struct wf_shelf *shelf,
		       struct weft_thread *t)
{
	bool is_withdrawn = false;

	wf_self_enter(self);
	if (!call_to(shelf, shell_class, NULL)) {
		if (give_up(shelf, shell_class, t, &is_withdrawn))
			wf_maker_wake();
		wf_own_kthread()->count.begins += is_withdrawn;
	}
	if (t)
		wf_store_release(&shelf->is_unsure, false);
	wf_self_leave(self);
	return is_withdrawn;
}

void wf_shell_made(struct wf_thread *self, struct wf_shelf *shelf)
{
	wf_self_enter(self);
	wf_store_release(&shelf->is_unsure, false);
	wf_self_leave(self);
}

bool wf_shell_end_others(struct wf_thread *self, int shell_class)
{
	bool ret = false;

	wf_self_enter(self);
	for (int i = 0; i < WF_SHELL_CLASSES; i++)
		if (i != shell_class)
			ret |= end_class(i);
	wf_self_leave(self);
	return ret;
}

bool wf_shell_is_any_ending(void)
{
	return wf_load_acquire(&nr_ending);
}

void wf_shell_ended(void)
{
	(void)wf_fetch_sub(&nr_ending, 1u);
}

bool wf_shell_call_to_stuck(struct wf_thread *self, int shell_class, struct wf_shelf **out_shelf)
{
	struct wf_shelf *all = &everywhere[shell_class];
	bool calls;

	wf_self_enter(self);
	wf_spin_lock(&all->lock);
	calls = all->first && !all->is_called;
	if (calls)
		all->is_called = true;
	wf_spin_unlock(&all->lock);
	*out_shelf = all;
	calls = calls && !call_to(all, shell_class, NULL);
	wf_self_leave(self);
	return calls;
}

/* is_uncalled: and nobody is called to it. */
static bool has_queue(struct wf_shelf *s, bool is_uncalled)
{
	bool ret;

	wf_spin_lock(&s->lock);
	ret = s->first && !(is_uncalled && s->is_called);
	wf_spin_unlock(&s->lock);
	return ret;
}

bool wf_shell_is_stuck(void)
{
	bool ret = false;

	for (int i = 0; !ret && i < WF_SHELL_CLASSES; i++)
		ret = has_queue(&everywhere[i], true);
	return ret;
}

bool wf_shell_is_any_queued(struct wf_thread *self)
{
	bool ret = false;

	wf_self_enter(self);
	/* In this order, as give_up() may move it meanwhile. */
	for (int i = 0; !ret && i < WF_SHELL_CLASSES; i++) {
		for (uint32_t w = 0; !ret && w < wf_rt.nr_workers; w++)
			ret = has_queue(&here[w].shelves[i], false);
		ret = ret || has_queue(&everywhere[i], false);
	}
	wf_self_leave(self);
	return ret;
}

/* --- the shell's own --- */

/* As soon as it is known whose end that of the shell will be. */
static void show_join(struct wf_thread *self, struct weft_thread *t)
{
	if (t)
		lx_shell_show_join(lx_of(self), &t->state);
}

/* It has been called, or made. NULL: others have taken all that was there. */
static struct weft_thread *arrive(struct wf_shell *shell, bool *out_wants)
{
	const int i = shell->shell_class;
	struct wf_shelf *s = shell->shelf;
	struct weft_thread *t = shell->given;
	struct wf_shell *other = NULL;
	bool calls;

	if (t) {
		wf_store_release(&s->given_to, NULL);
		return t;
	}
	wf_spin_lock(&s->lock);
	t = wf_shelf_remove_first(s);
	calls = s->first;
	if (calls)
		other = wf_shelf_pop(s);
	else
		s->is_called = false;
	wf_spin_unlock(&s->lock);
	if (calls)
		*out_wants = !call_to(s, i, other);
	return t;
}

struct weft_thread *wf_shell_arrive(struct wf_thread *self, struct wf_shell *s, bool *out_wants)
{
	struct weft_thread *t;

	wf_self_enter(self);
	watch_main();
	t = s->shelf ? arrive(s, out_wants) : s->given;
	show_join(self, t);
	wf_self_leave(self);
	return t;
}

static struct weft_thread *dequeue(struct wf_shell *shell, struct wf_shelf *from)
{
	struct weft_thread *t;

	if (!wf_load_hint(&from->first))
		return NULL;
	wf_spin_lock(&from->lock);
	t = wf_shelf_remove_first(from);
	wf_spin_unlock(&from->lock);
	if (t)
		shell->shelf = from;
	return t;
}

/* Of this worker, or of the shelf where the shell was last: another worker may have taken it from there. */
static struct weft_thread *next_of(struct wf_shell *shell)
{
	struct wf_shelf *s = shelf_here(shell->shell_class), *last = shell->shelf;
	struct weft_thread *t = dequeue(shell, s);

	if (!t && last && last != s)
		t = dequeue(shell, last);
	return t ? t : dequeue(shell, &everywhere[shell->shell_class]);
}

enum put {
	PUT_DONE,      /* it rests; of rest(): and has been called */
	PUT_SIGNALLED, /* of rest(): a signal has ended it */
	PUT_AGAIN,     /* a canceller is at the last thread */
	PUT_FULL,
	PUT_CLOSED,
};

/* last: the thread that the shell was, if nobody knows yet that it is over; NULL: none. */
static enum put put(struct wf_shelf *s, struct wf_shell *shell, const struct weft_thread *last,
		    uint32_t most)
{
	enum put ret = PUT_DONE;

	wf_spin_lock(&s->lock);
	if (wf_load_seq_cst(&lx.main_has_ended))
		ret = PUT_CLOSED;
	else if (last && wf_load_seq_cst(&last->nr_cancelling))
		ret = PUT_AGAIN;
	else if (s->nr >= most)
		ret = PUT_FULL;
	else
		wf_shelf_push(s, shell);
	wf_spin_unlock(&s->lock);
	return ret;
}

/* A signal has ended the rest of a shell that was put there. False: somebody else has it. */
static bool is_taken_back(struct wf_shelf *s, struct wf_shell *shell)
{
	bool ret;

	wf_spin_lock(&s->lock);
	ret = shell->link;
	if (ret)
		wf_shelf_remove(s, shell);
	wf_spin_unlock(&s->lock);
	return ret;
}

/* A joiner may have given it back before this returns. */
static void tell(struct wf_thread *self, struct weft_thread *t, bool is_closed)
{
	const bool is_detached = t->is_detached;

	if (is_closed ? wf_joiner_tell_closed(t) : wf_joiner_tell(t))
		(void)sys_futex_wake(&t->state, INT_MAX);
	if (is_detached)
		wf_handle_put(self, t);
}

/*
 * Until an order comes or a signal, or not at all. Once it rests it is somebody else's: nothing of it is looked at before that. The
 * joiner of *last, which becomes NULL, is told behind that: the next spawn of that one finds the shell.
 */
static enum put rest(struct wf_thread *self, struct wf_shell *shell, struct weft_thread **last)
{
	struct wf_shelf *all = &everywhere[shell->shell_class];
	struct wf_shelf *s = shelf_here(shell->shell_class);
	struct weft_thread *t = *last;
	enum put ret;

	lx_shell_rest(lx_of(self));
	/* The shelf's lock is the fence; see wf_joiner_tell(). */
	if (t)
		wf_store_relaxed(&t->root, NULL);
	wf_park_begin_before_lock(WF_INTR, WF_WAIT_UNUSED, 0);
	ret = put(s, shell, t, s == all ? MOST_RESTING : MOST_HERE);
	if (ret == PUT_FULL && s != all) {
		s = all;
		ret = put(s, shell, t, MOST_RESTING);
	}
	if (ret != PUT_DONE) {
		(void)wf_park_abort();
		return ret;
	}
	if (t)
		tell(self, t, true);
	*last = NULL;
	lx_shell_pass_on(lx_of(self));
	if (WF_LIKELY(wf_park(WF_NEVER) == WF_WAKE_EVENT))
		return PUT_DONE;
	if (is_taken_back(s, shell))
		return PUT_SIGNALLED;
	wf_order_await(&shell->order);
	return PUT_DONE;
}

static enum wf_shell_next await_next(struct wf_thread *self, struct wf_shell *s,
				     struct weft_thread **t, bool *out_wants)
{
	struct weft_thread *last = *t;
	enum put how;

	for (;;) {
		*t = next_of(s);
		how = *t ? PUT_AGAIN : rest(self, s, &last);
		if (last)
			tell(self, last, false);
		last = NULL;
		if (*t)
			return WF_NEXT_RUNS;
		if (how == PUT_SIGNALLED)
			return WF_NEXT_AFTER_SIGNAL;
		if (how == PUT_AGAIN)
			continue;
		if (how != PUT_DONE || s->is_to_end)
			return WF_NEXT_NONE;
		*t = arrive(s, out_wants);
		if (*t)
			return WF_NEXT_RUNS;
	}
}

enum wf_shell_next wf_shell_next(struct wf_thread *self, struct wf_shell *s, struct weft_thread **t,
				 bool *out_wants)
{
	enum wf_shell_next ret = WF_NEXT_REFUSED;

	wf_self_enter(self);
	if (*t)
		s->left_at = self->nr_switches;
	if (!*t || lx_shell_is_plain(lx_of(self))) {
		if (*t)
			lx_shell_leave(lx_of(self));
		ret = await_next(self, s, t, out_wants);
		show_join(self, *t);
	}
	wf_self_leave(self);
	return ret;
}

/* The store of the signal mask is the fence between that of root and the caller's look at is_cancelled. */
void wf_shell_begin(struct wf_thread *self, const struct wf_shell *s, struct weft_thread *t,
		    weft_scope *root)
{
	wf_self_enter(self);
	if (s->shelf) {
		const uint64_t switches = self->nr_switches;

		wf_own_kthread()->count.begins++;
		wf_store_relaxed(&t->root, root);
		lx_shell_begin(lx_of(self), &t->heritage);
		/* The last function's time is not charged yet. */
		if (switches == s->left_at)
			wf_account_restart(self);
	} else {
		wf_store_seq_cst(&t->root, root);
	}
	wf_self_leave(self);
}

void wf_shell_forget(void)
{
	nr_ending = 0;
	for (int i = 0; i < WF_SHELL_CLASSES; i++) {
		everywhere[i] = (struct wf_shelf){ 0 };
		for (uint32_t w = 0; w < nr_here; w++)
			here[w].shelves[i] = (struct wf_shelf){ 0 };
	}
}
