// SPDX-License-Identifier: Apache-2.0
/*
 * Scopes of fibers: its own, what is around one that is suspended, and what it comes back to. The place where a resumer opens its scopes is
 * static, so that no compiler decides what lies there later.
 */
#include "native.h"
#include "tap.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#include <weft/event.h>
#include <weft/fiber.h>
#include <weft/group.h>
#include <weft/scope.h>
#include <weft/task.h>
#include <weft/thread.h>
#include <weft/weft.h>

static weft_scope place;

static void await_stage(const int *stage, int at_least)
{
	while (__atomic_load_n(stage, __ATOMIC_ACQUIRE) < at_least)
		(void)sched_yield();
}

static void reach_stage(int *stage, int now)
{
	__atomic_store_n(stage, now, __ATOMIC_RELEASE);
}

/* Yields in a scope, and in two, and sees what is around the one that resumes it. */
static void *yields_in_scopes(void *first)
{
	weft_scope a, b;

	weft_scope_open(&a, WEFT_NOW, "of the fiber");
	CHECK_EQ(weft_scope_check(), -ETIMEDOUT);
	(void)weft_fiber_yield(NULL);
	CHECK_EQ(weft_scope_check(), -ECANCELED);
	weft_scope_open(&b, WEFT_NEVER, "inner");
	(void)weft_fiber_yield(NULL);
	CHECK_EQ(weft_scope_check(), -ETIMEDOUT);
	CHECK_EQ(weft_scope_close(&b), 0);
	CHECK_EQ(weft_scope_close(&a), -ETIMEDOUT);
	(void)weft_fiber_yield(NULL);
	return first;
}

TEST(a_fiber_has_scopes_of_its_own_while_it_runs)
{
	weft_fiber *f = weft_fiber_new(yields_in_scopes, NULL);
	weft_scope s;

	(void)weft_fiber_resume(f, NULL);
	CHECK_EQ(weft_scope_check(), 0);
	weft_scope_open(&s, WEFT_NEVER, "s");
	weft_scope_cancel(&s);
	(void)weft_fiber_resume(f, NULL);
	CHECK_EQ(weft_scope_check(), -ECANCELED);
	CHECK_EQ(weft_scope_close(&s), -ECANCELED);
	(void)weft_fiber_resume(f, NULL);
	CHECK_EQ(weft_scope_check(), 0);
	weft_fiber_free(f);
}

/* --- suspended ones --- */

struct suspended {
	weft_group g;
	int is_asked, error_then; /* atomic */
	int error;
};

/* Whether something is over for it, as soon as it is asked. */
static int looks(void *arg)
{
	struct suspended *s = arg;

	while (!__atomic_load_n(&s->is_asked, __ATOMIC_ACQUIRE))
		(void)sched_yield();
	__atomic_store_n(&s->error_then, weft_scope_check(), __ATOMIC_RELEASE);
	return 0;
}

static int ask(struct suspended *s)
{
	int error;

	__atomic_store_n(&s->is_asked, 1, __ATOMIC_RELEASE);
	while ((error = __atomic_load_n(&s->error_then, __ATOMIC_ACQUIRE)) == 1)
		(void)sched_yield();
	return error;
}

static void *waits_for_a_group(void *arg)
{
	struct suspended *s = arg;
	weft_scope own;

	weft_scope_open(&own, WEFT_NEVER, "own");
	CHECK_EQ(weft_group_go(&s->g, looks, s), 0);
	(void)weft_fiber_yield(NULL);
	s->error = weft_scope_check();
	(void)weft_group_wait(&s->g);
	(void)weft_scope_close(&own);
	return NULL;
}

/* In place, which is closed then. */
static weft_fiber *suspend(struct suspended *s)
{
	weft_fiber *f = weft_fiber_new(waits_for_a_group, NULL);

	*s = (struct suspended){ .error_then = 1 };
	weft_scope_open(&place, WEFT_NEVER, "around");
	(void)weft_fiber_resume(f, s);
	CHECK_EQ(weft_scope_close(&place), 0);
	return f;
}

