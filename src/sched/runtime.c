// SPDX-License-Identifier: Apache-2.0
/* Starting, staffing and forgetting the runtime; see runtime.h. */
#include "sched/runtime.h"
#include "arch/arch.h"
#include "base/die.h"
#include "base/fmt.h"
#include "mem/stack.h"
#include "sched/crowd.h"
#include "sched/idle.h"
#include "sched/monitor.h"
#include "sched/park.h"
#include "sched/preempt.h"
#include "sched/rate.h"
#include "sched/record.h"
#include "sched/rescue.h"
#include "sched/width.h"

#include <errno.h>
#include <signal.h>

#define SPARES_KEPT 2

#define CLOCK_MONOTONIC_COARSE 6

struct wf_runtime wf_rt = { .slice_ns = WF_SLICE_NS };

#define PR_SET_NAME 15
#define PR_GET_NAME 16

void wf_rt_end_kthread(struct wf_kthread *k)
{
	wf_spin_lock(&wf_rt.lock);
	k->next_spare = wf_rt.ended;
	wf_rt.ended = k;
	wf_spin_unlock(&wf_rt.lock);
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
		*k = (struct wf_kthread){
			.self = k,
			.is_revived = true,
			.stack = k->stack,
			.altstack = k->altstack,
			.save_area = k->save_area,
			.ring = k->ring,
			.index = k->index,
			.count = k->count,
		};
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

static struct wf_kthread *new_kthread(void)
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

void wf_rt_add_spare(struct wf_kthread *k)
{
	wf_store_release(&k->sleep_word, 1u); /* before it can be found: a carrier clears it */
	wf_spin_lock(&wf_rt.lock);
	k->next_spare = wf_rt.spares;
	wf_rt.spares = k;
	wf_rt.nr_spares++;
	wf_spin_unlock(&wf_rt.lock);
}

bool wf_rt_retire_spare(struct wf_kthread *k)
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

bool wf_rt_poll(int64_t timeout_ns)
{
	struct wf_kthread *k = wf_own_kthread();
	struct wf_worker *w = wf_load_relaxed(&k->worker); /* NULL for the door and the poller */
	bool woken;

	k->count.polls++;
	woken = wf_rt.io->poll(timeout_ns);
	if (w) {
		w->poll_paced_at = wf_cpu_cycles();
		wf_store_hint(&w->polled_at, w->poll_paced_at);
	}
	return woken;
}

static struct wf_kthread *take_spare(void)
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

static void attach(struct wf_worker *w, struct wf_kthread *k, bool searching)
{
	k->is_searching = searching;
	wf_store_release(&w->kthread, k);
	wf_store_release(&k->worker, w); /* pairs with the acquire in wf_worker_loop() */
}

/* k is made as we are: with what we have done for requests to all, and no more is done between here and the clone. */
static void inherit_requests(struct wf_kthread *k, const struct wf_kthread *own)
{
	k->request_claimed = k->request_answered = wf_load_seq_cst(&own->request_answered);
	k->request_ret = own->request_ret;
}

/* 0 or -errno. */
static long spawn(struct wf_kthread *k, void (*loop)(void *))
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

bool wf_rt_carry(struct wf_worker *w, bool searching)
{
	struct wf_kthread *k = take_spare();
	long error;

	if (k) {
		attach(w, k, searching);
		wf_store_release(&k->sleep_word, 0u);
		(void)sys_futex_wake(&k->sleep_word, 1);
		return true;
	}
	/* The state that the kernel keeps of a bound thread would be inherited: let somebody else do it. */
	if (wf_has_own_state(wf_own_kthread()))
		return false;
	k = new_kthread();
	if (!k) {
		wf_rescue_note(-ENOMEM);
		return false;
	}
	attach(w, k, searching);
	error = spawn(k, wf_worker_loop);
	if (error == 0) {
		wf_fetch_add(&wf_rt.nr_unbound, 1u);
		return true;
	}
	wf_store_release(&w->kthread, (struct wf_kthread *)NULL);
	wf_store_release(&k->worker, (struct wf_worker *)NULL);
	k->is_searching = false;
	wf_rt_end_kthread(k);
	wf_rescue_note(error);
	return false;
}

long wf_rt_spawn_spare(void)
{
	struct wf_kthread *k = new_kthread();
	long ret;

	if (!k)
		return -ENOMEM;
	ret = spawn(k, wf_worker_loop);
	if (ret == 0)
		wf_fetch_add(&wf_rt.nr_unbound, 1u);
	else
		wf_rt_end_kthread(k);
	return ret;
}

struct wf_kthread *wf_rt_spawn_bound(struct wf_thread *t)
{
	struct wf_kthread *k = new_kthread();

	if (!k)
		return NULL;
	k->bound = t;
	k->cpu_began = 1; /* its clock begins at 0, and all of it is t's */
	wf_store_release(&t->bound, k);
	if (spawn(k, wf_worker_loop) == 0)
		return k;
	wf_store_release(&t->bound, (struct wf_kthread *)NULL);
	wf_rt_end_kthread(k);
	return NULL;
}

bool wf_rt_spawn_helper(void (*loop)(void *), void *arg)
{
	struct wf_kthread *k;

	if (wf_has_own_state(wf_own_kthread()))
		return false;
	k = new_kthread();
	if (!k)
		return false;
	k->is_helper = true;
	k->helper_arg = arg;
	if (spawn(k, loop) == 0)
		return true;
	wf_rt_end_kthread(k);
	return false;
}

void wf_rt_name_kthread(const char *role)
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

void wf_rt_door_kicked(void)
{
	if (wf_load_relaxed(&wf_rt.door_wakes) && wf_exchange(&wf_rt.door_wakes, 0u))
		wf_idle_wake();
}

/* Somebody must poll and keep the timers while threads wait for nothing but the kernel. */
static bool needs_poller(void)
{
	return !wf_load_seq_cst(&wf_rt.nr_idle) &&
	       (wf_rt.io->has_waiters() || wf_load_relaxed(&wf_rt.wheel.nr));
}

static bool needs_carrier(const struct wf_worker *w)
{
	return wf_runq_nr(&w->rq) || wf_load_relaxed(&w->inbox) || needs_poller();
}

static void list_as_vacant(struct wf_worker *w)
{
	wf_store_release(&w->kthread, (struct wf_kthread *)NULL);
	wf_spin_lock(&wf_rt.lock);
	w->next_vacant = wf_rt.vacant;
	wf_rt.vacant = w;
	wf_store_relaxed(&w->is_vacant, 1u);
	wf_store_seq_cst(&wf_rt.nr_vacant, wf_load_relaxed(&wf_rt.nr_vacant) + 1);
	wf_spin_unlock(&wf_rt.lock);
	/* Work may have been queued between the look and the list; its submitter saw no vacant worker. */
	wf_fence_seq_cst(&wf_rt.nr_vacant);
}

static bool is_work_queued(void)
{
	for (uint32_t i = 0; i < wf_rt.nr_workers; i++)
		if (wf_load_seq_cst(&wf_rt.workers[i].rq.nr) ||
		    wf_load_seq_cst(&wf_rt.workers[i].inbox))
			return true;
	return false;
}

void wf_rt_make_vacant(struct wf_worker *w)
{
	if (needs_carrier(w) && wf_rt_carry(w, false))
		return;
	list_as_vacant(w);
	/* A bound thread that began to wait meanwhile saw no vacant worker either. */
	if (is_work_queued() || needs_poller())
		wf_idle_wake();
	/* Refused again before it was on the list, the monitor may have looked in between. */
	if (WF_UNLIKELY(wf_rescue_is_poller_missing()))
		wf_monitor_arm();
}

void wf_rt_leave_vacant(struct wf_worker *w)
{
	if ((wf_runq_nr(&w->rq) || wf_load_relaxed(&w->inbox)) && wf_rt_carry(w, false))
		return;
	list_as_vacant(w);
	if (is_work_queued())
		wf_idle_wake();
	else if (!wf_load_seq_cst(&wf_rt.nr_idle))
		wf_monitor_hurry();
}

struct wf_worker *wf_rt_take_vacant(void)
{
	struct wf_worker *w;

	if (!wf_load_relaxed(&wf_rt.nr_vacant))
		return NULL;
	wf_spin_lock(&wf_rt.lock);
	w = wf_rt.vacant;
	if (w) {
		wf_rt.vacant = w->next_vacant;
		wf_store_relaxed(&w->is_vacant, 0u);
		wf_store_seq_cst(&wf_rt.nr_vacant, wf_load_relaxed(&wf_rt.nr_vacant) - 1);
	}
	wf_spin_unlock(&wf_rt.lock);
	return w;
}

/* The coarse clocks advance with it. */
static int64_t kernel_tick_ns(void)
{
	struct __kernel_timespec step = { 0 };

	(void)sys2(__NR_clock_getres, CLOCK_MONOTONIC_COARSE, &step);
	return step.tv_sec ? 0 : step.tv_nsec;
}

struct wf_thread *wf_runtime_start(const struct wf_runtime_config *config)
{
	const uint32_t nr_workers = config->nr_workers;
	struct wf_thread *t;
	struct wf_kthread *door;

	wf_rt.io = config->io;
	wf_rt.hooks = wf_hooks_fill(config->hooks);
	wf_rt.seed = config->seed;
	wf_rt.slice_ns = config->slice_ns ? config->slice_ns : WF_SLICE_NS;
	wf_rt.is_shuffled = config->is_shuffled;
	wf_rt.keeps_worker = config->keeps_worker;
	wf_rt.is_realtime = config->is_realtime;
	wf_rt.pid = (int)sys0(__NR_getpid);
	wf_rt.nr_workers = nr_workers;
	wf_rt.workers = sys_map(sizeof(struct wf_worker) * nr_workers);
	wf_rt.coarse_now = sys_now();
	wf_rt.kernel_tick_ns = kernel_tick_ns();
	wf_crowd_count();
	wf_rate_begin();
	wf_rt.monitor_until = WF_NEVER;
	wf_wheel_init(&wf_rt.wheel, wf_rt.coarse_now);
	wf_slab_init(&wf_rt.save_areas,
		     (uint32_t)(4096 + wf_sigframe_save_bytes(config->min_sigstack)));
	wf_thread_table_init(WF_MAX(config->thread_bytes, sizeof(struct wf_thread)));
	door = new_kthread();
	t = wf_thread_new();
	if (!wf_rt.workers || !door || !t)
		return NULL;
	for (uint32_t i = nr_workers; i-- > 0;) {
		struct wf_worker *w = &wf_rt.workers[i];

		w->index = i;
		w->rq.is_private = nr_workers == 1;
		w->rng = wf_rt.seed + i + 1;
		w->turn_ns = WF_MOVE_NS + 1;
		w->is_vacant = 1;
		w->next_vacant = wf_rt.vacant;
		wf_rt.vacant = w;
		wf_rt.nr_vacant++;
	}
	door->is_door = true;
	door->tid = (int)sys0(__NR_gettid);
	(void)sys2(__NR_prctl, PR_GET_NAME, wf_rt.name);
	door->tls = wf_arch_get_tls();
	wf_rt.door = door;
	t->tls = door->tls;
	t->state = WF_RUNNING;
	return t;
}

/* Says nothing of itself yet: who wants something of it by a kick meanwhile is answered when it begins. */
static void wait_for_worker(void *arg)
{
	struct wf_kthread *k = arg;

	while (wf_load_acquire(&k->sleep_word))
		(void)sys_futex_wait(&k->sleep_word, 1, -1);
	wf_worker_loop(k);
}

long wf_runtime_staff(void)
{
	struct wf_kthread *k = new_kthread();
	long ret;

	if (!k)
		return -ENOMEM;
	wf_store_release(&k->sleep_word, 1u);
	ret = spawn(k, wait_for_worker);
	if (ret == 0) {
		wf_rt.nr_unbound = 1;
		wf_rt_add_spare(k);
	}
	return ret;
}

/* End all that kernel threads sleep in: a spare's word, the rest of a narrow program, the guest poller's, the poller. */
static void rouse(void)
{
	struct wf_kthread *k = take_spare();

	for (uint32_t i = 0; i < wf_rt.nr_workers; i++)
		wf_width_rouse(&wf_rt.workers[i]);
	if (k) {
		wf_store_release(&k->sleep_word, 0u);
		(void)sys_futex_wake(&k->sleep_word, 1);
	}
	(void)sys_futex_wake(&wf_rt.poller.state, 1);
	wf_rt.io->wake();
}

static bool have_all_ended(void)
{
	for (uint32_t i = 0; i < wf_load_acquire(&wf_rt.nr_kthreads); i++)
		if (!wf_rt.kthreads[i]->is_door && wf_load_acquire(&wf_rt.kthreads[i]->tid))
			return false;
	return true;
}

/* None is made any more, but one may have been on its way: then it came back, or is one more, while we looked. */
static void end_kthreads(void)
{
	uint32_t revivals, nr;

	wf_store_seq_cst(&wf_rt.is_stopping, 1u);
	do {
		revivals = wf_load_seq_cst(&wf_rt.revivals);
		nr = wf_load_seq_cst(&wf_rt.nr_kthreads);
		for (uint32_t round = 0; !have_all_ended(); round++) {
			rouse();
			sys_relax(round);
		}
	} while (wf_load_seq_cst(&wf_rt.nr_reviving) ||
		 wf_load_seq_cst(&wf_rt.revivals) != revivals ||
		 wf_load_seq_cst(&wf_rt.nr_kthreads) != nr);
}

void wf_runtime_stop(void)
{
	end_kthreads();
	for (uint32_t i = 0; i < wf_rt.nr_kthreads; i++) {
		struct wf_kthread *k = wf_rt.kthreads[i];

		wf_stack_unmap(k->stack, WF_KSTACK_BYTES, KTHREAD_STACKS);
		wf_record_unmap(k->ring);
	}
	sys_unmap(wf_rt.workers, sizeof(struct wf_worker) * wf_rt.nr_workers);
	sys_unmap(wf_rt.kthreads, pool_max * sizeof(struct wf_kthread *));
	sys_unmap(pool, pool_max * sizeof(*pool));
	pool = NULL;
	pool_max = 0;
	wf_rt.kthreads = NULL;
	wf_thread_table_done();
	wf_runtime_forget();
}

struct door_start {
	void (*prepare)(void);
	void (*loop)(void *);
	struct wf_kthread *door;
	struct wf_thread *main;
};

static void run_door(void *arg)
{
	/* lies on main's stack, valid until main runs on */
	struct door_start start = *(struct door_start *)arg;

	wf_arch_set_self(start.door);
	wf_preempt_init_kthread(start.door);
	wf_crowd_begin_door();
	start.prepare();
	/* main's registers are saved: it may go on as a thread among others. */
	wf_store_release(&start.main->state, WF_READY);
	wf_store_release(&wf_rt.started, 1u);
	wf_worker_ready(start.main);
	start.loop(start.door);
	WF_ASSERT(!"the door never returns");
}

void wf_runtime_leave_door(struct wf_thread *self, void (*prepare)(void), void (*door_loop)(void *))
{
	struct door_start start = {
		.prepare = prepare, .loop = door_loop, .door = wf_rt.door, .main = self
	};
	void *sp = wf_arch_make_context((char *)start.door->stack + WF_KSTACK_BYTES, run_door,
					&start);

	wf_arch_switch(&self->sp, sp);
	wf_worker_finish_switch(wf_self_kthread());
}

void wf_runtime_forget(void)
{
	wf_rt = (struct wf_runtime){
		.slice_ns = WF_SLICE_NS,
		.kthreads = wf_rt.kthreads,
	};
}
