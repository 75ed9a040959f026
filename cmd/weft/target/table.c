// SPDX-License-Identifier: Apache-2.0
/* The table of threads, with registers and stacks; see reading.h. */
#include "target/reading.h"

#include <stdlib.h>
#include <string.h>

#define RED_ZONE 128
#define COPY_BYTES (32u << 10)  /* of each stack; deeper frames are read when they are needed */
#define COPY_TOTAL (512u << 20) /* of all stacks */
#define CHUNK_BYTES (1u << 20)
#define MAX_SLOTS (1u << 20)

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

static bool take_registers(const struct wf_reading *r, uint64_t address, enum wf_layout_field type,
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
static void read_saved_regs(struct wf_dump_thread *d, const struct wf_reading *r, uint64_t sp)
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

int wf_reading_by_address(const void *a, const void *b)
{
	const struct wf_reading_place *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

/* The kernel thread that d is on, or NULL: its own word for it must agree. */
static const struct wf_dump_kthread *kthread_of(const struct wf_dump_thread *d,
						const struct wf_reading *r,
						const struct wf_threads *s)
{
	const struct wf_reading_place key = { .address = d->kthread };
	const struct wf_reading_place *p = d->kthread && s->nr_kthreads
						   ? bsearch(&key, r->kthreads, s->nr_kthreads,
							     sizeof(key), wf_reading_by_address)
						   : NULL;

	return p && s->kthreads[p->index].cur == d->address ? &s->kthreads[p->index] : NULL;
}

static void read_regs(struct wf_dump_thread *d, const struct wf_reading *r,
		      const struct wf_threads *s, uint64_t sp)
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
static void note_kthread(struct wf_dump_thread *d, const struct wf_reading *r,
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

void wf_reading_copy_stack(struct wf_dump_thread *d, struct wf_reading *r)
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
static size_t read_rows(const struct wf_reading *r, uint64_t at, char *rows, size_t nr,
			size_t bytes)
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
bool wf_reading_table(struct wf_threads *s, struct wf_reading *r, size_t max)
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
			wf_reading_copy_stack(&s->threads[s->nr_threads], r);
		}
		s->nr_threads++;
	}
	free(chunk);
	return true;
}