static void go_on_with(weft_fiber *f)
{
	(void)weft_fiber_resume(f, NULL);
	CHECK(weft_fiber_is_done(f));
	weft_fiber_free(f);
}

TEST(what_its_resumer_opens_later_is_not_around_a_suspended_fiber)
{
	struct suspended s;
	weft_fiber *f = suspend(&s);

	weft_scope_open(&place, WEFT_NOW, "another one, in the same place");
	weft_scope_cancel(&place);
	CHECK_EQ(ask(&s), 0);
	CHECK_EQ(weft_scope_close(&place), 0);
	go_on_with(f);
	CHECK_EQ(s.error, 0);
}

/* The byte is neither a shield's state nor a sound one. */
TEST(a_canceller_does_not_look_where_the_resumer_of_a_suspended_fiber_has_closed_one)
{
	struct suspended s;
	weft_scope outer;
	weft_fiber *f;

	weft_scope_open(&outer, WEFT_NEVER, "outer");
	f = suspend(&s);
	memset(&place, 0x40, sizeof(place));
	weft_scope_cancel(&outer);
	CHECK_EQ(ask(&s), 0);
	go_on_with(f);
	CHECK_EQ(s.error, -ECANCELED);
	CHECK_EQ(weft_scope_close(&outer), -ECANCELED);
}

/* --- tasks --- */

struct taken {
	int stage;
	int error;
};

static void waits_long(void *arg)
{
	struct taken *t = arg;

	reach_stage(&t->stage, 1);
	t->error = weft_sleep_until(weft_now() + 100 * WEFT_SEC);
	reach_stage(&t->stage, 2);
}

/* Until that it is not joined, so a crew thread runs it. */
static void *forks(void *arg)
{
	struct taken *taken = arg;
	weft_scope own;
	weft_task t;

	weft_scope_open(&own, WEFT_NEVER, "own");
	weft_task_fork(&t, waits_long, taken);
	await_stage(&taken->stage, 1);
	(void)weft_fiber_yield(NULL);
	await_stage(&taken->stage, 2);
	weft_task_join(&t);
	(void)weft_scope_close(&own);
	return NULL;
}

TEST(a_task_that_was_taken_over_hears_of_the_scope_that_its_fiber_is_resumed_in)
{
	struct taken taken = { 0, 0 };
	weft_fiber *f;

	if (!has_others())
		SKIP("nobody takes a task over");
	f = weft_fiber_new(forks, NULL);
	(void)weft_fiber_resume(f, &taken);
	weft_scope_open(&place, WEFT_NEVER, "around");
	weft_scope_cancel(&place);
	(void)weft_fiber_resume(f, NULL);
	CHECK(weft_fiber_is_done(f));
	(void)weft_scope_close(&place);
	CHECK_EQ(taken.error, -ECANCELED);
	weft_fiber_free(f);
}

#ifndef __SANITIZE_THREAD__ /* it knows no threads in a child that was forked beside others */

static struct {
	int stage;
	struct suspended suspended;
} crew;

static void *opens_in_a_task(void *arg)
{
	weft_scope own;

	weft_scope_open(&own, WEFT_NEVER, "own");
	if (weft_group_go(&crew.suspended.g, looks, &crew.suspended) != 0)
		_exit(3);
	(void)weft_fiber_yield(NULL);
	return arg;
}

static void leaves_a_fiber(void *arg)
{
	(void)weft_fiber_resume(weft_fiber_new(opens_in_a_task, NULL), arg);
	reach_stage(&crew.stage, 1);
}

static int forks_and_joins(void)
{
	const size_t bytes = 4096;
	weft_scope *around = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				  -1, 0);
	weft_task t;

	crew.suspended = (struct suspended){ .error_then = 1 };
	weft_scope_open(around, WEFT_NEVER, "around");
	weft_task_fork(&t, leaves_a_fiber, NULL);
	await_stage(&crew.stage, 1);
	weft_task_join(&t);
	if (weft_scope_close(around) != 0 || munmap(around, bytes) != 0)
		return 1;
	return ask(&crew.suspended) ? 2 : 0;
}

