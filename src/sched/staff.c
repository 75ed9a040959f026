// SPDX-License-Identifier: Apache-2.0
/* Making, keeping and ending kernel threads; see staff.h. */
#include "sched/staff.h"
#include "arch/arch.h"
#include "base/fmt.h"
#include "mem/stack.h"
#include "sched/carrier.h"
#include "sched/record.h"
#include "sched/runtime.h"

#include <errno.h>
#include <signal.h>

#define SPARES_KEPT 2
#define PR_SET_NAME 15

void wf_staff_end(struct wf_kthread *k)
{
	wf_spin_lock(&wf_rt.lock);
	k->next_spare = wf_rt.ended;
	wf_rt.ended = k;
	wf_spin_unlock(&wf_rt.lock);
}

/*
 * All but three words. A monitor that took k for a worker's before it ended may be counted in nr_preempting, and is about to count
 * itself out; somebody may take back the errand that it has asked of k, or give k a ring.
 */
static void make_new(struct wf_kthread *k)
{
	const size_t kept = offsetof(struct wf_kthread, nr_preempting);
	const size_t behind = offsetof(struct wf_kthread, ring) + sizeof(k->ring);
	const struct wf_kthread fresh = {
		.self = k,
		.is_revived = true,
		.stack = k->stack,
		.altstack = k->altstack,
		.save_area = k->save_area,
		.index = k->index,
		.count = k->count,
	};

	__builtin_memcpy(k, &fresh, kept);
	__builtin_memcpy((char *)k + behind, (const char *)&fresh + behind, sizeof(fresh) - behind);
}

/* The structure and the stacks of a kernel thread that is gone for good: the kernel has cleared its tid. */
static struct wf_kthread *take_ended(void)
{
	struct wf_kthread **at, *k = NULL;

	if (!wf_load_relaxed(&wf_rt.ended))
		return NULL;
	wf_spin_lock(&wf_rt.lock);
	for (at = &wf_rt.ended; *at; at = &(*at)->next_spare) {
		if (wf_load_acquire(&(*at)->tid) != 0)
			continue;
		k = *at;
		*at = k->next_spare;
		/* A look at all kernel threads sees that one came; see linux/everybody.c. */
		wf_fetch_add(&wf_rt.nr_reviving, 1u);
		wf_fetch_add(&wf_rt.revivals, 1u);
		break;
	}
	wf_spin_unlock(&wf_rt.lock);
	if (k)
		make_new(k);
	return k;
}

/*
 * The structures lie apart from the stacks: a debugger that writes a core file stops at the first guard inside a
 * mapping, and these say what all the rest means. They become memory as they are needed.
 */
static struct wf_kthread *pool; /* (p) */
static uint32_t pool_max;       /* (p) */

#define KTHREAD_STACKS 2u /* its own, and the alternate one */
_Static_assert(WF_KSTACK_BYTES == WF_ALTSTACK_BYTES, "they are mapped together");
#define KTHREAD_BYTES (KTHREAD_STACKS * WF_STACK_STRIDE(WF_KSTACK_BYTES))

#define KTHREADS_PER_STEP 512u /* whole pages of either */

/* Under wf_rt.lock. */
static bool make_room(uint32_t i)
{
	if (!pool_max)
		pool_max = sys_room_for(KTHREAD_BYTES, KTHREADS_PER_STEP, WF_MAX_KTHREADS);
	if (!pool)
		pool = sys_reserve(pool_max * sizeof(*pool));
	if (!wf_rt.kthreads)
		wf_rt.kthreads = sys_reserve(pool_max * sizeof(struct wf_kthread *));
	if (!pool || !wf_rt.kthreads || i == pool_max)
		return false;
	return i % KTHREADS_PER_STEP ||
	       (sys_commit(pool + i, KTHREADS_PER_STEP * sizeof(*pool)) == 0 &&
		sys_commit(wf_rt.kthreads + i, KTHREADS_PER_STEP * sizeof(struct wf_kthread *)) ==
			0);
}

/* One mapping per kernel thread: guard page, stack, guard page, alternate stack. NULL without memory. */
static struct wf_kthread *map_kthread(void)
{
	char *stacks = wf_stack_map(WF_KSTACK_BYTES, KTHREAD_STACKS);
	struct wf_kthread *k;

	if (!stacks)
		return NULL;
	wf_spin_lock(&wf_rt.lock);
	if (!make_room(wf_rt.nr_kthreads)) {
		wf_spin_unlock(&wf_rt.lock);
		wf_stack_unmap(stacks, WF_KSTACK_BYTES, KTHREAD_STACKS);
		return NULL;
	}
	k = &pool[wf_rt.nr_kthreads];
	*k = (struct wf_kthread){
		.self = k,
		.stack = stacks,
		.altstack = stacks + WF_STACK_STRIDE(WF_KSTACK_BYTES),
		.index = wf_rt.nr_kthreads,
	};
	wf_store_release(&wf_rt.kthreads[k->index], k);
	wf_store_release(&wf_rt.nr_kthreads, k->index + 1);
	wf_spin_unlock(&wf_rt.lock);
	return k;
}

struct wf_kthread *wf_staff_new(void)
{
	struct wf_kthread *k;

	if (WF_UNLIKELY(wf_load_seq_cst(&wf_rt.is_stopping)))
		return NULL;
	k = take_ended();
	if (!k)
		k = map_kthread();
	if (k) {
		k->rng = wf_rt.seed + k->index;
		wf_record_give(k);
	}
	return k;
}

