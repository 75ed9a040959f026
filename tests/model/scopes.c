// SPDX-License-Identifier: Apache-2.0
/*
 * A thread that waits in a scope, parked or in a real call, and everybody who may end that: a canceller, the timer of the
 * scope, one that is armed too early, a waker. And the tree: a canceller that walks it while threads join, leave and are
 * cancelled themselves. No wait may outlast its scope, and nobody may be told of what is gone.
 */
#include "machine.h"
#include "model.h"
#include "sched/group.h"
#include "sched/insys.h"

#include "tap.h"

#include <string.h>

struct wf_kthread *wf_self_come_in(void);

struct wf_kthread *wf_self_come_in(void)
{
	return wf_self_kthread();
}

static struct wf_scopes chain, below;
static struct wf_scope scope, inner;
static struct wf_thread *sleeper;
static bool is_awaited, is_woken, is_deadline_past;

static void open_scope(struct wf_scopes *sc, struct wf_scope *s, int64_t deadline)
{
	*s = (struct wf_scope){
		.deadline = deadline,
		.outer = sc->top,
		.until = WF_MIN(deadline, sc->until),
		.owner = sc,
	};
	s->check = wf_scope_check_of(s);
	sc->top = s;
	sc->until = s->until;
}

static void close_scope(struct wf_scopes *sc)
{
	sc->top->owner = NULL;
	sc->top = sc->top->outer;
	sc->until = sc->top ? sc->top->until : WF_NEVER;
}

/* As a handler in linux/: until it is told that the wait is over. */
static int wait_in_scope(struct wf_scopes *sc)
{
	for (;;) {
		enum wf_reason reason;

		wf_park_begin(WF_INTR | WF_REACHED, WF_WAIT_FD, 1);
		is_awaited = true;
		reason = wf_park(WF_NEVER);
		is_awaited = false;
		if (reason == WF_WAKE_EVENT)
			return 0;
		if (wf_scopes_are_over(sc))
			return wf_scopes_end(sc, 1, 1);
	}
}

static void adopt(struct wf_scopes *sc)
{
	struct wf_thread *self = wf_self();

	wf_scopes_init(sc, self);
	self->scopes = sc;
}

/* Every wait of a cancelled scope ends, the second one, too. */
static void wait_twice(void *arg)
{
	adopt(&chain);
	open_scope(&chain, &scope, WF_NEVER);
	is_woken = true; /* the scope is there: the canceller may begin */
	model_expect(wait_in_scope(&chain) == -ECANCELED, "a wait ended, and not for its scope");
	model_expect(wait_in_scope(&chain) == -ECANCELED, "a second wait ended otherwise");
	close_scope(&chain);
	model_expect(!wf_scopes_are_over(&chain), "a scope that is closed is over");
}

static bool is_open(void *arg)
{
	return is_woken;
}

static void cancel(void *arg)
{
	(void)model_wait(is_open, NULL, WF_NEVER);
	wf_group_cancel_scope(sleeper, &scope);
}

static void begin_with(void (*script)(void *), void (*other)(void *))
{
	machine_reset(1);
	(void)machine_kthread(&wf_rt.workers[0]);
	sleeper = machine_thread(script, other ? machine_thread(other, NULL) : NULL);
	machine_queue(&wf_rt.workers[0], sleeper);
	memset(&chain, 0, sizeof(chain));
	memset(&below, 0, sizeof(below));
	is_awaited = is_woken = is_deadline_past = false;
}

static void begin(void (*script)(void *))
{
	begin_with(script, NULL);
}

static void setup_cancel(void)
{
	begin(wait_twice);
	machine_stranger(cancel, NULL);
}

/* The clock has not come so far for the thread: only the timer ends the wait. */
static void expire(void *arg)
{
	(void)model_wait(is_open, NULL, WF_NEVER);
	(void)wf_wheel_expire(&wf_rt.wheel, model_now() + WF_SEC);
	is_deadline_past = true;
}

