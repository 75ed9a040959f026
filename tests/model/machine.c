// SPDX-License-Identifier: Apache-2.0
/* The machine, see machine.h: kernel threads and threads are made here, and it is judged. */
#include "kernel.h"
#include "arch/arch.h"
#include "base/san.h"
#include "model.h"
#include "sched/carrier.h"
#include "sched/direct.h"

#include <errno.h>
#include <string.h>

#define MAX_WORKERS 4

static struct {
	struct wf_worker workers[MAX_WORKERS];
	struct wf_kthread kthreads[MAX_KTHREADS], no_door, *listed[MAX_KTHREADS];
	uint32_t nr_workers, nr_kthreads, nr_threads, nr_dead;
} machine;

size_t machine_object_bytes = sizeof(struct wf_thread);
void (*machine_cloned)(int cpu);

bool machine_is_full;

long model_arch_spawn_kthread(void *stack_top, void (*fn)(void *), void *arg, int *out_tid)
{
	int n;

	if (machine_is_full || machine.nr_kthreads == MAX_KTHREADS)
		return -EAGAIN;
	machine.nr_kthreads++;
	model_fence(__func__); /* as any system call that makes something others see */
	n = model_cpu("new", fn, arg, arg);
	if (machine_cloned)
		machine_cloned(n);
	*out_tid = FIRST_TID + n;
	return *out_tid;
}

void machine_thread_exited(struct wf_thread *t)
{
	model_expect(wf_state_of(t->state) == WF_DEAD, "a thread ended that is not dead");
	machine.nr_dead++;
}

static const struct wf_sched_hooks hooks = { .thread_exited = machine_thread_exited };

/* --- building --- */

void machine_reset(uint32_t nr_workers)
{
	/* So much of it was used by the last execution. */
	memset(machine.workers, 0, machine.nr_workers * sizeof(machine.workers[0]));
	memset(machine.kthreads, 0, machine.nr_kthreads * sizeof(machine.kthreads[0]));
	memset(machine.listed, 0, sizeof(machine.listed));
	machine.no_door = (struct wf_kthread){ 0 };
	machine.nr_kthreads = machine.nr_threads = machine.nr_dead = 0;
	machine.nr_workers = nr_workers;
	kernel_reset();
	machine_cloned = NULL;
	machine_is_full = false;
	wf_rt = (struct wf_runtime){
		.pid = 1,
		.nr_workers = nr_workers,
		.workers = machine.workers,
		.io = &kernel_driver,
		.hooks = wf_hooks_fill(&hooks),
		.slice_ns = WF_SLICE_NS,
		.coarse_now = model_now(),
		.monitor_until = WF_NEVER,
	};
	wf_rate = (struct wf_rate){ 0 }; /* no execution knows what another one has measured */
	wf_rate_begin();
	wf_rt.door = &machine.no_door;
	wf_wheel_init(&wf_rt.wheel, model_now());
	wf_thread_table_init(machine_object_bytes);
	for (uint32_t i = nr_workers; i-- > 0;) {
		machine.workers[i].index = i;
		machine.workers[i].rng = i + model_random(1000);
		machine.workers[i].turn_ns = WF_MOVE_NS + 1; /* work is worth moving */
		wf_rt_make_vacant(&machine.workers[i]);
	}
}

static struct wf_kthread *new_kthread(const char *name, void (*fn)(void *), void *arg)
{
	struct wf_kthread *k = &machine.kthreads[machine.nr_kthreads++];

	k->self = k;
	k->index = wf_rt.nr_kthreads;
	wf_rt.kthreads = machine.listed;
	wf_rt.kthreads[wf_rt.nr_kthreads++] = k;
	k->tid = FIRST_TID + model_cpu(name, fn, arg ? arg : k, k);
	return k;
}

struct wf_kthread *machine_kthread(struct wf_worker *w)
{
	static const char *const names[] = { "k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7" };
	struct wf_kthread *k = new_kthread(names[machine.nr_kthreads & 7], wf_carrier_loop, NULL);
	struct wf_worker **link = &wf_rt.vacant;

	if (!w)
		return k;
	while (*link != w)
		link = &(*link)->next_vacant;
	*link = w->next_vacant;
	w->is_vacant = 0;
	wf_rt.nr_vacant--;
	w->kthread = k;
	k->worker = w;
	return k;
}

struct wf_kthread *machine_door(void (*fn)(void *), void *arg)
{
	struct wf_kthread *k = new_kthread("door", fn, arg);

	k->is_door = true;
	wf_rt.door = k;
	return k;
}

struct wf_kthread *machine_helper(void (*fn)(void *))
{
	return new_kthread("helper", fn, NULL);
}

void machine_stranger(void (*fn)(void *), void *arg)
{
	(void)model_cpu("stranger", fn, arg, NULL);
}

struct start {
	void (*fn)(void *);
	void *arg;
};

