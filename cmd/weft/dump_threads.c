// SPDX-License-Identifier: Apache-2.0
/* Taking the snapshot; see dump_threads.h. */
#include "dump_threads.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The frame that wf_arch_switch() leaves at a saved stack pointer. */
#define SWITCH_RBX 1
#define SWITCH_R12 2
#define SWITCH_RBP 6
#define SWITCH_RIP 7
#define SWITCH_WORDS 8

/* Of the kernel's ucontext on x86-64: general registers r8..r15 rdi rsi rbp rbx rdx rax rcx rsp rip. */
#define UC_GREGS 40
#define UC_NR_GREGS 17

#define RED_ZONE 128
#define COPY_BYTES (32u << 10)  /* of each stack; deeper frames are read when they are needed */
#define COPY_TOTAL (512u << 20) /* of all stacks */
#define CHUNK_BYTES (1u << 20)
#define MAX_SLOTS (1u << 20)
#define MAX_KTHREADS 32768u
#define MAX_WORKERS 1024u
#define MAX_INBOX 100000u
#define MAX_RINGS 8u /* of events, of a kernel thread */

static int64_t monotonic_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static const struct wf_target_lwp *lwp_by_tid(const struct wf_target *t, int tid)
{
	for (size_t i = 0; i < t->nr_lwps; i++) {
		if (t->lwps[i].tid == tid)
			return &t->lwps[i];
	}
	return NULL;
}

static void set_reg(struct wf_regs *r, int number, uint64_t value)
{
	r->reg[number] = value;
	r->known |= 1u << number;
}

/* A thread that left its CPU by a call: see switch.S. */
static void regs_of_switch(const uint64_t *w, uint64_t sp, struct wf_regs *out)
{
	*out = (struct wf_regs){ 0 };
	set_reg(out, WF_REG_RBX, w[SWITCH_RBX]);
	for (int i = 0; i < 4; i++)
		set_reg(out, 12 + i, w[SWITCH_R12 + i]);
	set_reg(out, WF_REG_RBP, w[SWITCH_RBP]);
	set_reg(out, WF_REG_RIP, w[SWITCH_RIP]);
	set_reg(out, WF_REG_RSP, sp + SWITCH_WORDS * 8);
}

/* A preempted one: everything is in the signal frame that was copied to its save area. */
static bool regs_of_ucontext(const struct wf_target *t, uint64_t uc, struct wf_regs *out)
{
	static const unsigned char dwarf[UC_NR_GREGS] = { 8, 9, 10, 11, 12, 13, 14, 15, 5,
							  4, 6, 3,  1,  0,  2,  7,  16 };
	uint64_t g[UC_NR_GREGS];

	if (!wf_target_read(t, uc + UC_GREGS, g, sizeof(g)))
		return false;
	*out = (struct wf_regs){ 0 };
	for (int i = 0; i < UC_NR_GREGS; i++)
		set_reg(out, dwarf[i], g[i]);
	return true;
}

/* A thread that left its CPU; of a preempted one the runtime's part of the way back is not shown. */
static void read_saved_regs(struct wf_dump_thread *d, const struct wf_layout *l,
			    const struct wf_target *t, uint64_t sp)
{
	uint64_t w[SWITCH_WORDS], uc;

	if (!sp || !wf_target_read(t, sp, w, sizeof(w)))
		return;
	if (d->is_preempted) {
		uc = wf_layout_fetch(l, t, sp, WF_L_RESUME_UC);
		if (uc && regs_of_ucontext(t, uc, &d->regs))
			return;
	}
	regs_of_switch(w, sp, &d->regs);
}

static bool is_inside(const struct wf_dump_thread *d, uint64_t sp)
{
	return sp >= d->stack_low && sp < d->stack_high;
}

