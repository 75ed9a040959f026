// SPDX-License-Identifier: Apache-2.0
/* Taking the snapshot; see threads.h. */
#include "target/threads.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RED_ZONE 128
#define COPY_BYTES (32u << 10)  /* of each stack; deeper frames are read when they are needed */
#define COPY_TOTAL (512u << 20) /* of all stacks */
#define CHUNK_BYTES (1u << 20)
#define MAX_SLOTS (1u << 20)
#define MAX_KTHREADS 32768u
#define MAX_WORKERS 1024u
#define MAX_INBOX 100000u /* of all workers */
#define MAX_RINGS 8u      /* of events, of a kernel thread */
#define EVENTS_AT_ONCE 256

/* The way from a kernel thread's address to where it stands in the snapshot. */
struct place {
	uint64_t address;
	size_t index;
};

/* What reading the snapshot takes along. */
struct reading {
	const struct wf_layout *layout;
	const struct wf_target *target;
	struct place *kthreads; /* by address */
	char *object;           /* room for one of any structure */
	bool is_glance;         /* the target goes on meanwhile */
	size_t copied;          /* bytes of stacks */
};

static int64_t monotonic_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

struct saved_register {
	int number; /* DWARF's */
	enum wf_layout_field field;
};

/* A thread that left its CPU by a call. Where it goes on, its stack pointer is above the frame. */
static const struct saved_register by_switch[] = {
	{ WF_REG_RBX, WF_L_SWITCH_RBX }, { 12, WF_L_SWITCH_R12 }, { 13, WF_L_SWITCH_R13 },
	{ 14, WF_L_SWITCH_R14 },         { 15, WF_L_SWITCH_R15 }, { WF_REG_RBP, WF_L_SWITCH_RBP },
	{ WF_REG_RIP, WF_L_SWITCH_RIP },
};

/* A preempted one: everything is in the signal frame that was copied to its save area. */
static const struct saved_register by_signal[] = {
	{ 0, WF_L_UC_RAX },          { 1, WF_L_UC_RDX },          { 2, WF_L_UC_RCX },
	{ WF_REG_RBX, WF_L_UC_RBX }, { 4, WF_L_UC_RSI },          { 5, WF_L_UC_RDI },
	{ WF_REG_RBP, WF_L_UC_RBP }, { WF_REG_RSP, WF_L_UC_RSP }, { 8, WF_L_UC_R8 },
	{ 9, WF_L_UC_R9 },           { 10, WF_L_UC_R10 },         { 11, WF_L_UC_R11 },
	{ 12, WF_L_UC_R12 },         { 13, WF_L_UC_R13 },         { 14, WF_L_UC_R14 },
	{ 15, WF_L_UC_R15 },         { WF_REG_RIP, WF_L_UC_RIP },
};

static bool take_registers(const struct reading *r, uint64_t address, enum wf_layout_field type,
			   const struct saved_register *list, size_t nr, struct wf_regs *out)
{
	if (!wf_layout_copy(r->layout, r->target, address, type, r->object))
		return false;
	*out = (struct wf_regs){ 0 };
	for (size_t i = 0; i < nr; i++) {
		out->reg[list[i].number] = wf_layout_get(r->layout, r->object, list[i].field);
		out->known |= 1u << list[i].number;
	}
	return true;
}

/* A thread that left its CPU; of a preempted one the runtime's part of the way back is not shown. */
static void read_saved_regs(struct wf_dump_thread *d, const struct reading *r, uint64_t sp)
{
	uint64_t uc;

	if (!sp)
		return;
	if (d->is_preempted) {
		uc = wf_layout_fetch(r->layout, r->target, sp, WF_L_RESUME_UC);
		if (uc && take_registers(r, uc, WF_L_UC, by_signal,
					 sizeof(by_signal) / sizeof(by_signal[0]), &d->regs))
			return;
	}
	if (!take_registers(r, sp, WF_L_SWITCH, by_switch, sizeof(by_switch) / sizeof(by_switch[0]),
			    &d->regs))
		return;
	d->regs.reg[WF_REG_RSP] = sp + r->layout->field[WF_L_SWITCH].size;
	d->regs.known |= 1u << WF_REG_RSP;
}

static bool is_inside(const struct wf_dump_thread *d, uint64_t sp)
{
	return sp >= d->stack_low && sp < d->stack_high;
}

