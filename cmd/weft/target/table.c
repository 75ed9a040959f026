// SPDX-License-Identifier: Apache-2.0
/* The table of threads, with registers and stacks; see table.h. */
#include "target/table.h"

#include <stdlib.h>
#include <string.h>

#define RED_ZONE 128
#define COPY_BYTES (32u << 10)  /* of each stack; deeper frames are read when they are needed */
#define COPY_TOTAL (512u << 20) /* of all stacks */
#define CHUNK_BYTES (1u << 20)
#define MAX_SLOTS (1u << 20)
#define PART_ROWS 512u /* in a row, of a table that is looked at in parts */

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

bool wf_table_saved_by_switch(struct wf_dump_thread *d, const struct wf_reading *r, uint64_t sp)
{
	if (!take_registers(r, sp, WF_L_SWITCH, by_switch, sizeof(by_switch) / sizeof(by_switch[0]),
			    &d->regs))
		return false;
	d->regs.reg[WF_REG_RSP] = sp + r->layout->field[WF_L_SWITCH].size;
	d->regs.known |= 1u << WF_REG_RSP;
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
	(void)wf_table_saved_by_switch(d, r, sp);
}

static bool is_inside(const struct wf_dump_thread *d, uint64_t sp)
{
	return sp >= d->stack_low && sp < d->stack_high;
}

int wf_table_by_address(const void *a, const void *b)
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
							     sizeof(key), wf_table_by_address)
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

void wf_table_copy_stack(struct wf_dump_thread *d, struct wf_reading *r)
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
		.scopes = wf_layout_get(l, o, WF_L_T_SCOPES),
		.kthread = wf_layout_get(l, o, WF_L_T_KTHREAD),
		.child_tid = wf_layout_get(l, o, WF_L_LX_CHILD_TID),
		.joined = wf_layout_get(l, o, WF_L_LX_JOINED),
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

/* Room for one more row, or NULL: out of memory. */
static struct wf_dump_thread *add_row(struct wf_threads *s)
{
	/* Doubled when it is full: a power of two, and at least 64. */
	if (s->nr_threads == 0 || (s->nr_threads >= 64 && !(s->nr_threads & (s->nr_threads - 1)))) {
		size_t room = s->nr_threads ? 2 * s->nr_threads : 64;
		void *p = realloc(s->threads, room * sizeof(*s->threads));

		if (!p)
			return NULL;
		s->threads = p;
	}
	return &s->threads[s->nr_threads++];
}

static bool take_rows(struct wf_threads *s, struct wf_reading *r, uint64_t at, const char *rows,
		      size_t nr, size_t bytes, size_t max)
{
	const struct wf_layout *l = r->layout;
	uint64_t mask = wf_layout_value(l, "const", "state_mask", 0xff);
	uint64_t state_free = wf_layout_value(l, "state", "free", 0);
	uint64_t state_dead = wf_layout_value(l, "state", "dead", 7);
	uint64_t unused = wf_layout_value(l, "wait", "unused", UINT64_MAX);
	int64_t now = r->is_glance ? wf_reading_now() : s->now;

	for (size_t i = 0; i < nr; i++) {
		const char *o = rows + i * bytes;
		unsigned state = (unsigned)(wf_layout_get(l, o, WF_L_T_STATE) & mask);
		struct wf_dump_thread *d;

		if (state == state_free || state == state_dead ||
		    (state == l->parked && wf_layout_get(l, o, WF_L_T_WAIT_KIND) == unused))
			continue;
		s->nr_alive++;
		if (s->nr_threads == max)
			continue;
		d = add_row(s);
		if (!d)
			return false;
		take_thread(d, l, o, at + i * bytes, state);
		d->read_at = now;
		if (r->is_glance || (r->only && r->only != d->tid)) {
			note_kthread(d, r, s);
			continue;
		}
		read_regs(d, r, s, wf_layout_get(l, o, WF_L_T_SP));
		wf_table_copy_stack(d, r);
	}
	return true;
}

/* Those between two addresses as they were; *from only grows from call to call. */
static bool keep_rows(struct wf_threads *s, const struct wf_threads *before, size_t *from,
		      uint64_t at, uint64_t end, size_t max)
{
	while (*from < before->nr_threads && before->threads[*from].address < at)
		(*from)++;
	for (; *from < before->nr_threads && before->threads[*from].address < end; (*from)++) {
		struct wf_dump_thread *d = s->nr_threads < max ? add_row(s) : NULL;

		if (!d)
			return s->nr_threads == max;
		*d = before->threads[*from];
		s->nr_alive++;
	}
	return true;
}

/* Walks the slots in large reads. False: out of memory. */
bool wf_table_read(struct wf_threads *s, struct wf_reading *r, size_t max)
{
	const struct wf_layout *l = r->layout;
	const struct wf_target *t = r->target;
	uint64_t slots = wf_layout_fetch(l, t, l->table, WF_L_TABLE_SLOTS);
	uint64_t bytes = wf_layout_fetch(l, t, l->table, WF_L_TABLE_OBJECT_BYTES);
	uint64_t nr = wf_layout_fetch(l, t, l->table, WF_L_TABLE_NR_SLOTS);
	const struct wf_threads_part *part = r->part;
	size_t per_chunk, kept = 0;
	bool is_ok = true;
	char *chunk;

	if (!slots || bytes < l->field[WF_L_THREAD].size || bytes > CHUNK_BYTES)
		return true;
	if (nr > MAX_SLOTS)
		nr = MAX_SLOTS;
	per_chunk = CHUNK_BYTES / bytes;
	if (part)
		per_chunk = per_chunk < PART_ROWS ? per_chunk : PART_ROWS;
	chunk = malloc(r->is_glance ? 2 * CHUNK_BYTES : CHUNK_BYTES);
	if (!chunk)
		return false;
	for (uint64_t i = 0; is_ok && i < nr; i += per_chunk) {
		size_t n = nr - i < per_chunk ? nr - i : per_chunk;
		uint64_t at = slots + i * bytes;

		if (part && i / per_chunk % part->of != part->nr) {
			is_ok = keep_rows(s, part->before, &kept, at, at + n * bytes, max);
			continue;
		}
		if (!read_rows(r, at, chunk, n, bytes) && t->budget && t->budget->spent)
			break;
		is_ok = take_rows(s, r, at, chunk, n, bytes, max);
		if (part && s->nr_threads == max)
			break;
	}
	/* Of those that there is no room for, the number is that of the look at all. */
	if (part)
		s->nr_alive = s->nr_threads + part->before->nr_alive - part->before->nr_threads;
	free(chunk);
	return is_ok;
}