static void read_regs(struct wf_dump_thread *d, const struct wf_layout *l,
		      const struct wf_target *t, const struct wf_threads *s, uint64_t sp)
{
	for (size_t i = 0; d->kthread && i < s->nr_kthreads; i++) {
		const struct wf_dump_kthread *k = &s->kthreads[i];
		const struct wf_target_lwp *lwp;

		if (k->address != d->kthread || k->cur != d->address)
			continue;
		lwp = lwp_by_tid(t, k->tid);
		if (!lwp || !lwp->regs.known)
			break;
		/* In the middle of a switch the registers may still be the predecessor's. */
		if (wf_layout_fetch(l, t, k->address, WF_L_K_PREV) && d->stack_high &&
		    is_inside(d, sp) && !is_inside(d, lwp->regs.reg[WF_REG_RSP]))
			break;
		if (d->is_preempted)
			read_saved_regs(d, l, t, sp); /* it is about to go on, or to leave */
		else
			d->regs = lwp->regs;
		d->is_preempted = false;
		d->is_on_cpu = true;
		d->is_direct = k->is_direct;
		d->kernel_tid = k->tid;
		d->call = lwp->call;
		return;
	}
	read_saved_regs(d, l, t, sp);
}

static void copy_stack(struct wf_dump_thread *d, const struct wf_target *t, size_t *total)
{
	uint64_t sp = d->regs.reg[WF_REG_RSP];
	size_t bytes = COPY_BYTES;

	if (!(d->regs.known & (1u << WF_REG_RSP)) || sp < RED_ZONE || *total >= COPY_TOTAL)
		return;
	if (is_inside(d, sp) && d->stack_high - sp + RED_ZONE < bytes)
		bytes = d->stack_high - sp + RED_ZONE;
	d->copy = malloc(bytes);
	if (!d->copy)
		return;
	d->copy_at = sp - RED_ZONE;
	d->copy_bytes = wf_target_read_some(t, d->copy_at, d->copy, bytes);
	*total += bytes;
}

static void take_thread(struct wf_dump_thread *d, const struct wf_layout *l, const char *o,
			uint64_t address, unsigned state)
{
	const struct wf_inspect_field *timer = &l->field[WF_L_T_TIMER];
	const struct wf_inspect_field *name = &l->field[WF_L_LX_NAME];

	*d = (struct wf_dump_thread){
		.address = address,
		.tid = (int64_t)wf_layout_get(l, o, WF_L_T_TID),
		.state = state,
		.wait_kind = (unsigned)wf_layout_get(l, o, WF_L_T_WAIT_KIND),
		.wait_what = wf_layout_get(l, o, WF_L_T_WAIT_WHAT),
		.wait_since = (int64_t)wf_layout_get(l, o, WF_L_T_WAIT_SINCE),
		.kthread = wf_layout_get(l, o, WF_L_T_KTHREAD),
		.child_tid = wf_layout_get(l, o, WF_L_LX_CHILD_TID),
		.sig_mask = wf_layout_get(l, o, WF_L_LX_SIG_MASK),
		.sig_pending = wf_layout_get(l, o, WF_L_LX_SIG_PENDING),
		.nr_switches = wf_layout_get(l, o, WF_L_T_NR_SWITCHES),
		.is_preempted = wf_layout_get(l, o, WF_L_T_IS_PREEMPTED),
		.call = -1,
		.stack_low = wf_layout_get(l, o, WF_L_LX_STACK_LOW),
		.stack_high = wf_layout_get(l, o, WF_L_LX_STACK_HIGH),
	};
	if (wf_layout_get(l, o + timer->offset, WF_L_TIMER_ARMED))
		d->deadline = (int64_t)wf_layout_get(l, o + timer->offset, WF_L_TIMER_DEADLINE);
	memcpy(d->name, o + name->offset,
	       name->size < sizeof(d->name) ? name->size : sizeof(d->name) - 1);
}