/* In a process of its own, which ends before the crew thread would, with a group that nobody waits for. */
TEST(a_fiber_that_a_task_leaves_is_in_no_scope_of_the_forker)
{
	pid_t pid;
	int status;

	if (!has_others())
		SKIP("nobody takes a task over");
	pid = fork();
	if (!pid)
		_exit(forks_and_joins());
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
}

#endif

/* --- transfers --- */

static weft_fiber *waits, *transfers;
static weft_scope later;

static void *transfers_home(void *arg)
{
	(void)weft_fiber_transfer(NULL, NULL);
	(void)weft_fiber_yield(NULL);
	return arg;
}

static void *opens_one_later(void *arg)
{
	(void)weft_fiber_resume(transfers, NULL);
	weft_scope_open(&later, WEFT_NEVER, "later");
	(void)weft_fiber_transfer(NULL, NULL);
	(void)weft_scope_close(&later);
	return arg;
}

/* The scope that was around it when it resumed another fiber was closed behind that one's transfer. */
TEST(a_fiber_takes_along_what_it_has_opened_behind_a_transfer_past_it)
{
	waits = weft_fiber_new(opens_one_later, NULL);
	transfers = weft_fiber_new(transfers_home, NULL);
	weft_scope_open(&place, WEFT_NEVER, "around");
	(void)weft_fiber_transfer(waits, NULL);
	CHECK_EQ(weft_scope_close(&place), 0);
	(void)weft_fiber_transfer(transfers, NULL);
	weft_scope_cancel(&later);
	CHECK_EQ(weft_scope_check(), 0);
	(void)weft_fiber_transfer(waits, NULL);
	CHECK(weft_fiber_is_done(waits));
	weft_fiber_free(waits);
	weft_fiber_free(transfers);
}

/* --- at each instruction --- */

#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)

#define TRAP_FLAG 0x100

static sigjmp_buf jump;
static volatile sig_atomic_t is_stepping, nr_steps, leaves_at;

static void step(int sig, siginfo_t *info, void *context)
{
	ucontext_t *c = context;

	(void)sig;
	(void)info;
	if (!is_stepping) {
		c->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
		return;
	}
	if (nr_steps++ == leaves_at) {
		is_stepping = 0;
		siglongjmp(jump, 1);
	}
}

static inline __attribute__((always_inline)) void begin_to_step(void)
{
	nr_steps = 0;
	is_stepping = 1;
	__asm__ volatile("sub $128, %%rsp; pushf; orq $0x100, (%%rsp); popf; add $128, %%rsp" ::
				 : "memory", "cc");
}

static void *opens_another_one(void *arg)
{
	weft_scope first;

	weft_scope_open(&first, WEFT_NEVER, "first");
	(void)weft_fiber_yield(NULL);
	(void)weft_scope_close(&first);
	weft_scope_open(&later, WEFT_NEVER, "later");
	(void)weft_fiber_yield(NULL);
	(void)weft_scope_close(&later);
	return arg;
}

/* True: the close came to its end. */
static bool close_until(int at)
{
	leaves_at = at;
	if (!sigsetjmp(jump, 1)) {
		begin_to_step();
		(void)weft_scope_close(&place);
		is_stepping = 0;
		return true;
	}
	(void)weft_scope_close(&place);
	return false;
}

static int leaves_closes(void *arg)
{
	struct sigaction action = { .sa_sigaction = step, .sa_flags = SA_SIGINFO }, before;
	bool is_whole = false;

	(void)sigaction(SIGTRAP, &action, &before);
	for (int at = 0; !is_whole; at++) {
		weft_fiber *f = weft_fiber_new(opens_another_one, NULL);

		(void)weft_fiber_resume(f, NULL);
		weft_scope_open(&place, WEFT_NEVER, "closed");
		is_whole = close_until(at);
		(void)weft_fiber_resume(f, NULL);
		weft_scope_cancel(&later);
		CHECK_EQ(weft_scope_check(), 0);
		(void)weft_fiber_resume(f, NULL);
		weft_fiber_free(f);
	}
	(void)sigaction(SIGTRAP, &before, NULL);
	return 0;
}

