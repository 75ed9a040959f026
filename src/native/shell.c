// SPDX-License-Identifier: Apache-2.0
/* Shells; see shell.h. */
#include "native/shell.h"
#include "base/die.h"
#include "native/handle.h"
#include "native/joiner.h"
#include "sched/account.h"
#include "sched/idle.h"
#include "sched/park.h"
#include "sched/runtime.h"

#include <limits.h>

/*
 * Of a class. Two pages and a kilobyte stay with each, as with the stacks that libc keeps under weft run; to end so many and to make
 * them again costs a hundred times what they do.
 */
#define MOST_RESTING 16384u
/* Of a class, where they ran last: what is theirs is in the caches there, and no other worker is at that lock. */
#define MOST_HERE 32u

/* (q) */
struct wf_shelf {
	struct wf_spin lock;
	uint32_t nr;                      /* that rest */
	struct wf_shell *resting;         /* the one that came last is the first */
	struct weft_thread *first, *last; /* the queue */
	bool is_called;
	/*
	 * The shell that was called for one thread alone, and has not arrived; while there is none, the next thread is given away like
	 * that. Set under the lock while it is NULL, and cleared by that shell without it.
	 */
	struct wf_shell *given_to;
};

static struct wf_shelf everywhere[WF_SHELL_CLASSES];
static struct {
	struct wf_shelf shelves[WF_SHELL_CLASSES];
} WF_ALIGNED(WF_CACHE_LINE) here[WF_MAX_WORKERS]; /* by worker */
static uint32_t nr_here; /* (a) that may have been used: a fork child's runtime knows of none */

/*
 * (a) By class: what is queued everywhere waits for a shell to have done with its function. Set and cleared under that lock. A shell
 * looks under the lock of the shelf where it is about to rest: the one that has set it looks there for it under the same lock.
 */
static uint32_t is_stuck[WF_SHELL_CLASSES];

static uint32_t nr_alive[WF_SHELL_CLASSES]; /* (a) that have arrived and not ended */

/* --- under a shelf's lock --- */

static void push(struct wf_shelf *s, struct wf_shell *shell)
{
	shell->next = s->resting;
	wf_store_hint(&s->resting, shell);
	s->nr++;
}

static struct wf_shell *pop(struct wf_shelf *s)
{
	struct wf_shell *shell = s->resting;

	if (shell) {
		wf_store_hint(&s->resting, shell->next);
		s->nr--;
	}
	return shell;
}

static void append(struct wf_shelf *s, struct weft_thread *first, struct weft_thread *last)
{
	last->next = NULL;
	if (s->first)
		s->last->next = first;
	else
		wf_store_hint(&s->first, first);
	s->last = last;
}

static struct weft_thread *remove_first(struct wf_shelf *s, int shell_class)
{
	struct weft_thread *t = s->first;

	if (!t)
		return NULL;
	wf_store_hint(&s->first, t->next);
	if (!t->next && s == &everywhere[shell_class])
		wf_store_relaxed(&is_stuck[shell_class], 0u);
	return t;
}

/* False: a shell has it. */
static bool withdraw(struct wf_shelf *s, struct weft_thread *t)
{
	struct weft_thread *before = NULL, *at = s->first;

	while (at && at != t) {
		before = at;
		at = at->next;
	}
	if (!at)
		return false;
	if (before)
		before->next = t->next;
	else
		wf_store_hint(&s->first, t->next);
	if (s->last == t)
		s->last = before;
	return true;
}

/* --- calls --- */

/* That of self's worker; that of all: self has none, being bound. */
static struct wf_shelf *shelf_here(int shell_class)
{
	const struct wf_worker *w = wf_own_kthread()->worker;

	return w ? &here[w->index].shelves[shell_class] : &everywhere[shell_class];
}

/* It is the caller's, who has found it. The exchange in wf_unpark() publishes what it is to do. */
static void wake(struct wf_shell *shell)
{
	bool won = wf_unpark(shell->core, WF_WAKE_EVENT);

	WF_ASSERT(won);
	(void)won;
}

static void call(struct wf_shell *shell, struct wf_shelf *to, struct weft_thread *given)
{
	shell->shelf = to;
	shell->given = given;
	wake(shell);
}

static struct wf_shell *take_from(struct wf_shelf *s)
{
	struct wf_shell *shell;

	if (!wf_load_hint(&s->resting))
		return NULL;
	wf_spin_lock(&s->lock);
	shell = pop(s);
	wf_spin_unlock(&s->lock);
	return shell;
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

	wf_spin_lock(&s->lock);
	is_given = s->resting && !s->first && !s->is_called && !wf_load_acquire(&s->given_to);
	if (is_given) {
		shell = pop(s);
		wf_store_relaxed(&s->given_to, shell);
	} else {
		append(s, t, t);
		calls = !s->is_called;
		s->is_called = true;
		if (calls)
			shell = pop(s);
	}
	wf_spin_unlock(&s->lock);
	if (is_given)
		call(shell, s, t);
	else if (
		!calls &&
		wf_idle_is_anybody()) /* it may fetch the one that is called, behind which others come */
		wf_idle_wake();
	if (is_given || !calls || call_to(s, shell_class, shell))
		return WF_SPAWN_BEGINS;
	wf_store_relaxed(&nr_here, wf_rt.nr_workers);
	return WF_SPAWN_MAKE;
}