/* Walks the slots in large reads. False: out of memory. */
static bool read_table(struct wf_threads *s, const struct wf_layout *l, const struct wf_target *t,
		       size_t max)
{
	uint64_t slots = wf_layout_fetch(l, t, l->table, WF_L_TABLE_SLOTS);
	uint64_t bytes = wf_layout_fetch(l, t, l->table, WF_L_TABLE_OBJECT_BYTES);
	uint64_t nr = wf_layout_fetch(l, t, l->table, WF_L_TABLE_NR_SLOTS);
	uint64_t mask = wf_layout_value(l, "const", "state_mask", 0xff);
	uint64_t state_free = wf_layout_value(l, "state", "free", 0);
	uint64_t state_dead = wf_layout_value(l, "state", "dead", 7);
	size_t per_chunk, room = 0, copied = 0;
	char *chunk;

	if (!slots || bytes < l->field[WF_L_THREAD].size || bytes > CHUNK_BYTES)
		return true;
	if (nr > MAX_SLOTS)
		nr = MAX_SLOTS;
	per_chunk = CHUNK_BYTES / bytes;
	chunk = malloc(CHUNK_BYTES);
	if (!chunk)
		return false;
	for (uint64_t i = 0; i < nr; i++) {
		size_t at = i % per_chunk;
		char *o = chunk + at * bytes;
		unsigned state;

		if (at == 0) {
			size_t n = nr - i < per_chunk ? nr - i : per_chunk;
			size_t got = wf_target_read_some(t, slots + i * bytes, chunk, n * bytes);

			memset(chunk + got, 0, n * bytes - got);
		}
		state = (unsigned)(wf_layout_get(l, o, WF_L_T_STATE) & mask);
		if (state == state_free || state == state_dead)
			continue;
		s->nr_alive++;
		if (s->nr_threads == max)
			continue;
		if (s->nr_threads == room) {
			void *p;

			room = room ? room * 2 : 64;
			p = realloc(s->threads, room * sizeof(*s->threads));
			if (!p) {
				free(chunk);
				return false;
			}
			s->threads = p;
		}
		take_thread(&s->threads[s->nr_threads], l, o, slots + i * bytes, state);
		read_regs(&s->threads[s->nr_threads], l, t, s, wf_layout_get(l, o, WF_L_T_SP));
		copy_stack(&s->threads[s->nr_threads], t, &copied);
		s->nr_threads++;
	}
	free(chunk);
	return true;
}

static bool read_kthreads(struct wf_threads *s, const struct wf_layout *l,
			  const struct wf_target *t)
{
	uint64_t nr = wf_layout_fetch(l, t, l->runtime, WF_L_RT_NR_KTHREADS);
	uint64_t at = wf_layout_fetch(l, t, l->runtime, WF_L_RT_KTHREADS);

	if (nr > MAX_KTHREADS)
		nr = MAX_KTHREADS;
	s->kthreads = calloc(nr + 1, sizeof(*s->kthreads));
	if (!s->kthreads)
		return false;
	for (uint64_t i = 0; i < nr; i++) {
		struct wf_dump_kthread *k = &s->kthreads[s->nr_kthreads];
		const struct wf_target_lwp *lwp;
		uint64_t a;

		if (!wf_target_read(t, at + i * sizeof(a), &a, sizeof(a)) || !a)
			continue;
		*k = (struct wf_dump_kthread){
			.address = a,
			.cur = wf_layout_fetch(l, t, a, WF_L_K_CUR),
			.worker = wf_layout_fetch(l, t, a, WF_L_K_WORKER),
			.ring = wf_layout_fetch(l, t, a, WF_L_K_RING),
			.tid = (int)wf_layout_fetch(l, t, a, WF_L_K_TID),
			.insys = (unsigned)wf_layout_fetch(l, t, a, WF_L_K_INSYS),
			.is_direct = wf_layout_fetch(l, t, a, WF_L_K_DIRECT),
			.is_door = wf_layout_fetch(l, t, a, WF_L_K_IS_DOOR),
			.is_helper = wf_layout_fetch(l, t, a, WF_L_K_IS_HELPER),
			.is_poller = wf_layout_fetch(l, t, a, WF_L_K_IS_POLLER),
			.is_asleep = wf_layout_fetch(l, t, a, WF_L_K_SLEEP_WORD),
			.bound = wf_layout_fetch(l, t, a, WF_L_K_BOUND),
			.worker_index = -1,
			.call = -1,
		};
		if (!k->tid)
			continue; /* a spare that has ended */
		if (k->cur)
			k->cur_tid = (int64_t)wf_layout_fetch(l, t, k->cur, WF_L_T_TID);
		if (k->bound)
			k->bound_tid = (int64_t)wf_layout_fetch(l, t, k->bound, WF_L_T_TID);
		if (k->worker)
			k->worker_index = (int)wf_layout_fetch(l, t, k->worker, WF_L_W_INDEX);
		lwp = lwp_by_tid(t, k->tid);
		if (lwp)
			k->call = lwp->call;
		s->nr_kthreads++;
	}
	return true;
}

