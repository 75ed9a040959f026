// SPDX-License-Identifier: Apache-2.0
/* Taking events out of a target; see take.h. */
#include "trace/take.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "target/wait.h"
#include "text.h"

#define MAX_NAMED 50000u /* threads that are asked for their names */
#define PROBE_NS 2000000
#define RATE_BITS 32
#define MAX_MEMORY 100000u

static int64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* The two clocks at the same moment: the try that took least. */
static void read_both(uint64_t *cycles, int64_t *ns)
{
	uint64_t best = UINT64_MAX;

	*cycles = 0;
	*ns = 0;
	for (int i = 0; i < 5; i++) {
		uint64_t before = __builtin_ia32_rdtsc(), after;
		int64_t now = clock_ns(CLOCK_BOOTTIME);

		after = __builtin_ia32_rdtsc();
		if (after - before >= best)
			continue;
		best = after - before;
		*cycles = before + best / 2;
		*ns = now;
	}
}

/* 0: these two moments say nothing. */
static uint64_t rate_between(uint64_t c0, int64_t n0, uint64_t c1, int64_t n1)
{
	unsigned __int128 ns, rate;

	if (c1 <= c0 || n1 <= n0)
		return 0;
	/* from a process that may lie: their difference may be more than an int64_t holds */
	ns = (unsigned __int128)((uint64_t)n1 - (uint64_t)n0) << RATE_BITS;
	rate = ns / (c1 - c0);
	/* 50 MHz to 50 GHz */
	return rate > (20ull << RATE_BITS) || rate < (1ull << RATE_BITS) / 50 ? 0 : (uint64_t)rate;
}

/* By this machine's own clocks: right to a ten thousandth, and a process in another time namespace has no other. */
static uint64_t rate_here(void)
{
	const struct timespec pause = { .tv_nsec = PROBE_NS };
	uint64_t c0 = 0, c1 = 0;
	int64_t n0 = 0, n1 = 0;

	read_both(&c0, &n0);
	nanosleep(&pause, NULL);
	read_both(&c1, &n1);
	return rate_between(c0, n0, c1, n1);
}

static void set_clock(struct wf_take *k)
{
	const struct wf_ring_moment *a = &k->rings.began, *b = &k->rings.frozen;
	uint64_t here, whole;

	if (k->target->is_core) {
		k->cycles = a->cycles;
		k->ns = a->boottime;
		k->rate = b->cycles ? rate_between(a->cycles, a->boottime, b->cycles, b->boottime)
				    : 0;
		return;
	}
	here = rate_here();
	read_both(&k->cycles, &k->ns);
	whole = rate_between(a->cycles, a->boottime, k->cycles, k->ns);
	k->rate = whole > here - here / 100 && whole < here + here / 100 ? whole : here;
}

/* A core of a process that did not come to freeze them: the last event was not long before the runtime's last look. */
static void guess_rate(struct wf_take *k)
{
	const struct wf_layout *l = k->layout;
	int64_t last = (int64_t)wf_layout_fetch(l, k->target, l->runtime, WF_L_RT_COARSE_NOW);
	uint64_t cycles = k->rings.nr_events ? k->rings.events[k->rings.nr_events - 1].cycles : 0;

	k->rate = rate_between(k->rings.began.cycles, k->rings.began.monotonic, cycles, last);
	if (!k->rate)
		k->rate = (1ull << RATE_BITS) / 2;
}

int64_t wf_take_ns(const struct wf_take *k, uint64_t cycles)
{
	/* Damaged events may say anything: a difference of 64 bits, times 20 at most. */
	__int128 ns = (__int128)(int64_t)(cycles - k->cycles) * k->rate >> RATE_BITS;

	ns += k->ns;
	return ns < 0 ? 0 : ns > INT64_MAX / 2 ? INT64_MAX / 2 : (int64_t)ns;
}