enum wf_shell_spawn wf_shell_spawn(struct wf_thread *self, int shell_class, struct weft_thread *t,
				   struct wf_shelf **out_shelf)
{
	enum wf_shell_spawn ret = WF_SPAWN_ALONE;

	wf_self_enter(self);
	if (lx_shell_may_inherit(lx_of(self))) {
		lx_shell_inherit(lx_of(self), &t->heritage);
		wf_own_kthread()->count.spawns++;
		*out_shelf = shelf_here(shell_class);
		ret = spawn(*out_shelf, shell_class, t);
	}
	wf_self_leave(self);
	return ret;
}

/* --- where none can be made --- */

/* All that is queued there. Nobody is called to it any more. */
static void move_everywhere(struct wf_shelf *s, int shell_class)
{
	struct wf_shelf *all = &everywhere[shell_class];
	struct weft_thread *first, *last;

	wf_spin_lock(&s->lock);
	first = s->first;
	last = s->last;
	s->is_called = false;
	if (s != all)
		wf_store_hint(&s->first, NULL);
	else if (first)
		wf_store_relaxed(&is_stuck[shell_class], 1u);
	wf_spin_unlock(&s->lock);
	if (!first || s == all)
		return;
	wf_spin_lock(&all->lock);
	append(all, first, last);
	wf_store_relaxed(&is_stuck[shell_class], 1u);
	wf_spin_unlock(&all->lock);
}

/* One that has begun to rest before it could see that something is stuck. */
static struct wf_shell *take_surely(int shell_class)
{
	struct wf_shell *shell = NULL;

	for (uint32_t w = 0; !shell && w <= wf_rt.nr_workers; w++) {
		struct wf_shelf *s = w < wf_rt.nr_workers ? &here[w].shelves[shell_class]
							  : &everywhere[shell_class];

		wf_spin_lock(&s->lock);
		shell = pop(s);
		wf_spin_unlock(&s->lock);
	}
	return shell;
}

/* Another may be on its way to the same: then one of the two rests again. */
static void call_to_what_is_stuck(struct wf_shell *shell, int shell_class)
{
	struct wf_shelf *all = &everywhere[shell_class];

	wf_spin_lock(&all->lock);
	all->is_called = true;
	wf_spin_unlock(&all->lock);
	call(shell, all, NULL);
}

/* Unless a shell has taken it. */
static bool withdraw_from_all(struct weft_thread *t, int shell_class)
{
	struct wf_shelf *all = &everywhere[shell_class];
	bool is_withdrawn;

	wf_spin_lock(&all->lock);
	is_withdrawn = withdraw(all, t);
	if (!all->first)
		wf_store_relaxed(&is_stuck[shell_class], 0u);
	wf_spin_unlock(&all->lock);
	wf_own_kthread()->count.begins += is_withdrawn;
	return is_withdrawn;
}

bool wf_shell_not_made(struct wf_thread *self, int shell_class, struct wf_shelf *shelf,
		       struct weft_thread *t)
{
	struct wf_shell *found = NULL;
	bool is_withdrawn = false;

	wf_self_enter(self);
	move_everywhere(shelf, shell_class);
	if (wf_shell_is_stuck(shell_class))
		found = take_surely(shell_class);
	if (found)
		call_to_what_is_stuck(found, shell_class);
	else if (t)
		is_withdrawn = withdraw_from_all(t, shell_class);
	wf_self_leave(self);
	return is_withdrawn;
}

bool wf_shell_is_stuck(int shell_class)
{
	return wf_load_seq_cst(&is_stuck[shell_class]);
}

struct wf_shelf *wf_shell_everywhere(int shell_class)
{
	return &everywhere[shell_class];
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
	t = remove_first(s, i);
	calls = s->first;
	if (calls)
		other = pop(s);
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
	if (s->shell_class >= 0)
		(void)wf_fetch_add(&nr_alive[s->shell_class], 1u);
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
	t = remove_first(from, shell->shell_class);
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
	PUT_DONE,
	PUT_AGAIN, /* something is stuck, or a canceller is at the last thread */
	PUT_FULL,
	PUT_CLOSED,
};

/* last: the thread that the shell was, if nobody knows yet that it is over; NULL: none. */
static enum put put(struct wf_shelf *s, struct wf_shell *shell, const struct weft_thread *last,
		    uint32_t most)
{
	enum put ret = PUT_DONE;

	wf_spin_lock(&s->lock);
	if (wf_load_relaxed(&is_stuck[shell->shell_class]) ||
	    (last && wf_load_seq_cst(&last->nr_cancelling)))
		ret = PUT_AGAIN;
	else if (wf_load_seq_cst(&lx.main_has_ended))
		ret = PUT_CLOSED;
	else if (s->nr >= most)
		ret = PUT_FULL;
	else
		push(s, shell);
	wf_spin_unlock(&s->lock);
	return ret;
}