TEST(a_fiber_takes_its_own_along_wherever_a_handler_was_left_in_a_close)
{
	weft_thread *t;
	int result;

	(void)leaves_closes(NULL);
	CHECK_EQ(weft_thread_spawn(leaves_closes, NULL, NULL, &t), 0);
	CHECK_EQ(weft_thread_join(t, &result, WEFT_NEVER), 0);
}

/* --- two who cancel --- */

static struct {
	int stage;
	weft_group g;
	int has_looked;
	int error;
} two;

/* In the midst of the cancel of place: it is marked, and nobody was told. */
static void hold_the_canceller(int sig, siginfo_t *info, void *context)
{
	ucontext_t *c = context;
	weft_scope now;

	(void)sig;
	(void)info;
	memcpy(&now, &place, sizeof(now));
	if (is_stepping && memcmp(&now, &later, sizeof(now)) == 0)
		return;
	if (is_stepping) {
		is_stepping = 0;
		reach_stage(&two.stage, 2);
		while (__atomic_load_n(&two.stage, __ATOMIC_ACQUIRE) < 4)
			;
	}
	c->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
}

static int looks_until_cancelled(void *arg)
{
	weft_event never = { { 0 } };

	/* From this wait on it looks at its scopes only when it is told to. */
	CHECK_EQ(weft_event_wait(&never, weft_now() + WEFT_MS), -ETIMEDOUT);
	reach_stage(&two.has_looked, 1);
	while (!(two.error = weft_scope_check()))
		(void)sched_yield();
	reach_stage(&two.has_looked, 2);
	return *(int *)arg;
}

static void *is_in_between(void *arg)
{
	static int zero;
	weft_scope own;

	weft_scope_open(&own, WEFT_NEVER, "own");
	CHECK_EQ(weft_group_go(&two.g, looks_until_cancelled, &zero), 0);
	await_stage(&two.has_looked, 1);
	(void)weft_fiber_yield(NULL);
	reach_stage(&two.stage, 1);
	await_stage(&two.stage, 3);
	(void)weft_fiber_yield(NULL);
	(void)weft_group_wait(&two.g);
	(void)weft_scope_close(&own);
	return arg;
}

static void *cancels_the_scope(void *arg)
{
	await_stage(&two.stage, 1);
	memcpy(&later, &place, sizeof(later));
	begin_to_step();
	weft_scope_cancel(&place);
	is_stepping = 0;
	if (__atomic_load_n(&two.stage, __ATOMIC_ACQUIRE) < 2)
		reach_stage(&two.stage, 2);
	return arg;
}

static void *cancels_the_group(void *arg)
{
	await_stage(&two.stage, 2);
	weft_group_cancel(&two.g);
	reach_stage(&two.stage, 3);
	return arg;
}

/* The second leaves the telling to the first, which finds the group no more in what it cancels. */
TEST(a_group_that_its_fiber_takes_away_from_a_canceller_is_told_of_another_one)
{
	struct sigaction action = { .sa_sigaction = hold_the_canceller, .sa_flags = SA_SIGINFO },
			 before;
	weft_fiber *f = weft_fiber_new(is_in_between, NULL);
	pthread_t cancellers[2];

	if (weft_mode(NULL) == WEFT_MODE_ATTACHED)
		SKIP("attached each of them tells");
	(void)sigaction(SIGTRAP, &action, &before);
	(void)weft_fiber_resume(f, NULL);
	weft_scope_open(&place, WEFT_NEVER, "around");
	CHECK_EQ(pthread_create(&cancellers[0], NULL, cancels_the_scope, NULL), 0);
	CHECK_EQ(pthread_create(&cancellers[1], NULL, cancels_the_group, NULL), 0);
	(void)weft_fiber_resume(f, NULL);
	reach_stage(&two.stage, 4);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(pthread_join(cancellers[i], NULL), 0);
	(void)weft_scope_close(&place);
	await_stage(&two.has_looked,
		    2); /* before the group is waited for, which would tell again */
	CHECK_EQ(two.error, -ECANCELED);
	(void)weft_fiber_resume(f, NULL);
	CHECK(weft_fiber_is_done(f));
	weft_fiber_free(f);
	(void)sigaction(SIGTRAP, &before, NULL);
}

#endif