bool wf_take_begin(struct wf_take *k, const struct wf_layout *l, struct wf_target *t)
{
	const char *name;

	*k = (struct wf_take){ .target = t, .layout = l };
	wf_rings_begin(&k->rings, l, t);
	if (!k->rings.is_armed)
		return wf_target_fail(t,
				      t->is_core ? "the program kept no events; start it with "
						   "'weft run --record'"
						 : "process %d keeps no events; start it with "
						   "'weft run --record', or use 'weft trace --arm'",
				      t->pid);
	k->nr_workers = (unsigned)wf_layout_fetch(l, t, l->runtime, WF_L_RT_NR_WORKERS);
	if (k->nr_workers > 1024)
		k->nr_workers = 1024;
	name = strrchr(t->program, '/');
	wf_text_clean(k->program, sizeof(k->program), name ? name + 1 : t->program);
	set_clock(k);
	return true;
}

bool wf_take_look(struct wf_take *k)
{
	return wf_rings_look(&k->rings, k->layout, k->target, UINT64_MAX);
}

static int by_key(const void *a, const void *b)
{
	const struct wf_take_name *x = a, *y = b;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return x->key < y->key ? -1 : x->key > y->key;
}

static const struct wf_take_name *find_name(const struct wf_take *k, unsigned kind, uint64_t key)
{
	const struct wf_take_name wanted = { .kind = kind, .key = key };

	return k->nr_names ? bsearch(&wanted, k->names, k->nr_names, sizeof(wanted), by_key) : NULL;
}

static void add_name(struct wf_take *k, unsigned kind, uint64_t key, const char *text)
{
	if (k->nr_names == k->names_room) {
		size_t room = k->names_room ? 2 * k->names_room : 256;
		void *p = realloc(k->names, room * sizeof(*k->names));

		if (!p)
			return; /* numbers will do */
		k->names = p;
		k->names_room = room;
	}
	k->names[k->nr_names] = (struct wf_take_name){ .kind = kind, .key = key };
	wf_text_clean(k->names[k->nr_names++].text, sizeof(k->names->text), text);
}

/* One name each: the first of those that are equal is the newest. */
static void sort_names(struct wf_take *k)
{
	size_t nr = 0;

	if (k->nr_names)
		qsort(k->names, k->nr_names, sizeof(*k->names), by_key);
	for (size_t i = 0; i < k->nr_names; i++) {
		if (!nr || by_key(&k->names[nr - 1], &k->names[i]) != 0)
			k->names[nr++] = k->names[i];
	}
	k->nr_names = nr;
}

void wf_take_names(struct wf_take *k)
{
	struct wf_threads s;
	struct wf_waits *w = NULL;
	struct wf_wait_text text;
	size_t known = k->nr_names;

	if (!wf_threads_glance(&s, k->layout, k->target, MAX_NAMED, NULL))
		goto out;
	w = wf_waits_new(k->target, &s, k->layout, NULL);
	for (size_t i = 0; i < s.nr_threads; i++) {
		const struct wf_dump_thread *d = &s.threads[i];
		const struct wf_take_name wanted = { .key = (uint64_t)d->tid };

		if (!(known && bsearch(&wanted, k->names, known, sizeof(wanted), by_key)))
			add_name(k, 0, (uint64_t)d->tid, d->name);
		if (!w || !d->wait_kind || !wf_waits_is_waiting(k->layout, d) || d->call >= 0)
			continue;
		wf_waits_describe(w, d, &text);
		if (text.what[0]) {
			char both[sizeof(text.kind) + sizeof(text.what) + 1];

			snprintf(both, sizeof(both), "%s %s", text.kind, text.what);
			add_name(k, d->wait_kind, d->wait_what, both);
		}
	}
	sort_names(k);
out:
	wf_waits_free(w);
	wf_threads_done(&s);
}