/* A deadline, which fires while the thread is on its way to the wait or in it. One that fired early is armed anew. */
static void wait_for_deadline(void *arg)
{
	int64_t until;

	adopt(&chain);
	open_scope(&chain, &scope, model_now() + WF_MS);
	/* A call arms it, and the wait finds it armed, or has it fire. */
	wf_park_begin_call(&chain);
	wf_park_end_call(&chain);
	(void)wf_fetch_and(&wf_self()->attention, ~WF_ATT_RESCHED);
	is_woken = true;
	wf_park_begin(WF_INTR | WF_REACHED, WF_WAIT_FD, 1);
	(void)wf_park(WF_NEVER);
	/* Fired, or the clock says so: the next wait arms it, or ends at once; it never sleeps without a timer. */
	if (!wf_scopes_begin_wait(&chain, &until))
		model_expect(until == scope.until || chain.armed <= scope.until,
			     "a wait with a deadline has no timer");
	close_scope(&chain);
	wf_wheel_cancel(&wf_rt.wheel, &chain.timer);
}

static void setup_deadline(void)
{
	begin(wait_for_deadline);
	machine_stranger(expire, NULL);
}

static bool is_never(void *arg)
{
	return false;
}

/* A real call, which is broken by whoever ends the scope. */
static void call_in_scope(void *arg)
{
	adopt(&chain);
	open_scope(&chain, &scope, WF_NEVER);
	is_woken = true;
	wf_park_begin_call(&chain);
	wf_call_enter(false);
	/* The reason of the grace: a call that is over before it begins would be broken later. */
	if (chain.armed == WF_NEVER)
		(void)machine_wait_in_call(is_never, NULL);
	wf_call_leave();
	wf_park_end_call(&chain);
	model_expect(wf_scopes_are_over(&chain), "a call was broken, and its scope is not over");
	(void)wf_fetch_and(&wf_self()->attention, ~WF_ATT_RESCHED);
	close_scope(&chain);
	wf_wheel_cancel(&wf_rt.wheel, &chain.timer);
}

static void setup_call(void)
{
	begin(call_in_scope);
	machine_stranger(cancel, NULL);
}

/* One that each scope ends once, as a wait for what processes share is: it goes by the scopes, not by is_told. */
static void once_call_in_scope(void *arg)
{
	chain.in_once = true;
	call_in_scope(arg);
}

static void setup_once_call(void)
{
	begin(once_call_in_scope);
	machine_stranger(cancel, NULL);
}

/* A shield hides what was cancelled; what is behind it shows again. */
static void wait_behind_shield(void *arg)
{
	adopt(&chain);
	open_scope(&chain, &scope, WF_NEVER);
	is_woken = true;
	open_scope(&chain, &inner, WF_NEVER);
	inner.state = WF_SCOPE_SHIELD;
	inner.until = chain.until = WF_NEVER;
	model_expect(!wf_scopes_are_over(&chain), "what is behind a shield reaches in");
	close_scope(&chain);
	wf_store_relaxed(&chain.is_told, 1u);
	model_expect(wait_in_scope(&chain) == -ECANCELED, "a shield has hidden it for good");
	close_scope(&chain);
}

static void setup_shield(void)
{
	begin(wait_behind_shield);
	machine_stranger(cancel, NULL);
}

static struct wf_group group;

/* The thread of a group: joins, waits, leaves. */
static void member(void *arg)
{
	struct wf_thread *self = wf_self();

	adopt(&below);
	wf_group_join(self, &below, &group);
	model_expect(wait_in_scope(&below) == -ECANCELED, "a member outlasts its group's scope");
	below.top = below.base = NULL;
	below.until = WF_NEVER;
	wf_group_leave(self, &below);
}

static void parent(void *arg)
{
	struct wf_thread *self = wf_self();
	int ret;

	adopt(&chain);
	open_scope(&chain, &scope, WF_NEVER);
	wf_group_open(self, &chain, &group, WF_NEVER, "g", &group);
	(void)wf_group_count_in(self, &group, 0);
	wf_worker_ready(arg);
	is_woken = true;
	do
		ret = wf_group_wait(self, &chain, &group, 0, WF_NEVER, false);
	while (ret == -EINTR);
	model_expect(ret == 0 && !group.nr && wf_list_is_empty(&group.members),
		     "a wait for a group ended too early");
	wf_group_close(self, &group);
	close_scope(&chain);
}