void wf_staff_add_spare(struct wf_kthread *k)
{
	wf_store_release(&k->sleep_word, 1u); /* before it can be found: a carrier clears it */
	wf_spin_lock(&wf_rt.lock);
	k->next_spare = wf_rt.spares;
	wf_rt.spares = k;
	wf_rt.nr_spares++;
	wf_spin_unlock(&wf_rt.lock);
}

bool wf_staff_retire_spare(struct wf_kthread *k)
{
	struct wf_kthread **at = &wf_rt.spares;
	bool ends = false;

	wf_spin_lock(&wf_rt.lock);
	while (wf_rt.nr_spares > SPARES_KEPT && *at && *at != k)
		at = &(*at)->next_spare;
	/* Not on the list: somebody has just taken it. */
	if (wf_rt.nr_spares > SPARES_KEPT && *at) {
		*at = k->next_spare;
		wf_rt.nr_spares--;
		wf_fetch_sub(&wf_rt.nr_unbound, 1u);
		k->next_spare = wf_rt.ended;
		wf_rt.ended = k;
		ends = true;
	}
	wf_spin_unlock(&wf_rt.lock);
	return ends;
}

struct wf_kthread *wf_staff_take_spare(void)
{
	struct wf_kthread *k;

	wf_spin_lock(&wf_rt.lock);
	k = wf_rt.spares;
	if (k) {
		wf_rt.spares = k->next_spare;
		wf_rt.nr_spares--;
	}
	wf_spin_unlock(&wf_rt.lock);
	return k;
}

/* k is made as we are: with what we have done for requests to all, and no more is done between here and the clone. */
static void inherit_requests(struct wf_kthread *k, const struct wf_kthread *own)
{
	k->request_claimed = k->request_answered = wf_load_seq_cst(&own->request_answered);
	k->request_ret = own->request_ret;
}

long wf_staff_spawn(struct wf_kthread *k, void (*loop)(void *))
{
	const struct wf_kthread *own = wf_self_kthread(); /* NULL: k is the first of all */
	bool was_revived = k->is_revived;                 /* it may end before we look again */
	const uint64_t all = ~0ull;
	uint64_t mask;
	long tid;

	/* Until it knows itself it takes itself for us: a kick for it would be answered in our name. */
	(void)sys_sigprocmask(SIG_SETMASK, &all, &mask);
	if (own)
		inherit_requests(k, own);
	tid = wf_arch_spawn_kthread((char *)k->stack + WF_KSTACK_BYTES, loop, k, &k->tid);
	(void)sys_sigprocmask(SIG_SETMASK, &mask, NULL);
	if (was_revived)
		wf_fetch_sub(&wf_rt.nr_reviving, 1u);
	return WF_MIN(tid, 0);
}

long wf_staff_spawn_spare(void)
{
	struct wf_kthread *k = wf_staff_new();
	long ret;

	if (!k)
		return -ENOMEM;
	ret = wf_staff_spawn(k, wf_carrier_loop);
	if (ret == 0)
		wf_fetch_add(&wf_rt.nr_unbound, 1u);
	else
		wf_staff_end(k);
	return ret;
}

struct wf_kthread *wf_staff_spawn_bound(struct wf_thread *t)
{
	struct wf_kthread *k = wf_staff_new();

	if (!k)
		return NULL;
	k->bound = t;
	k->cpu_began = 1; /* its clock begins at 0, and all of it is t's */
	wf_store_release(&t->bound, k);
	if (wf_staff_spawn(k, wf_carrier_loop) == 0)
		return k;
	wf_store_release(&t->bound, (struct wf_kthread *)NULL);
	wf_staff_end(k);
	return NULL;
}

bool wf_staff_spawn_helper(void (*loop)(void *), void *arg)
{
	struct wf_kthread *k;

	if (wf_has_own_state(wf_own_kthread()))
		return false;
	k = wf_staff_new();
	if (!k)
		return false;
	k->is_helper = true;
	k->helper_arg = arg;
	if (wf_staff_spawn(k, loop) == 0)
		return true;
	wf_staff_end(k);
	return false;
}

void wf_staff_name(const char *role)
{
	char name[sizeof(wf_rt.name)];
	struct wf_fmt f;

	if (wf_load_acquire(&wf_rt.is_filtered))
		return;
	wf_fmt_init(&f, name, sizeof(name));
	wf_fmt_str(&f, role);
	wf_fmt_str(&f, ":");
	wf_fmt_str(&f, wf_rt.name);
	(void)sys2(__NR_prctl, PR_SET_NAME, name);
}

bool wf_staff_have_all_ended(void)
{
	for (uint32_t i = 0; i < wf_load_acquire(&wf_rt.nr_kthreads); i++)
		if (!wf_rt.kthreads[i]->is_door && wf_load_acquire(&wf_rt.kthreads[i]->tid))
			return false;
	return true;
}

void wf_staff_done(void)
{
	for (uint32_t i = 0; i < wf_rt.nr_kthreads; i++) {
		struct wf_kthread *k = wf_rt.kthreads[i];

		wf_stack_unmap(k->stack, WF_KSTACK_BYTES, KTHREAD_STACKS);
		wf_record_unmap(k->ring);
	}
	sys_unmap(wf_rt.kthreads, pool_max * sizeof(struct wf_kthread *));
	sys_unmap(pool, pool_max * sizeof(*pool));
	pool = NULL;
	pool_max = 0;
	wf_rt.kthreads = NULL;
}