static void thread_start(void *arg)
{
	struct start s = *(struct start *)arg;
	struct wf_thread *self;

	wf_san_arrive(NULL);
	wf_worker_finish_switch(wf_self_kthread());
	s.fn(s.arg);
	self = wf_self();
	wf_store_release(&self->state, WF_DEAD);
	wf_worker_switch_last(wf_self_kthread(), WF_PREV_DEAD);
}

struct wf_thread *machine_thread(void (*fn)(void *), void *arg)
{
	struct wf_thread *t = wf_thread_new();
	struct start *s = (struct start *)model_stack_top() - 1;

	*s = (struct start){ fn, arg };
	t->sp = wf_arch_make_context(s, thread_start, s);
	t->state = WF_READY;
	machine.nr_threads++;
	return t;
}

void machine_queue(struct wf_worker *w, struct wf_thread *t)
{
	t->home = w;
	wf_runq_push(&w->rq, t, WF_PLACE_TAIL);
}

struct direct_wait {
	bool (*is_over)(void *);
	void *arg;
	bool *kicked;
};

static bool ends_direct_wait(void *arg)
{
	struct direct_wait *d = arg;

	return *d->kicked || (d->is_over && d->is_over(d->arg));
}

bool machine_wait_directly(bool (*is_over)(void *), void *arg, int64_t until)
{
	struct wf_thread *self = wf_self();
	struct wf_kthread *k;
	struct direct_wait d = { is_over, arg, NULL };

	(void)wf_fetch_and(&self->attention, ~WF_ATT_RESCHED);
	if (!wf_direct_may_begin() || !wf_direct_begin(WF_WAIT_FD, 0, &until))
		return false;
	k = wf_self_kthread();
	d.kicked = kernel_kicked(k);
	do {
		if (*d.kicked) {
			*d.kicked = false;
			wf_store_seq_cst(&k->kick_sent, 0u);
		}
		if (wf_load_relaxed(&self->attention))
			break;
	} while (model_wait(ends_direct_wait, &d, until) && *d.kicked);
	wf_direct_end();
	return true;
}

bool machine_wait_in_call(bool (*is_over)(void *), void *arg)
{
	struct wf_thread *self = wf_self();
	struct direct_wait d = { is_over, arg, kernel_kicked(wf_self_kthread()) };

	while (!wf_load_relaxed(&self->attention) && !is_over(arg)) {
		(void)model_wait(ends_direct_wait, &d, WF_NEVER);
		(void)kernel_take_kick(d.kicked);
	}
	return is_over(arg);
}

struct computing {
	bool (*is_over)(void *);
	void *arg;
	bool *kicked;
};

static bool ends_computing(void *arg)
{
	const struct computing *c = arg;

	return *c->kicked || c->is_over(c->arg);
}

void machine_compute(bool (*is_over)(void *), void *arg)
{
	while (!is_over(arg)) {
		struct wf_kthread *k = wf_self_kthread();
		struct computing c = { is_over, arg, kernel_kicked(k) };

		(void)model_wait(ends_computing, &c, WF_NEVER);
		if (kernel_take_kick(c.kicked) && wf_exchange(&k->preempt, 0u))
			wf_give_way();
	}
}

void machine_monitor(void *arg)
{
	for (;;) {
		int64_t next = wf_monitor_tick(model_now());

		wf_store_seq_cst(&wf_rt.monitor_until, next);
		if (machine_sleep_at_door(next))
			wf_store_seq_cst(&wf_rt.door->kick_sent, 0u);
	}
}

/* --- judging --- */

uint32_t machine_nr_dead(void)
{
	return machine.nr_dead;
}

void machine_check(void)
{
	uint32_t nr_vacant = 0, nr_searching = kernel.is_woken;

	for (struct wf_worker *w = wf_rt.vacant; w && nr_vacant <= wf_rt.nr_workers;
	     w = w->next_vacant)
		nr_vacant++;
	model_expect(nr_vacant == wf_rt.nr_vacant, "the vacant list is broken");
	for (uint32_t i = 0; i < wf_rt.nr_kthreads; i++) {
		struct wf_kthread *k = wf_rt.kthreads[i];

		nr_searching += k->is_searching;
		model_expect(!k->worker || k->worker->kthread == k, "a worker is carried twice");
		model_expect(!k->worker || !k->worker->is_vacant,
			     "a carried worker is on the vacant list");
	}
	for (uint32_t i = 0; i < wf_rt.nr_workers; i++) {
		struct wf_worker *w = &wf_rt.workers[i];

		model_expect(!w->rq.nr && !w->inbox, "queued work, and everybody sleeps");
		model_expect(w->is_vacant || (w->kthread && w->kthread->worker == w),
			     "a worker got lost");
	}
	model_expect(machine.nr_dead == machine.nr_threads, "a thread never ended");
	model_expect(nr_searching == wf_rt.nr_searching,
		     "nr_searching counts somebody who does not exist");
	model_expect(!wf_rt.lock.held && !wf_rt.wheel.lock.held, "a lock stayed held");
	model_expect(!wf_rt.wheel.nr, "a timer stayed armed");
}