void wf_take_note_memory(struct wf_take *k)
{
	struct wf_take_memory *p;
	unsigned long pages;
	char path[64];
	FILE *f;

	if (k->target->is_core || k->nr_memory == MAX_MEMORY)
		return;
	snprintf(path, sizeof(path), "/proc/%d/statm", k->target->pid);
	f = fopen(path, "re");
	if (!f)
		return;
	p = realloc(k->memory, (k->nr_memory + 1) * sizeof(*p));
	if (p)
		k->memory = p;
	if (p && fscanf(f, "%*u %lu", &pages) == 1)
		p[k->nr_memory++] = (struct wf_take_memory){ clock_ns(CLOCK_BOOTTIME),
							     pages * (uint64_t)getpagesize() };
	fclose(f);
}

/* The first moment from which on all rings have everything. */
static uint64_t whole_from(const struct wf_rings *r)
{
	uint64_t from = 0;

	for (size_t i = 0; i < r->nr_rings; i++) {
		if (!r->rings[i].is_calls && r->rings[i].first > from)
			from = r->rings[i].first;
	}
	return from;
}

void wf_take_forget(struct wf_take *k)
{
	k->rings.nr_events = 0;
	k->rings.nr_lost = 0;
	for (size_t i = 0; i < k->rings.nr_rings; i++)
		k->rings.rings[i].first = 0;
}

static int by_tid(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Of which there are events. */
static unsigned count_threads(const struct wf_rings *r)
{
	int64_t *tids = malloc((r->nr_events + 1) * sizeof(*tids));
	unsigned nr = 0;

	for (size_t i = 0; tids && i < r->nr_events; i++)
		tids[i] = r->events[i].tid;
	if (tids)
		qsort(tids, r->nr_events, sizeof(*tids), by_tid);
	for (size_t i = 0; tids && i < r->nr_events; i++)
		nr += tids[i] > 0 && (!i || tids[i] != tids[i - 1]);
	free(tids);
	return nr;
}

void wf_take_finish(struct wf_take *k, int64_t last_ns)
{
	struct wf_rings *r = &k->rings;
	uint64_t from = whole_from(r);
	size_t first = 0;
	int64_t end;

	wf_rings_sort(r);
	if (!k->rate)
		guess_rate(k);
	end = r->nr_events ? wf_take_ns(k, r->events[r->nr_events - 1].cycles) : 0;
	while (first < r->nr_events &&
	       (r->events[first].cycles < from ||
		(last_ns && wf_take_ns(k, r->events[first].cycles) < end - last_ns)))
		first++;
	if (first)
		memmove(r->events, r->events + first, (r->nr_events - first) * sizeof(*r->events));
	r->nr_events -= first;
	k->nr_threads = count_threads(r);
	k->begin_ns = r->nr_events ? wf_take_ns(k, r->events[0].cycles) : 0;
	k->end_ns = end;
}

void wf_take_done(struct wf_take *k)
{
	wf_rings_done(&k->rings);
	free(k->names);
	free(k->memory);
	*k = (struct wf_take){ 0 };
}

const char *wf_take_thread(const struct wf_take *k, int64_t tid)
{
	const struct wf_take_name *n = find_name(k, 0, (uint64_t)tid);

	return n && n->text[0] ? n->text : NULL;
}

void wf_take_wait(const struct wf_take *k, uint64_t kind, uint64_t what, char *out, size_t bytes)
{
	const struct wf_take_name *n = kind && kind <= UINT32_MAX
					       ? find_name(k, (unsigned)kind, what)
					       : NULL;
	const char *name = wf_layout_name(k->layout, "wait", kind);

	if (n)
		snprintf(out, bytes, "%s", n->text);
	else if (strcmp(name, "fd") == 0)
		snprintf(out, bytes, "fd %" PRIu64, what);
	else if (strcmp(name, "futex") == 0)
		snprintf(out, bytes, "futex %#" PRIx64, what);
	else
		snprintf(out, bytes, "%s", name);
}
