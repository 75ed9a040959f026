// SPDX-License-Identifier: Apache-2.0
/*
 * Locks with priority inheritance (linux/futex_pi.c), used as libc does: a compare-and-swap while nobody waits, else the
 * call. Nobody waits for ever for a lock that is free, no two threads own one, and nobody is told that an owner is dead
 * who had unlocked.
 */
#include "linux/futex_table.h"
#include "linux/ring.h"
#include "machine.h"
#include "model.h"
#include "linux/call.h"
#include "linux/deadline.h"
#include "linux/futex_pi.h"
#include "linux/sigwant.h"

#include <string.h>

#include "tap.h"

#define TID_MASK 0x3fffffffu
#define WAITERS 0x80000000u
#define OWNER_DIED 0x40000000u
#define MAX_THREADS 3

static uint32_t word, condition;
static struct lx_thread *threads[MAX_THREADS];
static uint32_t nr_threads, nr_inside, nr_entered, nr_orphaned, nr_late;
static bool has_signal, may_end;

/* --- what the files of src/linux ask of others --- */

struct lx_process lx;

/* Of one look: what a mutation does not look at again. */
static struct {
	const uint32_t *word;
	uint32_t value, tid;
	struct lx_thread *thread;
} seen[MAX_THREADS];

static uint32_t self_index(void)
{
	uint32_t i = 0;

	while (i < MAX_THREADS - 1 && threads[i] != lx_self())
		i++;
	return i;
}

struct lx_thread *lx_by_tid(uint32_t tid)
{
	const uint32_t i = self_index();
	struct wf_thread *t;

	if (model_is_mutated(__func__, "again") && seen[i].tid == tid) {
		seen[i].tid = 0;
		return seen[i].thread;
	}
	t = wf_thread_by_tid(tid);
	seen[i].tid = tid;
	seen[i].thread = t ? lx_of(t) : NULL;
	return seen[i].thread;
}

long wf_arch_load32(const uint32_t *p, uint32_t *out)
{
	const uint32_t i = self_index();

	if (model_is_mutated(__func__, "again") && seen[i].word == p) {
		seen[i].word = NULL;
		*out = seen[i].value;
		return 0;
	}
	*out = wf_load_acquire(p);
	seen[i].word = p;
	seen[i].value = *out;
	return 0;
}

long wf_arch_cas32(uint32_t *p, uint32_t *expected, uint32_t desired)
{
	seen[self_index()].word = NULL;
	(void)wf_cas(p, expected, desired);
	return 0;
}

long wf_arch_copy(void *dst, const void *src, size_t n)
{
	wf_store_release((uint32_t *)dst, *(const uint32_t *)src);
	return n == sizeof(uint32_t) ? 0 : -EFAULT;
}

bool lx_signal_is_waiting(struct lx_thread *self)
{
	(void)wf_fetch_and(&self->base.attention, ~WF_ATT_SIGNAL);
	return wf_exchange(&has_signal, false);
}

long lx_blocking_call(long nr, const long args[6], bool certain, enum lx_restart restart)
{
	return -ENOSYS;
}

long lx_ring_futex(uint32_t *addr, uint32_t expected, uint32_t mask, int64_t deadline)
{
	return -ENOSYS;
}

long lx_deadline_relative(const void *user_timespec, int64_t *out_deadline)
{
	return -EFAULT;
}

long lx_deadline_absolute(const void *user_timespec, int clock, int64_t *out_deadline)
{
	return -EFAULT;
}

/* --- programs --- */

static bool lock_at_once(void)
{
	uint32_t none = 0;

	return wf_cas(&word, &none, lx_tid(lx_self()));
}

static long lock_until(int64_t deadline)
{
	long ret;

	if (lock_at_once())
		return 0;
	do
		ret = lx_futex_lock_pi(&word, deadline, false, false);
	while (ret == -ERESTARTNOINTR);
	return ret;
}

static void be_inside(void)
{
	model_expect((word & TID_MASK) == lx_tid(lx_self()), "the word is not its owner's");
	model_expect(++nr_inside == 1, "two threads own the lock");
	model_step();
	nr_inside--;
	nr_entered++;
}

static void unlock(void)
{
	uint32_t mine = lx_tid(lx_self());

	if (!wf_cas(&word, &mine, 0u))
		model_expect(lx_futex_unlock_pi(&word, false) == 0, "unlock failed");
}

static void locks_once(void *arg)
{
	model_expect(lock_until(WF_NEVER) == 0, "lock failed");
	be_inside();
	unlock();
}

static void locks_twice(void *arg)
{
	locks_once(NULL);
	locks_once(NULL);
}

static bool have_both_entered(void *arg)
{
	return nr_entered == 2;
}