static void begin_tree(void (*canceller)(void *))
{
	begin_with(parent, member);
	memset(&group, 0, sizeof(group));
	machine_stranger(canceller, NULL);
}

static void cancel_the_group(void *arg)
{
	(void)model_wait(is_open, NULL, WF_NEVER);
	wf_group_cancel(sleeper, &group, &group);
}

static void setup_tree(void)
{
	begin_tree(cancel);
}

static void setup_group(void)
{
	begin_tree(cancel_the_group);
}

static bool is_helped;

/* A crew thread: comes and goes while the canceller walks, and then waits in the scope of the task that it runs. */
static void helper(void *arg)
{
	struct wf_thread *self = wf_self();

	adopt(&below);
	wf_group_help(self, &below, &chain, &scope);
	wf_group_help_no_more(self, &below);
	wf_group_help(self, &below, &chain, &scope);
	model_expect(wait_in_scope(&below) == -ECANCELED, "a task outlasts its scope");
	wf_group_help_no_more(self, &below);
	is_helped = true;
	(void)wf_unpark(sleeper, WF_WAKE_EVENT);
}

/* Joins the task, which no scope ends. */
static void forker(void *arg)
{
	adopt(&chain);
	open_scope(&chain, &scope, WF_NEVER);
	wf_park_begin(0, WF_WAIT_FD, 1);
	wf_worker_ready(arg);
	is_woken = true;
	(void)wf_park(WF_NEVER);
	model_expect(is_helped && wf_list_is_empty(&chain.helpers), "a join ended too early");
	close_scope(&chain);
}

static void setup_helped(void)
{
	begin_with(forker, helper);
	is_helped = false;
	machine_stranger(cancel, NULL);
}

static const struct model cancelled = { .setup = setup_cancel, .check = machine_check, .bound = 3 };
static const struct model in_time = { .setup = setup_deadline, .check = machine_check, .bound = 3 };
static const struct model in_call = { .setup = setup_call, .check = machine_check, .bound = 3 };
static const struct model in_once_call = { .setup = setup_once_call,
					   .check = machine_check,
					   .bound = 3 };
static const struct model shielded = { .setup = setup_shield, .check = machine_check, .bound = 3 };
static const struct model in_tree = { .setup = setup_tree, .check = machine_check, .bound = 2 };
static const struct model in_group = { .setup = setup_group, .check = machine_check, .bound = 2 };
static const struct model helped = { .setup = setup_helped, .check = machine_check, .bound = 2 };

TEST(no_wait_outlasts_the_cancellation_of_its_scope)
{
	model_verify(&cancelled);
}

TEST(a_deadline_meets_the_wait_whenever_it_fires)
{
	model_verify(&in_time);
}

TEST(a_real_call_is_broken)
{
	model_verify(&in_call);
	model_verify(&in_once_call);
}

TEST(a_shield_hides_only_for_as_long_as_it_is_open)
{
	model_verify(&shielded);
}

TEST(a_thread_that_joins_or_ends_meanwhile_is_cancelled_or_gone)
{
	model_verify(&in_tree);
	model_verify(&in_group);
}

TEST(a_task_that_another_thread_runs_is_cancelled_with_its_scope)
{
	model_verify(&helped);
}

TEST(a_thread_that_does_not_look_as_it_begins_to_wait_is_caught)
{
	model_catches(cancelled, "was_told", "look");
}

TEST(a_thread_that_forgets_without_a_second_look_is_caught)
{
	model_catches(shielded, "was_told", "store");
}

TEST(a_canceller_that_looks_before_it_has_told_is_caught)
{
	model_catches(cancelled, "tell", "store");
}

TEST(a_call_that_does_not_say_that_it_begins_is_caught)
{
	model_catches(in_call, "wf_park_begin_call", "store");
	model_catches(in_once_call, "wf_park_begin_call", "store");
}

TEST(a_timer_that_fires_without_a_barrier_is_caught)
{
	model_catches(in_time, "fire_scope", "store");
}