/* A list that others change while we cannot see it whole: bounded, not trusted. */
static unsigned inbox_length(const struct wf_layout *l, const struct wf_target *t, uint64_t at)
{
	unsigned nr = 0;

	while (at && nr < MAX_INBOX) {
		at = wf_layout_fetch(l, t, at, WF_L_T_NEXT);
		nr++;
	}
	return nr;
}

static bool read_workers(struct wf_threads *s, const struct wf_layout *l, const struct wf_target *t)
{
	uint64_t nr = wf_layout_fetch(l, t, l->runtime, WF_L_RT_NR_WORKERS);
	uint64_t at = wf_layout_fetch(l, t, l->runtime, WF_L_RT_WORKERS);
	uint64_t bytes = l->field[WF_L_WORKER].size;

	if (nr > MAX_WORKERS)
		nr = MAX_WORKERS;
	s->workers = calloc(nr + 1, sizeof(*s->workers));
	if (!s->workers)
		return false;
	for (uint64_t i = 0; at && i < nr; i++) {
		uint64_t a = at + i * bytes, rq = a + l->field[WF_L_W_RQ].offset, k, cur;
		struct wf_dump_worker *w = &s->workers[s->nr_workers++];

		*w = (struct wf_dump_worker){
			.address = a,
			.index = (unsigned)wf_layout_fetch(l, t, a, WF_L_W_INDEX),
			.nr_queued = (unsigned)wf_layout_fetch(l, t, rq, WF_L_RQ_NR),
			.nr_inbox = inbox_length(l, t, wf_layout_fetch(l, t, a, WF_L_W_INBOX)),
			.is_vacant = wf_layout_fetch(l, t, a, WF_L_W_IS_VACANT),
			.rests = wf_layout_fetch(l, t, a, WF_L_W_RESTS),
		};
		k = w->is_vacant ? 0 : wf_layout_fetch(l, t, a, WF_L_W_KTHREAD);
		if (!k)
			continue;
		w->kernel_tid = (int)wf_layout_fetch(l, t, k, WF_L_K_TID);
		cur = wf_layout_fetch(l, t, k, WF_L_K_CUR);
		if (cur)
			w->cur_tid = (int64_t)wf_layout_fetch(l, t, cur, WF_L_T_TID);
	}
	return true;
}

static int by_cycles(const void *a, const void *b)
{
	const struct wf_dump_event *x = a, *y = b;

	return x->cycles < y->cycles ? -1 : x->cycles > y->cycles;
}