static int by_address(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

/* The kernel thread that d is on, or NULL: its own word for it must agree. */
static const struct wf_dump_kthread *kthread_of(const struct wf_dump_thread *d,
						const struct reading *r, const struct wf_threads *s)
{
	const struct place key = { .address = d->kthread };
	const struct place *p = d->kthread && s->nr_kthreads
					? bsearch(&key, r->kthreads, s->nr_kthreads, sizeof(key),
						  by_address)
					: NULL;

	return p && s->kthreads[p->index].cur == d->address ? &s->kthreads[p->index] : NULL;
}

static void read_regs(struct wf_dump_thread *d, const struct reading *r, const struct wf_threads *s,
		      uint64_t sp)
{
	const struct wf_dump_kthread *k = kthread_of(d, r, s);
	const struct wf_target_lwp *lwp = k ? wf_target_lwp(r->target, k->inner_tid) : NULL;

	/* In the middle of a switch the registers may still be the predecessor's. */
	if (!lwp || !lwp->regs.known ||
	    (k->prev && d->stack_high && is_inside(d, sp) &&
	     !is_inside(d, lwp->regs.reg[WF_REG_RSP]))) {
		read_saved_regs(d, r, sp);
		return;
	}
	if (d->is_preempted)
		read_saved_regs(d, r, sp); /* it is about to go on, or to leave */
	else
		d->regs = lwp->regs;
	d->is_preempted = false;
	d->is_on_cpu = true;
	d->is_direct = k->is_direct;
	d->kernel_tid = k->tid;
	d->call = lwp->call;
}

/* Without its registers; a call that has ended meanwhile was one a moment ago. */
static void note_kthread(struct wf_dump_thread *d, const struct reading *r,
			 const struct wf_threads *s)
{
	const struct wf_dump_kthread *k = kthread_of(d, r, s);

	if (!k)
		return;
	d->is_on_cpu = true;
	d->is_direct = k->is_direct;
	d->kernel_tid = k->tid;
	d->call = k->insys ? (long)k->call_nr : -1;
}

static void copy_stack(struct wf_dump_thread *d, struct reading *r)
{
	uint64_t sp = d->regs.reg[WF_REG_RSP];
	size_t bytes = COPY_BYTES;

	if (!(d->regs.known & (1u << WF_REG_RSP)) || sp < RED_ZONE || r->copied >= COPY_TOTAL)
		return;
	if (is_inside(d, sp) && d->stack_high - sp + RED_ZONE < bytes)
		bytes = d->stack_high - sp + RED_ZONE;
	d->copy = malloc(bytes);
	if (!d->copy)
		return;
	d->copy_at = sp - RED_ZONE;
	d->copy_bytes = wf_target_read_some(r->target, d->copy_at, d->copy, bytes);
	r->copied += bytes;
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
		.run_ns = wf_layout_get(l, o, WF_L_T_RUN_NS),
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

/*
 * So many rows from at on; what cannot be read is zero. Of a target that goes on, rows whose thread was another one
 * before and after become free. Returns the number of bytes that there were.
 */
static size_t read_rows(const struct reading *r, uint64_t at, char *rows, size_t nr, size_t bytes)
{
	const struct wf_layout *l = r->layout;
	size_t got = wf_target_read_some(r->target, at, rows, nr * bytes), again;
	char *later;

	memset(rows + got, 0, nr * bytes - got);
	if (!r->is_glance)
		return got;
	later = rows + CHUNK_BYTES;
	again = wf_target_read_some(r->target, at, later, got);
	for (size_t i = 0; i < nr; i++) {
		if ((i + 1) * bytes > again ||
		    wf_layout_get(l, rows + i * bytes, WF_L_T_TID) !=
			    wf_layout_get(l, later + i * bytes, WF_L_T_TID))
			memset(rows + i * bytes, 0, bytes);
	}
	return got;
}

/* Walks the slots in large reads. False: out of memory. */
static bool read_table(struct wf_threads *s, struct reading *r, size_t max)
{
	const struct wf_layout *l = r->layout;
	const struct wf_target *t = r->target;
	uint64_t slots = wf_layout_fetch(l, t, l->table, WF_L_TABLE_SLOTS);
	uint64_t bytes = wf_layout_fetch(l, t, l->table, WF_L_TABLE_OBJECT_BYTES);
	uint64_t nr = wf_layout_fetch(l, t, l->table, WF_L_TABLE_NR_SLOTS);
	uint64_t mask = wf_layout_value(l, "const", "state_mask", 0xff);
	uint64_t state_free = wf_layout_value(l, "state", "free", 0);
	uint64_t state_dead = wf_layout_value(l, "state", "dead", 7);
	size_t per_chunk, room = 0;
	char *chunk;

	if (!slots || bytes < l->field[WF_L_THREAD].size || bytes > CHUNK_BYTES)
		return true;
	if (nr > MAX_SLOTS)
		nr = MAX_SLOTS;
	per_chunk = CHUNK_BYTES / bytes;
	chunk = malloc(r->is_glance ? 2 * CHUNK_BYTES : CHUNK_BYTES);
	if (!chunk)
		return false;
	for (uint64_t i = 0; i < nr; i++) {
		size_t at = i % per_chunk;
		char *o = chunk + at * bytes;
		unsigned state;

		if (at == 0) {
			size_t n = nr - i < per_chunk ? nr - i : per_chunk;

			if (!read_rows(r, slots + i * bytes, chunk, n, bytes) && t->budget &&
			    t->budget->spent)
				break;
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
		if (r->is_glance) {
			note_kthread(&s->threads[s->nr_threads], r, s);
		} else {
			read_regs(&s->threads[s->nr_threads], r, s, wf_layout_get(l, o, WF_L_T_SP));
			copy_stack(&s->threads[s->nr_threads], r);
		}
		s->nr_threads++;
	}
	free(chunk);
	return true;
}

static void take_kthread(struct wf_dump_kthread *k, const struct reading *r, uint64_t address)
{
	const struct wf_layout *l = r->layout;
	const struct wf_target *t = r->target;
	const char *o = r->object;
	const struct wf_target_lwp *lwp;

	*k = (struct wf_dump_kthread){
		.address = address,
		.cur = wf_layout_get(l, o, WF_L_K_CUR),
		.prev = wf_layout_get(l, o, WF_L_K_PREV),
		.worker = wf_layout_get(l, o, WF_L_K_WORKER),
		.ring = wf_layout_get(l, o, WF_L_K_RING),
		.tid = (int)wf_layout_get(l, o, WF_L_K_TID),
		.insys = (unsigned)wf_layout_get(l, o, WF_L_K_INSYS),
		.call_nr = (unsigned)wf_layout_get(l, o, WF_L_K_CALL_NR),
		.is_direct = wf_layout_get(l, o, WF_L_K_DIRECT),
		.is_door = wf_layout_get(l, o, WF_L_K_IS_DOOR),
		.is_helper = wf_layout_get(l, o, WF_L_K_IS_HELPER),
		.is_poller = wf_layout_get(l, o, WF_L_K_IS_POLLER),
		.is_asleep = wf_layout_get(l, o, WF_L_K_SLEEP_WORD),
		.bound = wf_layout_get(l, o, WF_L_K_BOUND),
		.worker_index = -1,
		.call = -1,
	};
	k->inner_tid = k->tid;
	if (k->cur)
		k->cur_tid = (int64_t)wf_layout_fetch(l, t, k->cur, WF_L_T_TID);
	if (k->bound)
		k->bound_tid = (int64_t)wf_layout_fetch(l, t, k->bound, WF_L_T_TID);
	if (k->worker)
		k->worker_index = (int)wf_layout_fetch(l, t, k->worker, WF_L_W_INDEX);
	lwp = wf_target_lwp(t, k->inner_tid);
	if (lwp) {
		k->tid = lwp->tid;
		k->call = lwp->call;
	}
}

static bool read_kthreads(struct wf_threads *s, struct reading *r)
{
	uint64_t nr = wf_layout_fetch(r->layout, r->target, r->layout->runtime,
				      WF_L_RT_NR_KTHREADS);
	uint64_t at = wf_layout_fetch(r->layout, r->target, r->layout->runtime, WF_L_RT_KTHREADS);

	if (nr > MAX_KTHREADS)
		nr = MAX_KTHREADS;
	s->kthreads = calloc(nr + 1, sizeof(*s->kthreads));
	r->kthreads = calloc(nr + 1, sizeof(*r->kthreads));
	if (!s->kthreads || !r->kthreads)
		return false;
	for (uint64_t i = 0; i < nr; i++) {
		uint64_t a;

		if (!wf_target_read(r->target, at + i * sizeof(a), &a, sizeof(a)) || !a ||
		    !wf_layout_copy(r->layout, r->target, a, WF_L_KTHREAD, r->object))
			continue;
		for (int c = 0; c < WF_NR_COUNTS; c++)
			s->count[c] += wf_layout_get(
				r->layout, r->object + r->layout->field[WF_L_K_COUNT].offset,
				(enum wf_layout_field)(WF_L_C_SWITCHES + c));
		take_kthread(&s->kthreads[s->nr_kthreads], r, a);
		if (!s->kthreads[s->nr_kthreads].tid)
			continue; /* a spare that has ended */
		r->kthreads[s->nr_kthreads] = (struct place){ a, s->nr_kthreads };
		s->nr_kthreads++;
	}
	qsort(r->kthreads, s->nr_kthreads, sizeof(*r->kthreads), by_address);
	return true;
}

/* A list that others change while we cannot see it whole: bounded, not trusted. *left: of all such lists. */
static unsigned inbox_length(const struct reading *r, uint64_t at, unsigned *left)
{
	unsigned nr = 0;

	while (at && *left) {
		at = wf_layout_fetch(r->layout, r->target, at, WF_L_T_NEXT);
		nr++;
		(*left)--;
	}
	return nr;
}

static bool read_workers(struct wf_threads *s, const struct reading *r)
{
	const struct wf_layout *l = r->layout;
	const struct wf_target *t = r->target;
	uint64_t nr = wf_layout_fetch(l, t, l->runtime, WF_L_RT_NR_WORKERS);
	uint64_t at = wf_layout_fetch(l, t, l->runtime, WF_L_RT_WORKERS);
	const char *o = r->object;
	unsigned left = MAX_INBOX;

	if (nr > MAX_WORKERS)
		nr = MAX_WORKERS;
	s->workers = calloc(nr + 1, sizeof(*s->workers));
	if (!s->workers)
		return false;
	for (uint64_t i = 0; at && i < nr; i++) {
		uint64_t a = at + i * l->field[WF_L_WORKER].size, k;
		struct wf_dump_worker *w = &s->workers[s->nr_workers];
		const struct place *p;

		if (!wf_layout_copy(l, t, a, WF_L_WORKER, r->object))
			break;
		s->nr_workers++;
		*w = (struct wf_dump_worker){
			.address = a,
			.index = (unsigned)wf_layout_get(l, o, WF_L_W_INDEX),
			.nr_queued = (unsigned)wf_layout_get(l, o + l->field[WF_L_W_RQ].offset,
							     WF_L_RQ_NR),
			.nr_inbox = inbox_length(r, wf_layout_get(l, o, WF_L_W_INBOX), &left),
			.is_vacant = wf_layout_get(l, o, WF_L_W_IS_VACANT),
			.rests = wf_layout_get(l, o, WF_L_W_RESTS),
		};
		k = w->is_vacant ? 0 : wf_layout_get(l, o, WF_L_W_KTHREAD);
		p = k && s->nr_kthreads ? bsearch(&(struct place){ .address = k }, r->kthreads,
						  s->nr_kthreads, sizeof(*p), by_address)
					: NULL;
		if (!p)
			continue;
		w->kernel_tid = s->kthreads[p->index].tid;
		w->cur_tid = s->kthreads[p->index].cur_tid;
	}
	return true;
}

static int by_cycles(const void *a, const void *b)
{
	const struct wf_dump_event *x = a, *y = b;

	return x->cycles < y->cycles ? -1 : x->cycles > y->cycles;
}

/* The last of all, when there are more than max. */
static void keep_last(struct wf_threads *s, size_t max)
{
	if (s->events)
		qsort(s->events, s->nr_events, sizeof(*s->events), by_cycles);
	if (s->nr_events > max) {
		memmove(s->events, s->events + (s->nr_events - max), max * sizeof(*s->events));
		s->nr_events = max;
	}
}

static void take_event(struct wf_threads *s, const struct wf_layout *l, const char *o,
		       int kernel_tid)
{
	s->events[s->nr_events++] = (struct wf_dump_event){
		.cycles = wf_layout_get(l, o, WF_L_E_CYCLES),
		.event = (unsigned)wf_layout_get(l, o, WF_L_E_EVENT),
		.tid = (int64_t)wf_layout_get(l, o, WF_L_E_TID),
		.a = wf_layout_get(l, o, WF_L_E_A),
		.b = wf_layout_get(l, o, WF_L_E_B),
		.kernel_tid = kernel_tid,
	};
}

/* The last nr of the ring at `ring`, in pieces that do not go over its end. There is room for them. */
static void read_ring(struct wf_threads *s, const struct reading *r, uint64_t ring, int kernel_tid,
		      uint64_t next, uint64_t nr, uint64_t ring_events)
{
	uint64_t bytes = r->layout->field[WF_L_EVENT].size;
	char piece[EVENTS_AT_ONCE * WF_L_MAX_EVENT];

	for (uint64_t e = next - nr; e < next;) {
		uint64_t at = e % ring_events, n = next - e;

		if (n > EVENTS_AT_ONCE)
			n = EVENTS_AT_ONCE;
		if (n > ring_events - at)
			n = ring_events - at;
		e += n;
		if (!wf_target_read(r->target,
				    ring + r->layout->field[WF_L_RING_EVENTS].offset + at * bytes,
				    piece, n * bytes))
			continue;
		for (uint64_t i = 0; i < n; i++)
			take_event(s, r->layout, piece + i * bytes, kernel_tid);
	}
}

/* The last max of every ring, then the last max of all. */
static bool read_events(struct wf_threads *s, const struct reading *r, size_t max)
{
	const struct wf_layout *l = r->layout;
	uint64_t ring_events = wf_layout_value(l, "const", "trace_events", 0);
	uint64_t nr_rings = wf_layout_value(l, "const", "trace_rings", 1);
	size_t room = 0;

	if (nr_rings > MAX_RINGS)
		nr_rings = 1;
	for (size_t i = 0; i < s->nr_kthreads; i++)
		s->has_events |= s->kthreads[i].ring != 0;
	for (size_t i = 0; i < s->nr_kthreads * nr_rings && max && ring_events; i++) {
		const struct wf_dump_kthread *k = &s->kthreads[i / nr_rings];
		uint64_t ring = k->ring + i % nr_rings * l->field[WF_L_RING].size, next, nr;
		void *p;

		if (!k->ring)
			continue;
		next = wf_layout_fetch(l, r->target, ring, WF_L_RING_NEXT);
		nr = next < max ? next : max;
		if (nr > ring_events)
			nr = ring_events;
		if (s->nr_events > 2 * max)
			keep_last(s, max);
		if (s->nr_events + nr > room) {
			room = 2 * room > s->nr_events + nr ? 2 * room : s->nr_events + nr;
			p = realloc(s->events, room * sizeof(*s->events));
			if (!p)
				return false;
			s->events = p;
		}
		read_ring(s, r, ring, k->tid, next, nr, ring_events);
	}
	keep_last(s, max);
	return true;
}

/* Before the first pthread_create() the program is its one kernel thread. */
static bool take_plain_process(struct wf_threads *s, struct reading *r)
{
	const struct wf_target *t = r->target;
	const struct wf_target_lwp *lwp = wf_target_lwp(t, t->inner_pid);
	struct wf_dump_thread *d = calloc(1, sizeof(*d));

	if (!d)
		return false;
	*d = (struct wf_dump_thread){
		.tid = t->inner_pid,
		.state = (unsigned)wf_layout_value(r->layout, "state", "running", 3),
		.is_on_cpu = true,
		.kernel_tid = t->pid,
		.call = -1,
	};
	if (!lwp)
		lwp = wf_target_lwp(t, t->first_tid);
	if (lwp) {
		d->regs = lwp->regs;
		d->call = lwp->call;
		memcpy(d->name, lwp->name, sizeof(lwp->name));
		copy_stack(d, r);
	}
	s->threads = d;
	s->nr_threads = s->nr_alive = 1;
	return true;
}

static bool read_all(struct wf_threads *out, const struct wf_layout *l, const struct wf_target *t,
		     size_t max_threads, size_t max_events, bool is_glance)
{
	struct reading r = {
		.layout = l, .target = t, .object = malloc(WF_L_MAX_OBJECT), .is_glance = is_glance
	};
	bool is_ok = r.object;

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
	if (is_ok && !out->is_started)
		is_ok = take_plain_process(out, &r);
	else if (is_ok)
		is_ok = read_kthreads(out, &r) && read_workers(out, &r) &&
			read_table(out, &r, max_threads) && read_events(out, &r, max_events);
	free(r.object);
	free(r.kthreads);
	return is_ok;
}

bool wf_threads_read(struct wf_threads *out, const struct wf_layout *l, const struct wf_target *t,
		     size_t max_threads, size_t max_events)
{
	return read_all(out, l, t, max_threads, max_events, false);
}

bool wf_threads_glance(struct wf_threads *out, const struct wf_layout *l, const struct wf_target *t,
		       size_t max_threads)
{
	return read_all(out, l, t, max_threads, 0, true);
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
