// SPDX-License-Identifier: Apache-2.0
/* Taking the snapshot; see threads.h. */
#include "target/rings.h"
#include "target/table.h"

#include <stdlib.h>
#include <string.h>

#define MAX_KTHREADS 32768u
#define MAX_WORKERS 1024u
#define MAX_INBOX 100000u /* of all workers */
#define AWAKE_TRIES 4

static void take_kthread(struct wf_dump_kthread *k, const struct wf_reading *r, uint64_t address)
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

static bool read_kthreads(struct wf_threads *s, struct wf_reading *r)
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
		r->kthreads[s->nr_kthreads] = (struct wf_reading_place){ a, s->nr_kthreads };
		s->nr_kthreads++;
	}
	/* Each goes on meanwhile, if the process is not stopped. */
	if (s->count[WF_L_C_SPAWNS - WF_L_C_SWITCHES] > s->count[WF_L_C_BEGINS - WF_L_C_SWITCHES])
		s->nr_not_begun = s->count[WF_L_C_SPAWNS - WF_L_C_SWITCHES] -
				  s->count[WF_L_C_BEGINS - WF_L_C_SWITCHES];
	qsort(r->kthreads, s->nr_kthreads, sizeof(*r->kthreads), wf_table_by_address);
	return true;
}

/* A list that others change while we cannot see it whole: bounded, not trusted. *left: of all such lists. */
static unsigned inbox_length(const struct wf_reading *r, uint64_t at, unsigned *left)
{
	unsigned nr = 0;

	while (at && *left) {
		at = wf_layout_fetch(r->layout, r->target, at, WF_L_T_NEXT);
		nr++;
		(*left)--;
	}
	return nr;
}

/*
 * Of the worker whose copy is in r->object. Its carrier changes two words when it goes to sleep: a look between both
 * would miss what is in neither, so the words are read until they are the same twice.
 */
static int64_t time_awake(const struct wf_reading *r, const struct wf_threads *s, uint64_t at)
{
	const struct wf_layout *l = r->layout;
	uint64_t ns = wf_layout_get(l, r->object, WF_L_W_AWAKE_NS);
	uint64_t since = wf_layout_get(l, r->object, WF_L_W_AWAKE_SINCE);
	int64_t now = s->now;

	for (int i = 0; r->is_glance && i < AWAKE_TRIES; i++) {
		uint64_t ns_again = wf_layout_fetch(l, r->target, at, WF_L_W_AWAKE_NS);
		uint64_t since_again = wf_layout_fetch(l, r->target, at, WF_L_W_AWAKE_SINCE);
		bool is_same = ns_again == ns && since_again == since;

		ns = ns_again;
		since = since_again;
		if (is_same)
			break;
		now = wf_reading_now();
	}
	if (since && since < (uint64_t)now)
		ns += (uint64_t)now - since;
	return ns <= INT64_MAX ? (int64_t)ns : 0;
}

static bool read_workers(struct wf_threads *s, const struct wf_reading *r)
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
		const struct wf_reading_place *p;

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
			.awake_ns = time_awake(r, s, a),
		};
		k = w->is_vacant ? 0 : wf_layout_get(l, o, WF_L_W_KTHREAD);
		p = k && s->nr_kthreads
			    ? bsearch(&(struct wf_reading_place){ .address = k }, r->kthreads,
				      s->nr_kthreads, sizeof(*p), wf_table_by_address)
			    : NULL;
		if (!p)
			continue;
		w->kernel_tid = s->kthreads[p->index].tid;
		w->cur_tid = s->kthreads[p->index].cur_tid;
	}
	return true;
}

static int kernel_tid_of(const struct wf_reading *r, unsigned kthread)
{
	const struct wf_layout *l = r->layout;
	uint64_t at = wf_layout_fetch(l, r->target, l->runtime, WF_L_RT_KTHREADS), k = 0;
	const struct wf_target_lwp *lwp;
	int tid;

	if (!wf_target_read(r->target, at + kthread * sizeof(k), &k, sizeof(k)) || !k)
		return 0;
	tid = (int)wf_layout_fetch(l, r->target, k, WF_L_K_TID);
	lwp = wf_target_lwp(r->target, tid);
	return lwp ? lwp->tid : tid;
}

/* The last max of every ring, then the last max of all. */
static bool read_events(struct wf_threads *s, const struct wf_reading *r, size_t max)
{
	struct wf_rings rings;
	bool is_ok;

	wf_rings_begin(&rings, r->layout, r->target);
	s->has_events = rings.is_armed;
	is_ok = !max || !rings.is_armed || wf_rings_look(&rings, r->layout, r->target, max);
	wf_rings_sort(&rings);
	if (rings.nr_events > max)
		memmove(rings.events, rings.events + (rings.nr_events - max),
			max * sizeof(*rings.events));
	s->nr_events = is_ok && rings.nr_events > max ? max : is_ok ? rings.nr_events : 0;
	s->events = calloc(s->nr_events + 1, sizeof(*s->events));
	is_ok = is_ok && s->events;
	for (size_t i = 0; is_ok && i < s->nr_events; i++) {
		const struct wf_ring_event *e = &rings.events[i];
		bool is_same = i && e->kthread == rings.events[i - 1].kthread;

		s->events[i] = (struct wf_dump_event){
			.cycles = e->cycles,
			.event = e->event,
			.tid = e->tid,
			.a = e->a,
			.b = e->b,
			.kernel_tid = is_same ? s->events[i - 1].kernel_tid
					      : kernel_tid_of(r, e->kthread),
		};
	}
	wf_rings_done(&rings);
	return is_ok;
}

/* Before the first pthread_create() the program is its one kernel thread. */
static bool take_plain_process(struct wf_threads *s, struct wf_reading *r)
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
		wf_table_copy_stack(d, r);
	}
	s->threads = d;
	s->nr_threads = s->nr_alive = 1;
	return true;
}

static bool read_all(struct wf_threads *out, struct wf_reading r, size_t max_threads,
		     size_t max_events)
{
	const struct wf_layout *l = r.layout;
	const struct wf_target *t = r.target;
	bool is_ok = (r.object = malloc(WF_L_MAX_OBJECT));

	*out = (struct wf_threads){
		.is_started = wf_layout_fetch(l, t, l->runtime, WF_L_RT_STARTED),
		.now = wf_reading_now(),
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
			wf_table_read(out, &r, max_threads) && read_events(out, &r, max_events);
	free(r.object);
	free(r.kthreads);
	return is_ok;
}

bool wf_threads_read(struct wf_threads *out, const struct wf_layout *l, const struct wf_target *t,
		     size_t max_threads, size_t max_events, int64_t only)
{
	const struct wf_reading r = { .layout = l, .target = t, .only = only };

	return read_all(out, r, max_threads, max_events);
}

bool wf_threads_glance(struct wf_threads *out, const struct wf_layout *l, const struct wf_target *t,
		       size_t max_threads, const struct wf_threads_part *part)
{
	const struct wf_reading r = { .layout = l, .target = t, .is_glance = true, .part = part };

	return read_all(out, r, max_threads, 0);
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