static void end_all(struct wf_shelf *s)
{
	struct wf_shell *shell, *next;

	wf_spin_lock(&s->lock);
	shell = s->resting;
	s->resting = NULL;
	s->nr = 0;
	wf_spin_unlock(&s->lock);
	for (; shell; shell = next) {
		next = shell->next;
		shell->is_to_end = true;
		wake(shell);
	}
}

/* Main has ended, and whoever rests would keep the process. Under its shelf's lock each finds that out, or is found here. */
static void close_all(void)
{
	for (int i = 0; i < WF_SHELL_CLASSES; i++) {
		end_all(&everywhere[i]);
		for (uint32_t w = 0; w < wf_rt.nr_workers; w++)
			end_all(&here[w].shelves[i]);
	}
}

/* A joiner may have given it back before this returns. */
static void tell(struct wf_thread *self, struct weft_thread *t, bool is_closed)
{
	const bool is_detached = t->is_detached;

	if (is_closed ? wf_joiner_tell_closed(t, WF_USE_DONE) : wf_joiner_tell(t, WF_USE_DONE))
		(void)sys_futex_wake(&t->state, INT_MAX);
	if (is_detached)
		wf_handle_put(self, t);
}

/*
 * Until an order comes, or not at all. Once it rests it is somebody else's: nothing of it is looked at before that. The joiner of
 * *last, which becomes NULL, is told behind that: the next spawn of that one finds the shell.
 */
static enum put rest(struct wf_thread *self, struct wf_shell *shell, struct weft_thread **last)
{
	struct wf_shelf *all = &everywhere[shell->shell_class];
	struct wf_shelf *s = shelf_here(shell->shell_class);
	struct weft_thread *t = *last;
	enum put ret;

	/* Before the look at the flag: pairs with the other order in end_main(). */
	if (!wf_load_relaxed(&lx_config.on_main_end)) {
		wf_store_relaxed(&nr_here, wf_rt.nr_workers);
		wf_store_seq_cst(&lx_config.on_main_end, close_all);
	}
	lx_shell_rest(lx_of(self));
	/* The shelf's lock is the fence; see wf_joiner_tell(). */
	if (t)
		wf_store_relaxed(&t->root, NULL);
	wf_park_begin_before_lock(0, WF_WAIT_UNUSED, 0);
	ret = put(s, shell, t, s == all ? MOST_RESTING : MOST_HERE);
	if (ret == PUT_FULL && s != all)
		ret = put(all, shell, t, MOST_RESTING);
	if (ret != PUT_DONE) {
		(void)wf_park_abort();
		return ret;
	}
	if (t)
		tell(self, t, true);
	*last = NULL;
	lx_shell_pass_on();
	(void)wf_park(WF_NEVER);
	return ret;
}

/* NULL: the shell is to end. */
static struct weft_thread *await_next(struct wf_thread *self, struct wf_shell *s,
				      struct weft_thread *last, bool *out_wants)
{
	struct weft_thread *t;
	enum put how;

	for (;;) {
		t = next_of(s);
		how = t ? PUT_AGAIN : rest(self, s, &last);
		if (last && how != PUT_DONE)
			tell(self, last, false);
		last = NULL;
		if (t)
			return t;
		if (how == PUT_AGAIN)
			continue;
		if (how != PUT_DONE || s->is_to_end)
			return NULL;
		t = arrive(s, out_wants);
		if (t)
			return t;
	}
}

bool wf_shell_next(struct wf_thread *self, struct wf_shell *s, struct weft_thread **t,
		   bool *out_wants)
{
	bool is_left = true;

	wf_self_enter(self);
	s->left_at = self->nr_switches;
	if (*t)
		is_left = lx_shell_is_plain(lx_of(self));
	if (is_left) {
		if (*t)
			lx_shell_leave(lx_of(self));
		*t = await_next(self, s, *t, out_wants);
		show_join(self, *t);
	}
	wf_self_leave(self);
	return is_left;
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

bool wf_shell_end(const struct wf_shell *s)
{
	return wf_fetch_sub(&nr_alive[s->shell_class], 1u) == 1 &&
	       wf_shell_is_stuck(s->shell_class);
}

bool wf_shell_is_anybody(int shell_class)
{
	return wf_load_seq_cst(&nr_alive[shell_class]);
}

void wf_shell_forget(void)
{
	for (int i = 0; i < WF_SHELL_CLASSES; i++) {
		nr_alive[i] = 0;
		everywhere[i] = (struct wf_shelf){ 0 };
		is_stuck[i] = 0;
		for (uint32_t w = 0; w < nr_here; w++)
			here[w].shelves[i] = (struct wf_shelf){ 0 };
	}
}
