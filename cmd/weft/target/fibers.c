// SPDX-License-Identifier: Apache-2.0
/* Reading of fibers; see fibers.h. */
#include "target/fibers.h"
#include "target/table.h"

#include <stdlib.h>

#define MAX_LISTED (1u << 16)   /* threads that have had fibers */
#define MAX_PLACES (1u << 22)   /* that are looked at, of all threads */
#define MAX_FIBERS 10000u       /* that are read, of all threads */
#define MAX_FIBERS_OF_ONE 1000u /* and of one */
#define MAX_CHAIN 64u
#define MAX_PAGES 1024u /* of one */
#define PLACES_AT_ONCE 512u

/* Ranks of states: the one that the thread is in has 0. */
#define FIRST_LEFT 1
#define LAST_LEFT 3

struct place {
	int64_t tid;
	size_t index;
};

struct reader {
	const struct wf_layout *l;
	const struct wf_target *t;
	struct wf_groups *out;
	struct wf_reading stacks;
	size_t nr_chain; /* of the thread that is looked at: these were read first */
	uint64_t places_left;
	uint64_t order[6]; /* values of states, in the order in which they are shown */
};

static int by_tid(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

static unsigned rank_of(const struct reader *r, uint64_t state)
{
	unsigned rank = 0;

	while (rank < sizeof(r->order) / sizeof(r->order[0]) && r->order[rank] != state)
		rank++;
	return rank;
}

static int by_rank(const void *a, const void *b)
{
	const struct wf_dump_fiber *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return x->address < y->address ? -1 : x->address > y->address;
}

/* False: out of memory. */
static bool read_fiber(struct reader *r, struct wf_dump_reach *reach, uint64_t address, uint64_t id)
{
	struct wf_groups *out = r->out;
	struct wf_dump_fiber *f;
	char o[WF_L_MAX_SMALL];
	uint64_t name;

	/* The target stands still meanwhile: of a crowd, those that a thread of before has left are counted, too. */
	if (reach->nr_fibers_read == MAX_FIBERS_OF_ONE || out->nr_fibers == MAX_FIBERS) {
		reach->nr_fibers++;
		return true;
	}
	/* A core need not have all memory, and gcore leaves zeros: no thread has number 0. */
	if (!wf_layout_copy(r->l, r->t, address, WF_L_FIBER, o) ||
	    !wf_layout_get(r->l, o, WF_L_FIBER_HOME_ID)) {
		reach->nr_fibers++;
		return true;
	}
	if (wf_layout_get(r->l, o, WF_L_FIBER_HOME_ID) != id)
		return true; /* left by a thread that has ended */
	reach->nr_fibers++;
	f = out->fibers;
	if (!(out->nr_fibers & (out->nr_fibers - 1))) /* doubled when it is full */
		f = realloc(f, (out->nr_fibers ? 2 * out->nr_fibers : 1) * sizeof(*f));
	if (!f)
		return false;
	out->fibers = f;
	f += out->nr_fibers++;
	*f = (struct wf_dump_fiber){
		.address = address,
		.resumer = wf_layout_get(r->l, o, WF_L_FIBER_RESUMER),
		.resuming = wf_layout_get(r->l, o, WF_L_FIBER_RESUMING),
		.parent = wf_layout_get(r->l, o, WF_L_FIBER_PARENT),
		.state = (unsigned)wf_layout_get(r->l, o, WF_L_FIBER_STATE),
		.stack = { .is_fiber = true,
			   .call = -1,
			   .stack_low = wf_layout_get(r->l, o, WF_L_FIBER_LOW),
			   .stack_high = address,
			   .regs.reg[WF_REG_RSP] = wf_layout_get(r->l, o, WF_L_FIBER_SP) },
	};
	f->rank = rank_of(r, f->state);
	name = wf_layout_get(r->l, o, WF_L_FIBER_NAME);
	if (name)
		(void)wf_target_read_some(r->t, name, f->name, sizeof(f->name) - 1);
	reach->nr_fibers_read++;
	return true;
}

static struct wf_dump_fiber *find(struct wf_dump_fiber *list, size_t nr, uint64_t address)
{
	size_t i = 0;

	while (i < nr && list[i].address != address)
		i++;
	return i < nr ? &list[i] : NULL;
}

/* The one that the thread is in, and whoever waits for it: however many there are, these are shown. */
static bool read_chain(struct reader *r, struct wf_dump_reach *reach, uint64_t at, uint64_t id)
{
	for (unsigned n = 0; at && at != reach->own_fiber && n < MAX_CHAIN; n++) {
		const size_t nr_read = reach->nr_fibers_read, nr = reach->nr_fibers;

		if (find(r->out->fibers + reach->first_fiber, nr_read, at))
			return true;
		if (!read_fiber(r, reach, at, id))
			return false;
		if (reach->nr_fibers_read == nr_read) {
			reach->nr_fibers = nr; /* it is counted at its place */
			return true;
		}
		at = r->out->fibers[r->out->nr_fibers - 1].parent;
	}
	return true;
}

static bool read_places(struct reader *r, struct wf_dump_reach *reach, uint64_t at, uint64_t nr,
			uint64_t id)
{
	uint64_t places[PLACES_AT_ONCE];

	while (nr && r->places_left) {
		uint64_t n = nr < PLACES_AT_ONCE ? nr : PLACES_AT_ONCE;

		if (n > r->places_left)
			n = r->places_left;
		if (!wf_target_read(r->t, at, places, n * sizeof(places[0])))
			return true;
		for (uint64_t i = 0; i < n; i++) {
			if (!places[i] || places[i] & 1 ||
			    find(r->out->fibers + reach->first_fiber, r->nr_chain, places[i]))
				continue;
			if (!read_fiber(r, reach, places[i], id))
				return false;
		}
		at += n * sizeof(places[0]);
		nr -= n;
		r->places_left -= n;
	}
	return true;
}

/* The thread's own stack goes on with the parents of the fiber that it is in: theirs are no stacks of their own. */
static void drop_parents(struct wf_dump_fiber *list, size_t nr)
{
	struct wf_dump_fiber *f = nr && !list->rank ? list : NULL;

	for (size_t n = 0; f && n < nr; n++) {
		f->stack.stack_low = f->stack.stack_high = 0;
		f = find(list, nr, f->parent);
	}
}

static void read_stack(struct reader *r, const struct wf_dump_thread *d, struct wf_dump_fiber *f)
{
	struct wf_dump_thread *s = &f->stack;
	const uint64_t sp = s->regs.reg[WF_REG_RSP], of_thread = d->regs.reg[WF_REG_RSP];

	/* It says already that it is left, and is not quite yet. */
	if ((d->regs.known & 1u << WF_REG_RSP) && of_thread >= s->stack_low &&
	    of_thread < s->stack_high)
		return;
	if (f->rank < FIRST_LEFT || f->rank > LAST_LEFT || sp < s->stack_low ||
	    sp >= s->stack_high || s->stack_high - sp < r->l->field[WF_L_SWITCH].size)
		return;
	if (wf_table_saved_by_switch(s, &r->stacks, sp))
		wf_table_copy_stack(s, &r->stacks);
}

static bool read_of_thread(struct reader *r, const struct wf_dump_thread *d, size_t index,
			   const char *record)
{
	struct wf_dump_fiber *fibers;
	uint64_t at = 0;
	struct wf_dump_reach *reach = &r->out->reaches[index];
	uint64_t page = wf_layout_get(r->l, record, WF_L_FIBERS_PAGE), mark = 0;
	const uint64_t id = wf_layout_get(r->l, record, WF_L_FIBERS_ID);

	if (reach->own_fiber)
		return true; /* once, even in a list that is circular */
	reach->own_fiber = wf_layout_get(r->l, record, WF_L_FIBERS_OWN);
	reach->first_fiber = r->out->nr_fibers;
	(void)wf_target_read(r->t, wf_layout_get(r->l, record, WF_L_FIBERS_CURRENT), &at,
			     sizeof(at));
	if (!read_chain(r, reach, at, id))
		return false;
	r->nr_chain = reach->nr_fibers_read;
	for (unsigned n = 1; page && page != mark && n <= MAX_PAGES; n++) {
		char o[WF_L_MAX_SMALL];

		if (!wf_layout_copy(r->l, r->t, page, WF_L_FPAGE, o))
			break;
		if (!read_places(r, reach, page + r->l->field[WF_L_FPAGE].size,
				 wf_layout_get(r->l, o, WF_L_FPAGE_NR), id))
			return false;
		if (!(n & (n - 1)))
			mark = page;
		page = wf_layout_get(r->l, o, WF_L_FPAGE_NEXT);
	}
	if (!reach->nr_fibers_read)
		return true;
	fibers = r->out->fibers + reach->first_fiber;
	qsort(fibers, reach->nr_fibers_read, sizeof(*fibers), by_rank);
	drop_parents(fibers, reach->nr_fibers_read);
	for (size_t i = 0; i < reach->nr_fibers_read; i++)
		read_stack(r, d, &fibers[i]);
	return true;
}

bool wf_fibers_read(struct wf_groups *out, const struct wf_layout *l, const struct wf_target *t,
		    const struct wf_threads *s, int64_t only)
{
	static const char *const states[] = { "running", "resumes", "transferred",
					      "yielded", "new",     "done" };
	struct reader r = { .l = l, .t = t, .out = out, .places_left = MAX_PLACES };
	char *object;
	struct place *places;
	uint64_t at = 0, mark = 0;
	size_t nr = 0;
	bool is_ok = true;

	if (!l->has_fibers || !wf_target_read(t, l->fibers, &at, sizeof(at)) || !at)
		return true;
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
		r.order[i] = wf_layout_value(l, "fiber", states[i], UINT64_MAX);
	places = calloc(s->nr_threads + 1, sizeof(*places));
	object = malloc(WF_L_MAX_OBJECT);
	if (!places || !object) {
		free(places);
		free(object);
		return false;
	}
	r.stacks = (struct wf_reading){ .layout = l, .target = t, .object = object };
	for (size_t i = 0; i < s->nr_threads; i++) {
		if (s->threads[i].tid && (!only || only == s->threads[i].tid))
			places[nr++] = (struct place){ s->threads[i].tid, i };
	}
	if (nr)
		qsort(places, nr, sizeof(*places), by_tid);
	/* A circle is found by a mark that moves ever less often. */
	for (unsigned n = 1; is_ok && at && at != mark && n <= MAX_LISTED; n++) {
		char o[WF_L_MAX_SMALL];
		struct place key, *p;

		if (!wf_layout_copy(l, t, at, WF_L_FIBERS, o))
			break;
		key.tid = (int64_t)wf_layout_get(l, o, WF_L_FIBERS_TID);
		p = nr ? bsearch(&key, places, nr, sizeof(key), by_tid) : NULL;
		is_ok = !p || read_of_thread(&r, &s->threads[p->index], p->index, o);
		if (!(n & (n - 1)))
			mark = at;
		at = wf_layout_get(l, o, WF_L_FIBERS_NEXT);
	}
	free(places);
	free(object);
	return is_ok;
}
