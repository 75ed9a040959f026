// SPDX-License-Identifier: Apache-2.0
/* Starting, staffing and forgetting the runtime; see runtime.h. */
#include "sched/runtime.h"
#include "arch/arch.h"
#include "base/die.h"
#include "mem/stack.h"
#include "sched/carrier.h"
#include "sched/clock.h"
#include "sched/crowd.h"
#include "sched/idle.h"
#include "sched/monitor.h"
#include "sched/park.h"
#include "sched/preempt.h"
#include "sched/rate.h"
#include "sched/rescue.h"
#include "sched/staff.h"
#include "sched/width.h"

#include <errno.h>

#define CLOCK_MONOTONIC_COARSE 6

struct wf_runtime wf_rt = { .slice_ns = WF_SLICE_NS };

#define PR_GET_NAME 16

bool wf_rt_poll(int64_t timeout_ns)
{
	struct wf_kthread *k = wf_own_kthread();
	struct wf_worker *w = wf_load_relaxed(&k->worker); /* NULL for the door and the poller */
	bool woken;

	k->count.polls++;
	woken = wf_rt.io->poll(timeout_ns);
	if (w) {
		uint64_t now = wf_cpu_cycles();

		w->poll_due = now + wf_span_cycles(WF_SPAN_POLL);
		wf_store_hint(&w->polled_at, now);
	}
	return woken;
}

static void attach(struct wf_worker *w, struct wf_kthread *k, bool searching)
{
	k->is_searching = searching;
	wf_store_release(&w->kthread, k);
	wf_store_release(&k->worker, w); /* pairs with the acquire in wf_carrier_loop() */
}

bool wf_rt_carry(struct wf_worker *w, bool searching)
{
	struct wf_kthread *k = wf_staff_take_spare();
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
	k = wf_staff_new();
	if (!k) {
		wf_rescue_note(-ENOMEM);
		return false;
	}
	attach(w, k, searching);
	error = wf_staff_spawn(k, wf_carrier_loop);
	if (error == 0) {
		wf_fetch_add(&wf_rt.nr_unbound, 1u);
		return true;
	}
	wf_store_release(&w->kthread, (struct wf_kthread *)NULL);
	wf_store_release(&k->worker, (struct wf_worker *)NULL);
	k->is_searching = false;
	wf_staff_end(k);
	wf_rescue_note(error);
	return false;
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
	wf_worker_sleeps(w, wf_now());
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
	/* It counts as awake: it is soon taken again, and the clock would cost as much as the call. */
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
		if (!w->awake_since)
			wf_worker_wakes(w, wf_now());
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
	door = wf_staff_new();
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

long wf_runtime_staff(void)
{
	struct wf_kthread *k = wf_staff_new();
	long ret;

	if (!k)
		return -ENOMEM;
	wf_store_release(&k->sleep_word, 1u);
	ret = wf_staff_spawn(k, wf_carrier_loop_later);
	if (ret == 0) {
		wf_rt.nr_unbound = 1;
		wf_staff_add_spare(k);
	}
	return ret;
}

/* End all that kernel threads sleep in: a spare's word, the rest of a narrow program, the guest poller's, the poller. */
static void rouse(void)
{
	struct wf_kthread *k = wf_staff_take_spare();

	for (uint32_t i = 0; i < wf_rt.nr_workers; i++)
		wf_width_rouse(&wf_rt.workers[i]);
	if (k) {
		wf_store_release(&k->sleep_word, 0u);
		(void)sys_futex_wake(&k->sleep_word, 1);
	}
	(void)sys_futex_wake(&wf_rt.poller.state, 1);
	wf_rt.io->wake();
}

/* None is made any more, but one may have been on its way: then it came back, or is one more, while we looked. */
static void end_kthreads(void)
{
	uint32_t revivals, nr;

	wf_store_seq_cst(&wf_rt.is_stopping, 1u);
	do {
		revivals = wf_load_seq_cst(&wf_rt.revivals);
		nr = wf_load_seq_cst(&wf_rt.nr_kthreads);
		for (uint32_t round = 0; !wf_staff_have_all_ended(); round++) {
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
	sys_unmap(wf_rt.workers, sizeof(struct wf_worker) * wf_rt.nr_workers);
	wf_staff_done();
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