/* The last max of every ring, then the last max of all. */
static bool read_events(struct wf_threads *s, const struct wf_layout *l, const struct wf_target *t,
			size_t max)
{
	uint64_t ring_events = wf_layout_value(l, "const", "trace_events", 0);
	uint64_t nr_rings = wf_layout_value(l, "const", "trace_rings", 1);
	uint64_t bytes = l->field[WF_L_EVENT].size;

	if (nr_rings > MAX_RINGS)
		nr_rings = 1;
	for (size_t i = 0; i < s->nr_kthreads; i++)
		s->has_events |= s->kthreads[i].ring != 0;
	for (size_t i = 0; i < s->nr_kthreads * nr_rings && max && ring_events && bytes <= 256;
	     i++) {
		const struct wf_dump_kthread *k = &s->kthreads[i / nr_rings];
		uint64_t ring = k->ring + i % nr_rings * l->field[WF_L_RING].size, next, nr;
		void *p;

		if (!k->ring)
			continue;
		next = wf_layout_fetch(l, t, ring, WF_L_RING_NEXT);
		nr = next < max ? next : max;
		if (nr > ring_events)
			nr = ring_events;
		p = realloc(s->events, (s->nr_events + nr + 1) * sizeof(*s->events));
		if (!p)
			return false;
		s->events = p;
		for (uint64_t e = next - nr; e < next; e++) {
			char o[256];

			if (!wf_target_read(t,
					    ring + l->field[WF_L_RING_EVENTS].offset +
						    e % ring_events * bytes,
					    o, bytes))
				continue;
			s->events[s->nr_events++] = (struct wf_dump_event){
				.cycles = wf_layout_get(l, o, WF_L_E_CYCLES),
				.event = (unsigned)wf_layout_get(l, o, WF_L_E_EVENT),
				.tid = (int64_t)wf_layout_get(l, o, WF_L_E_TID),
				.a = wf_layout_get(l, o, WF_L_E_A),
				.b = wf_layout_get(l, o, WF_L_E_B),
				.kernel_tid = k->tid,
			};
		}
	}
	if (s->events)
		qsort(s->events, s->nr_events, sizeof(*s->events), by_cycles);
	if (s->nr_events > max) {
		memmove(s->events, s->events + (s->nr_events - max), max * sizeof(*s->events));
		s->nr_events = max;
	}
	return true;
}

/* Before the first pthread_create() the program is its one kernel thread. */
static bool take_plain_process(struct wf_threads *s, const struct wf_layout *l,
			       const struct wf_target *t)
{
	const struct wf_target_lwp *lwp = lwp_by_tid(t, t->pid);
	struct wf_dump_thread *d = calloc(1, sizeof(*d));
	size_t copied = 0;

	if (!d)
		return false;
	*d = (struct wf_dump_thread){
		.tid = t->pid,
		.state = (unsigned)wf_layout_value(l, "state", "running", 3),
		.is_on_cpu = true,
		.kernel_tid = t->pid,
		.call = -1,
	};
	if (!lwp && t->nr_lwps)
		lwp = &t->lwps[0];
	if (lwp) {
		d->regs = lwp->regs;
		d->call = lwp->call;
		memcpy(d->name, lwp->name, sizeof(lwp->name));
		copy_stack(d, t, &copied);
	}
	s->threads = d;
	s->nr_threads = s->nr_alive = 1;
	return true;
}

bool wf_threads_read(struct wf_threads *out, const struct wf_layout *l, const struct wf_target *t,
		     size_t max_threads, size_t max_events)
{
	*out = (struct wf_threads){
		.is_started = wf_layout_fetch(l, t, l->runtime, WF_L_RT_STARTED),
		.now = monotonic_now(),
	};
	/* A core does not tell what lay in the kernel; the runtime's note of that may be older. */
	out->sig_pending = wf_layout_fetch(l, t, l->process, WF_L_LX_SHARED_PENDING) |
			   (t->is_core ? wf_layout_fetch(l, t, l->process, WF_L_LX_PARKED)
				       : wf_target_pending(t));
	if (t->is_core)
		out->now = (int64_t)wf_layout_fetch(l, t, l->runtime, WF_L_RT_COARSE_NOW);
	if (!out->is_started)
		return take_plain_process(out, l, t);
	return read_kthreads(out, l, t) && read_workers(out, l, t) &&
	       read_table(out, l, t, max_threads) && read_events(out, l, t, max_events);
}

void wf_threads_done(struct wf_threads *s)
{
	for (size_t i = 0; i < s->nr_threads; i++) {
		free(s->threads[i].copy);
		free(s->threads[i].frames);
	}
	free(s->threads);
	free(s->kthreads);
	free(s->workers);
	free(s->events);
	*s = (struct wf_threads){ 0 };
}
