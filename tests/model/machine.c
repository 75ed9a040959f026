// SPDX-License-Identifier: Apache-2.0
/*
 * The machine under the scheduler, see machine.h: raw system calls, poller, kernel threads, as the checker
 * sees them.
 */
#include "machine.h"
#include "arch/arch.h"
#include "base/die.h"
#include "base/san.h"
#include "model.h"
#include "sched/direct.h"
#include "sched/peer.h"
#include "sched/timers.h"
#include "sched/account.h"
#include "sched/clock.h"
#include "sched/monitor.h"
#include "sched/preempt.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MAX_KTHREADS 12
#define MAX_WORKERS 4
#define SMALL_BYTES (4ul << 20)
#define ZEROED_BYTES (32ul << 10) /* of a big mapping: more is not used by these small tests */
#define FIRST_TID 100

static struct {
	struct wf_worker workers[MAX_WORKERS];
	struct wf_kthread kthreads[MAX_KTHREADS], no_door, *listed[MAX_KTHREADS];
	uint32_t nr_kthreads, nr_threads, nr_dead;
	bool is_woken;  /* the poller's wake(): edge-triggered, so several in a row are one */
	bool is_kicked; /* the door */
	bool kicked[MAX_KTHREADS + 4]; /* by tid: a handler is about to run there */
	uint32_t nr_yields;
	uint32_t nr_events; /* polls that end for another reason: a descriptor, a signal */
	int64_t armed;      /* when the poller is to look at the timers */
	uint32_t nr_arms;
	struct futex_wait {
		uint32_t *word;
		bool is_woken;
	} futex[MAX_KTHREADS + 4];
} machine;

size_t machine_object_bytes = sizeof(struct wf_thread);
long (*machine_kernel)(long nr, long a, long b, long c, long d);
void (*machine_cloned)(int cpu);

/* --- what the core asks of sys/ and arch/ --- */

/* In the models nobody asks for CPU times. */
void wf_account_leave(struct wf_kthread *k, struct wf_thread *t)
{
	(void)k;
	(void)t;
}

void wf_account_restart(struct wf_thread *self)
{
	(void)self;
}

void wf_account_begin(struct wf_kthread *k)
{
	(void)k;
}

void wf_account_bind(struct wf_kthread *k, struct wf_thread *self)
{
	(void)k;
	(void)self;
}

void wf_account_unbind(struct wf_kthread *k, struct wf_thread *self)
{
	(void)k;
	(void)self;
}

int64_t wf_now(void)
{
	return sys_now();
}

int64_t sys_now(void)
{
	return model_now();
}