/* A waiter that marks the word behind its owner's unlock is not helped by the owner's end. */
static void locks_and_stays(void *arg)
{
	locks_once(NULL);
	(void)model_wait(have_both_entered, NULL, WF_NEVER);
}

static void tries(void *arg)
{
	long ret = lock_at_once() ? 0 : lx_futex_lock_pi(&word, WF_NEVER, true, false);

	model_expect(ret == 0 || ret == -EWOULDBLOCK, "trylock failed");
	if (ret)
		return;
	be_inside();
	unlock();
}

static void locks_for_a_while(void *arg)
{
	long ret = lock_until(model_now() + WF_MS);

	model_expect(ret == 0 || ret == -ETIMEDOUT, "timed lock failed");
	if (ret)
		return;
	be_inside();
	unlock();
}

/* Keeps the lock for as long as the others may wait for it. */
static void holds(void *arg)
{
	model_expect(lock_until(WF_NEVER) == 0, "lock failed");
	wf_park_begin(0, WF_WAIT_SLEEP, 0);
	(void)wf_park(model_now() + WF_MS);
	be_inside();
	unlock();
}

/* The owner ends without unlocking: who waits gets it, who comes later is told. */
static void ends_as_owner(void *arg)
{
	model_expect(lock_until(WF_NEVER) == 0, "lock failed");
	be_inside();
	may_end = true;
}

static void dies_with_list(void *arg)
{
	ends_as_owner(NULL);
	lx_futex_owner_died(&word, true, false, lx_tid(lx_self()));
}

static bool is_taken(void *arg)
{
	return may_end || word;
}

static void inherits(void *arg)
{
	long ret = lock_until(WF_NEVER);

	if (ret == -ESRCH) {
		nr_late++;
		return;
	}
	model_expect(ret == 0, "lock failed");
	nr_orphaned += (word & OWNER_DIED) != 0;
	be_inside();
	unlock();
}

static void inherits_later(void *arg)
{
	(void)model_wait(is_taken, NULL, WF_NEVER);
	inherits(NULL);
}

/* libc's condition variables, as they were. */
static void waits_for_condition(void *arg)
{
	long ret = lock_until(WF_NEVER);

	model_expect(ret == 0, "lock failed");
	while (!wf_load_relaxed(&condition) && ret != -ETIMEDOUT) {
		unlock();
		do
			ret = lx_futex_wait_requeue_pi(&condition, 0, *(int64_t *)arg, &word);
		while (ret == -ERESTARTNOINTR);
		model_expect(ret == 0 || ret == -EAGAIN || ret == -ETIMEDOUT, "wait failed");
		if (ret < 0)
			model_expect(lock_until(WF_NEVER) == 0, "lock failed");
	}
	be_inside();
	unlock();
}

static void broadcasts(void *arg)
{
	long ret;

	model_expect(lock_until(WF_NEVER) == 0, "lock failed");
	wf_store_release(&condition, 1u);
	ret = lx_futex_requeue_pi(&condition, 1, 1, &word, condition);
	model_expect(ret >= 0, "requeue failed");
	be_inside();
	unlock();
}

static void interrupts(void *arg)
{
	struct wf_thread *t = &threads[(uintptr_t)arg]->base;

	model_step();
	wf_store_seq_cst(&has_signal, true);
	(void)wf_fetch_or(&t->attention, WF_ATT_SIGNAL);
	(void)wf_unpark(t, WF_WAKE_INTERRUPTED);
}

/* --- setting up and judging --- */

static void thread_exited(struct wf_thread *t)
{
	machine_thread_exited(t);
	lx_futex_thread_ended(lx_of(t));
}

static void begin(void)
{
	static const struct wf_sched_hooks hooks = { .thread_exited = thread_exited };

	machine_object_bytes = sizeof(struct lx_thread);
	machine_reset(2);
	wf_rt.hooks = wf_hooks_fill(&hooks);
	lx_futex_init(0x9e3779b97f4a7c15ull);
	word = condition = 0;
	nr_threads = nr_inside = nr_entered = nr_orphaned = nr_late = 0;
	has_signal = may_end = false;
	memset(seen, 0, sizeof(seen));
	memset(threads, 0, sizeof(threads));
	(void)machine_kthread(&wf_rt.workers[0]);
	(void)machine_kthread(&wf_rt.workers[1]);
}

static void add(int worker, void (*program)(void *), void *arg)
{
	struct wf_thread *t = machine_thread(program, arg);

	lx_of(t)->pi_groups = 0;
	lx_of(t)->priority = 0;
	wf_list_init(&lx_of(t)->futex.link);
	threads[nr_threads++] = lx_of(t);
	machine_queue(&wf_rt.workers[worker], t);
}

static void check(void)
{
	const struct lx_futex_bucket *b = lx_futex_bucket_of(&word);

	machine_check();
	model_expect(b->waiters.next == &b->waiters, "somebody is still in the table");
	model_expect(!b->lock.held, "the bucket stayed locked");
}

static void check_free(void)
{
	check();
	model_expect(!(word & TID_MASK), "the lock stayed taken");
}

static void check_inherited(void)
{
	check();
	model_expect(nr_late || nr_orphaned, "the lock of the dead was not marked");
	model_expect(nr_late || !(word & TID_MASK), "the lock stayed taken");
}

static void check_robust(void)
{
	check_free();
	model_expect(!nr_late, "a lock that is passed on has no dead owner");
}

static void setup_contended(void)
{
	begin();
	add(0, locks_twice, NULL);
	add(1, locks_once, NULL);
	add(0, locks_once, NULL);
}

static void setup_tried(void)
{
	begin();
	add(0, locks_once, NULL);
	add(1, tries, NULL);
	add(0, locks_once, NULL);
}

static void setup_timed(void)
{
	begin();
	add(0, holds, NULL);
	add(1, locks_for_a_while, NULL);
	add(0, locks_for_a_while, NULL);
}

static void setup_brief(void)
{
	begin();
	add(0, locks_once, NULL);
	add(1, locks_once, NULL);
}

static void setup_stays(void)
{
	begin();
	add(0, locks_and_stays, NULL);
	add(1, locks_once, NULL);
}

static void setup_orphaned(void)
{
	begin();
	add(0, ends_as_owner, NULL);
	add(1, inherits_later, NULL);
}

static void setup_orphaned_row(void)
{
	setup_orphaned();
	add(1, inherits_later, NULL);
}

static void setup_robust(void)
{
	begin();
	add(0, dies_with_list, NULL);
	add(1, inherits_later, NULL);
}

static int64_t never, soon;

static void setup_requeued(void)
{
	begin();
	never = WF_NEVER;
	add(0, waits_for_condition, &never);
	add(1, broadcasts, NULL);
	add(0, waits_for_condition, &never);
}

static void setup_requeued_late(void)
{
	begin();
	soon = model_now() + WF_MS;
	add(0, waits_for_condition, &soon);
	add(1, broadcasts, NULL);
}

static void setup_interrupted(void)
{
	begin();
	add(0, holds, NULL);
	add(1, locks_once, NULL);
	machine_stranger(interrupts, (void *)1);
}

#define MODEL(name, judge, b)                                                                      \
	static const struct model name = {                                                         \
		.setup = setup_##name, .check = (judge), .bound = (b), .walks = 2000               \
	}
MODEL(contended, check_free, 1);
MODEL(tried, check_free, 1);
MODEL(timed, check_free, 1);
MODEL(brief, check_free, 2);
MODEL(stays, check_free, 2);
MODEL(orphaned, check_inherited, 2);
MODEL(orphaned_row, check_inherited, 1);
MODEL(robust, check_robust, 2);
MODEL(requeued, check_free, 1);
MODEL(requeued_late, check_free, 1);
MODEL(interrupted, check_free, 1);

TEST(one_owner_at_a_time_and_none_is_forgotten)
{
	model_verify(&contended);
}

TEST(who_only_tries_keeps_nobody_from_the_lock)
{
	model_verify(&tried);
}

TEST(a_time_out_and_a_hand_over_are_one)
{
	model_verify(&timed);
}

TEST(an_owner_that_ends_after_its_unlock_is_not_a_dead_owner)
{
	model_verify(&brief);
}

TEST(a_waiter_inherits_the_lock_of_a_thread_that_ends)
{
	model_verify(&orphaned);
}

TEST(waiters_inherit_it_one_after_the_other)
{
	model_verify(&orphaned_row);
}

TEST(a_robust_lock_has_an_heir_or_is_free)
{
	model_verify(&robust);
}

TEST(who_is_moved_from_a_condition_owns_the_lock_in_turn)
{
	model_verify(&requeued);
}

TEST(who_is_moved_when_its_time_is_over_returns_once)
{
	model_verify(&requeued_late);
}

TEST(a_signal_ends_a_wait_and_the_next_one_is_complete)
{
	model_verify(&interrupted);
}

TEST(a_mark_that_is_not_atomic_is_caught)
{
	model_catches(stays, "wf_arch_cas32", "cas");
}

TEST(a_dead_owner_whose_word_is_not_read_again_is_caught)
{
	model_catches(brief, "wf_arch_load32", "again");
}

TEST(an_owner_that_is_not_looked_at_again_is_caught)
{
	model_catches(orphaned, "lx_by_tid", "again");
}

TEST(a_bucket_that_is_not_locked_is_caught)
{
	model_catches(brief, "wf_spin_lock", "exchange");
}