/* Big mappings are kept for the next execution, whose users find their beginning zeroed. */
void *sys_map(size_t bytes)
{
	static char *small;
	static size_t small_used;
	static struct {
		char *p;
		size_t bytes;
	} big[2]; /* told apart by their sizes */
	char *p;

	if (!bytes) { /* a new execution */
		small_used = 0;
		return NULL;
	}
	if (bytes > SMALL_BYTES) {
		int i = !big[0].p || big[0].bytes == bytes ? 0 : 1;

		if (!big[i].p)
			big[i].p = mmap(NULL, big[i].bytes = bytes, PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (big[i].bytes != bytes)
			abort();
		memset(big[i].p, 0, ZEROED_BYTES);
		return big[i].p;
	}
	if (!small)
		small = mmap(NULL, SMALL_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			     -1, 0);
	bytes = WF_ALIGN_UP(bytes, WF_PAGE);
	if (small_used + bytes > SMALL_BYTES)
		return NULL;
	p = small + small_used;
	small_used += bytes;
	memset(p, 0, WF_MIN(bytes, ZEROED_BYTES));
	return p;
}

void *sys_reserve(size_t bytes)
{
	return sys_map(bytes);
}

long sys_commit(void *p, size_t bytes)
{
	(void)p;
	(void)bytes;
	return 0;
}

/* signal_machine.c has one of its own. */
__attribute__((weak)) long sys_clock_read(int clock, int64_t *out_ns)
{
	return -EINVAL; /* nobody asks for events here */
}

void sys_unmap(void *p, size_t bytes)
{
}

uint32_t sys_room_for(size_t bytes_beside, uint32_t step, uint32_t most)
{
	(void)bytes_beside;
	(void)step;
	return most;
}

static bool is_futex_woken(void *arg)
{
	return ((struct futex_wait *)arg)->is_woken;
}

long sys_futex_wait(uint32_t *word, uint32_t expected, int64_t timeout_ns)
{
	int64_t until = timeout_ns < 0 ? WF_NEVER : model_now() + timeout_ns;
	struct futex_wait *f = machine.futex;

	if (wf_fetch_add(word, 0u) != expected)
		return -EAGAIN;
	while (f->word)
		f++;
	*f = (struct futex_wait){ .word = word };
	(void)model_wait(is_futex_woken, f, until);
	f->word = NULL;
	if (f->is_woken)
		return 0;
	return timeout_ns >= 0 && model_now() >= until ? -ETIMEDOUT : -EINTR;
}

long sys_futex_wake(uint32_t *word, int n)
{
	long woken = 0;

	model_fence(__func__);
	for (size_t i = 0; i < ARRAY_LEN(machine.futex) && woken < n; i++)
		if (machine.futex[i].word == word && !machine.futex[i].is_woken) {
			machine.futex[i].is_woken = true;
			woken++;
		}
	return woken;
}

void sys_relax(uint32_t round)
{
	wf_cpu_pause();
}

void wf_spin_lock_slow(struct wf_spin *s)
{
	while (!wf_spin_trylock(s))
		wf_cpu_pause();
}

void wf_die(const char *what, const char *file, int line)
{
	char text[128];

	snprintf(text, sizeof(text), "%s (%s:%d)", what, file, line);
	model_expect(false, text);
	abort(); /* outside an execution */
}

uint64_t machine_cycles_per_look;
static uint64_t nr_looks;

uint64_t model_cycles(void)
{
	if (machine_cycles_per_look)
		return (uint64_t)model_now() + ++nr_looks * machine_cycles_per_look;
	return (uint64_t)model_now() + model_random(2) * 100000u;
}

/* Kicks and yields are all that comes this way, unless there is a kernel. */
long model_syscall(long nr, long a, long b, long c, long d)
{
	if (machine_kernel)
		return machine_kernel(nr, a, b, c, d);
	machine.nr_yields += nr == __NR_sched_yield;
	if (nr == __NR_tgkill) {
		model_fence(__func__);
		if (wf_rt.door && b == wf_rt.door->tid)
			machine.is_kicked = true;
		else if (b >= FIRST_TID && b - FIRST_TID < (long)ARRAY_LEN(machine.kicked))
			machine.kicked[b - FIRST_TID] = true;
	}
	return 0;
}

bool machine_is_full;

uintptr_t model_arch_get_base(void)
{
	return (uintptr_t)model_gs;
}

void model_arch_set_base(uintptr_t base)
{
	model_gs = (void *)base;
}

void model_arch_set_self(struct wf_kthread *k)
{
	model_gs = k; /* as model_cpu() was told */
}

uintptr_t model_arch_get_tls(void)
{
	return 1;
}

void model_arch_set_tls(uintptr_t tls)
{
}

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

/* Nobody sends anything here. */
void wf_peer_watch(struct wf_kthread *k)
{
}

__attribute__((weak)) void wf_preempt_init_kthread(struct wf_kthread *k)
{
}

/* --- the poller --- */

struct fake_poll {
	uint32_t nr_arms; /* when it began */
	bool *kicked;
};

static bool is_poll_over(void *arg)
{
	const struct fake_poll *p = arg;

	return machine.is_woken || machine.nr_events || machine.nr_arms != p->nr_arms ||
	       machine.armed <= model_now() || *p->kicked;
}

/* The handler's part on a kernel thread that runs no thread. */
static bool take_kick(bool *kicked)
{
	if (!*kicked)
		return false;
	*kicked = false;
	wf_store_seq_cst(&wf_self_kthread()->kick_sent, 0u);
	return true;
}

__attribute__((weak)) void wf_preempt_settle(struct wf_kthread *k)
{
	while (wf_load_seq_cst(&k->nr_preempting) || wf_load_seq_cst(&k->kick_sent)) {
		if (take_kick(&machine.kicked[k->tid - FIRST_TID]))
			wf_store_seq_cst(&k->preempt, 0u);
		else
			wf_cpu_pause();
	}
}

bool machine_is_kicked(void)
{
	return machine.kicked[wf_self_kthread()->tid - FIRST_TID];
}

void machine_event(void)
{
	model_fence(__func__);
	machine.nr_events++;
}

static bool arm_fake(int64_t deadline)
{
	model_fence(__func__);
	if (deadline < machine.armed) {
		machine.armed = deadline;
		machine.nr_arms++;
	}
	return true;
}

static bool poll_fake(int64_t timeout_ns)
{
	int64_t end = timeout_ns < 0 ? WF_NEVER : model_now() + timeout_ns;
	uint32_t number = (uint32_t)(wf_self_kthread()->tid - FIRST_TID);
	bool no_kick = false,
	     *kicked = number < ARRAY_LEN(machine.kicked) ? &machine.kicked[number] : &no_kick;
	bool woken;

	if (!timeout_ns)
		model_fence(__func__);
	while (timeout_ns) {
		struct fake_poll p = { machine.nr_arms, kicked };

		(void)model_wait(is_poll_over, &p, WF_MIN(end, machine.armed));
		if (take_kick(kicked) || machine.is_woken || machine.nr_events ||
		    machine.armed <= model_now() || end <= model_now() || model_is_wait_broken())
			break;
	}
	woken = machine.is_woken;
	machine.nr_events -= machine.nr_events > 0;
	machine.is_woken = false;
	if (machine.armed <= model_now()) {
		machine.armed = WF_NEVER;
		wf_timers_due();
	}
	return woken;
}

static void wake_fake(void)
{
	model_fence(__func__);
	machine.is_woken = true;
}

static bool has_waiters_fake(void)
{
	return false;
}

static const struct wf_io_driver driver = { poll_fake, wake_fake, has_waiters_fake, arm_fake };

void machine_thread_exited(struct wf_thread *t)
{
	model_expect(wf_state_of(t->state) == WF_DEAD, "a thread ended that is not dead");
	machine.nr_dead++;
}

static const struct wf_sched_hooks hooks = { .thread_exited = machine_thread_exited };

/* --- building --- */

void model_sys_reset(void);
void model_sys_reset(void)
{
	(void)sys_map(0);
}

void machine_reset(uint32_t nr_workers)
{
	memset(&machine, 0, sizeof(machine));
	machine.armed = WF_NEVER;
	machine_kernel = NULL;
	machine_cloned = NULL;
	machine_is_full = false;
	wf_rt = (struct wf_runtime){
		.pid = 1,
		.nr_workers = nr_workers,
		.workers = machine.workers,
		.io = &driver,
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
	struct wf_kthread *k = new_kthread(names[machine.nr_kthreads & 7], wf_worker_loop, NULL);
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
	d.kicked = &machine.kicked[k->tid - FIRST_TID];
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
	struct direct_wait d = { is_over, arg,
				 &machine.kicked[wf_self_kthread()->tid - FIRST_TID] };

	while (!wf_load_relaxed(&self->attention) && !is_over(arg)) {
		(void)model_wait(ends_direct_wait, &d, WF_NEVER);
		(void)take_kick(d.kicked);
	}
	return is_over(arg);
}

static bool is_door_kicked(void *arg)
{
	return machine.is_kicked;
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
		struct computing c = { is_over, arg, &machine.kicked[k->tid - FIRST_TID] };

		(void)model_wait(ends_computing, &c, WF_NEVER);
		if (take_kick(c.kicked) && wf_exchange(&k->preempt, 0u))
			wf_give_way();
	}
}

bool machine_sleep_at_door(int64_t until)
{
	bool kicked = model_wait(is_door_kicked, NULL, until);

	machine.is_kicked = false;
	return kicked;
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

uint32_t machine_nr_yields(void)
{
	return machine.nr_yields;
}

uint32_t machine_nr_dead(void)
{
	return machine.nr_dead;
}

void machine_check(void)
{
	uint32_t nr_vacant = 0, nr_searching = machine.is_woken;

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
