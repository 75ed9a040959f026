// SPDX-License-Identifier: Apache-2.0
/*
 * The reader of `weft dump`, `top`, `metrics` and `trace` against targets that lie: a small synthetic one is damaged in a few
 * places, looked at, and printed, many thousand times. It may be refused or shown wrongly; but no read leaves the reader's memory (the
 * sanitizers watch), no target takes long, and what is printed is plain text.
 *
 * Usage: fuzz_layout [SECONDS]   (default: a fixed number of rounds). WEFT_SEED replays a run.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "dump/print.h"
#include "dump/tree.h"
#include "fuzz_target.h"
#include "look/openmetrics.h"
#include "look/top_show.h"
#include "numbers.h"
#include "trace/since.h"
#include "trace/trace.h"

#define ROUNDS 250
#define MANY_READS 20000 /* enough for the whole target, if it does not lie */

static long nr_traced;        /* targets with events */
static long nr_looked;        /* targets with threads in a look that stops nobody */
static long nr_grouped;       /* with all their groups */
static long nr_tasked;        /* with all their tasks */
static long nr_fibered;       /* with all their fibers */
static long nr_shown, nr_cut; /* targets that were not refused, and outputs that lack something */

/* Names of code are the target's as well. */

static const char bad_name[] = "f\033]0;x\007\302\205\377\"\\";

void wf_unwind_name(struct wf_unwind *u, const struct wf_dump_frame *f, struct wf_unwind_name *out)
{
	*out = (struct wf_unwind_name){
		.function = bad_name, .symbol = bad_name, .object = bad_name, .file = bad_name
	};
}

bool wf_unwind_data(struct wf_unwind *u, uint64_t address, const char **out_name,
		    uint64_t *out_offset)
{
	*out_name = bad_name;
	*out_offset = 1;
	return true;
}

/* Only what cannot make a terminal do something: no control characters (C1 neither), and valid UTF-8. */
static bool is_plain(const char *text, size_t len)
{
	const unsigned char *s = (const unsigned char *)text;

	for (size_t i = 0; i < len; i++) {
		size_t more = s[i] < 0xc2 ? 0 : s[i] < 0xe0 ? 1 : s[i] < 0xf0 ? 2 : 3;

		if ((s[i] < 0x20 && s[i] != '\n') || s[i] == 0x7f || (s[i] >= 0x80 && !more) ||
		    (s[i] == 0xc2 && s[i + 1] < 0xa0))
			return false;
		while (more--) {
			if ((s[++i] & 0xc0) != 0x80)
				return false;
		}
	}
	return true;
}

/* Also that what is missing is said to be. */
static bool check_printed(bool is_cut)
{
	static char text[1 << 20];
	long len;
	bool is_good;

	fflush(stdout);
	len = lseek(STDOUT_FILENO, 0, SEEK_CUR);
	is_good = len < (long)sizeof(text) - 4 && pread(STDOUT_FILENO, text, (size_t)len, 0) == len;
	text[is_good ? len : 0] = '\0';
	is_good = is_good && is_plain(text, (size_t)len);
	if (is_good && is_cut) {
		is_good = strstr(text, "Not all was read") || strstr(text, "\"incomplete\": ");
		nr_cut++;
	}
	if (!is_good)
		fprintf(stderr, "%.*s\n", (int)(len < 4000 ? len : 4000), text);
	(void)!ftruncate(STDOUT_FILENO, 0);
	lseek(STDOUT_FILENO, 0, SEEK_SET);
	return is_good;
}

/* The recorded events, in all formats: text is looked at, the others only have to be written. */
static bool look_at_trace(const struct wf_layout *l, struct wf_target *t)
{
	static FILE *nowhere;
	struct wf_since *since;
	struct wf_take k;
	bool is_good = true;

	if (!nowhere)
		nowhere = fopen("/dev/null", "w");
	if (wf_take_begin(&k, l, t) && wf_take_look(&k)) {
		since = wf_since_new(&k);
		is_good = since && wf_since_look(since, INT64_MAX / 2) && wf_since_look(since, 0);
		wf_since_free(since);
		nr_traced += k.rings.nr_events > 0;
		wf_take_names(&k);
		wf_take_finish(&k, (int64_t)(next_random() >> 17 >> (next_random() & 31)));
		is_good = is_good && wf_trace_text(stdout, &k) && wf_trace_json(stdout, &k);
		is_good = is_good && check_printed(false) && wf_trace_perfetto(nowhere, &k);
	}
	wf_take_done(&k);
	return is_good;
}

/* The looks without stopping: what look/look.c is for a real target. The clock is the test's, and nobody sleeps. */

static double clock_s;

double wf_look_now_s(void)
{
	return clock_s += 0.25;
}

int nanosleep(const struct timespec *time, struct timespec *left)
{
	return 0;
}

const char *wf_look_time(char out[32], double s)
{
	snprintf(out, 32, "%.3g s", s);
	return out;
}

const char *wf_numbers_text(char out[32], double value)
{
	snprintf(out, 32, "%.3g", value);
	return out;
}

bool wf_look_at(struct wf_look *l, struct wf_threads *out, struct wf_look_kernel *kernel,
		size_t max_threads, const struct wf_threads_part *part)
{
	*kernel = (struct wf_look_kernel){ .age_s = 1, .cpu_s = clock_s, .nr_tasks = NR_KTHREADS };
	return wf_threads_glance(out, &l->layout, &l->target, max_threads, part);
}

/* Two looks and the page between them, as text and as JSON; then the series. */
static bool look_without_stopping(const struct wf_layout *layout, const struct wf_target *target)
{
	struct wf_look l = { .nr_opened = 1, .target = *target, .layout = *layout };
	struct wf_text_json j = { .out = stdout };
	struct wf_rates_look looks[2] = { 0 };
	struct wf_shares shares = { 0 };
	struct wf_rates rates;
	bool is_good;

	l.target.inner_pid = 0; /* so that nobody asks the kernel about its threads */
	l.target.is_core = false;
	is_good = wf_rates_look(&l, &looks[0], 1000, NULL);
	if (is_good)
		wf_shares_look(&shares, &l.layout, &looks[0].threads, 0);
	is_good = is_good && wf_rates_look(&l, &looks[1], 1000, &looks[0]);
	if (is_good) {
		wf_shares_sample(&shares, &l);
		wf_rates_between(&l, &looks[0], &looks[1],
				 (enum wf_rates_sort)(next_random() % (WF_RATES_UNSORTED + 1)),
				 &rates);
		rates.shares = &shares;
		wf_top_show_text(&l, &looks[1], &rates, 1000);
		wf_top_show_json(&j, &l, &looks[1], &rates, 1000);
		wf_top_show_row(&l, &looks[1], &rates);
		is_good = wf_openmetrics_write(&l, &shares, stdout, WF_OPENMETRICS) &&
			  check_printed(false);
		nr_looked += looks[1].threads.nr_threads > 0;
	}
	wf_shares_done(&shares);
	wf_rates_done(&looks[0]);
	wf_rates_done(&looks[1]);
	return is_good;
}

/* As build_whole() has made them; a thread that is free is not read, nor what it has. */
static bool tells_of_tasks(const struct wf_groups *g, const struct wf_threads *s)
{
	bool is_right = s->nr_threads > 0;

	for (size_t i = 0; i < s->nr_threads; i++)
		is_right &= g->reaches[i].nr_waiting + 100 == s->threads[i].tid &&
			    (g->reaches[i].nr_taken || s->threads[i].tid != FORKER);
	return is_right;
}

/* The same; others' fibers are nobody's. */
static bool tells_of_fibers(const struct wf_groups *g, const struct wf_threads *s)
{
	bool is_right = s->nr_threads > 0 && g->nr_fibers == s->nr_threads;

	for (size_t i = 0; i < s->nr_threads && is_right; i++) {
		const struct wf_dump_reach *r = &g->reaches[i];
		const struct wf_dump_fiber *f = &g->fibers[r->first_fiber];

		is_right = r->nr_fibers == 1 && r->nr_fibers_read == 1 && r->own_fiber &&
			   f->state == (uint64_t)(s->threads[i].tid - 100) % 7 &&
			   strncmp(f->name, "name", 4) == 0 &&
			   (f->stack.copy_bytes > 0) == (f->state >= 2 && f->state <= 4);
	}
	return is_right;
}

static bool look(uint64_t reads)
{
	struct wf_target_map map = { .start = BASE,
				     .end = BASE + sizeof(image),
				     .path = (char *)"/x/libweft.so.0" };
	struct wf_target_lwp lwps[2] = {
		{ .tid = 500, .inner_tid = 500, .regs = { .known = 0x1ffff }, .call = 3 },
		{ .tid = 501, .inner_tid = 501, .regs = { .known = 0x1ffff }, .call = -1 },
	};
	struct wf_budget budget = { .reads = reads, .bytes = 64u << 20, .until_us = INT64_MAX };
	struct wf_target t = { .pid = 1,
			       .inner_pid = 1,
			       .is_core = true,
			       .budget = &budget,
			       .maps = &map,
			       .nr_maps = 1,
			       .lwps = lwps,
			       .nr_lwps = 2 };
	struct wf_threads s = { 0 };
	struct wf_groups groups = { 0 };
	struct wf_layout l = { 0 };
	struct wf_dump_view v = { .target = &t, .layout = &l, .threads = &s };
	struct wf_dump_frame frames[2] = { { .pc = 1 }, { .pc = 2 } };
	bool is_good = true;

	memcpy(t.program, bad_name, sizeof(bad_name));
	if (!wf_layout_read(&l, &t) || !wf_threads_read(&s, &l, &t, 1000, 50, 0) ||
	    !wf_groups_read(&groups, &l, &t, &s, 0))
		goto out;
	v.groups = &groups;
	v.waits = wf_waits_new(&t, &s, &l, NULL);
	nr_grouped += groups.nr_groups == NR_GROUPS && groups.nr_scopes;
	nr_tasked += tells_of_tasks(&groups, &s);
	nr_fibered += tells_of_fibers(&groups, &s);
	for (size_t i = 0; i < s.nr_threads && i < 4; i++) {
		s.threads[i].frames = malloc(sizeof(frames));
		memcpy(s.threads[i].frames, frames, sizeof(frames));
		s.threads[i].nr_frames = 2;
	}
	for (size_t i = 0; i < groups.nr_fibers && i < 4; i++) {
		groups.fibers[i].stack.frames = malloc(sizeof(frames));
		memcpy(groups.fibers[i].stack.frames, frames, sizeof(frames));
		groups.fibers[i].stack.nr_frames = 2;
	}
	nr_shown++;
	for (int way = 0; way < 5; way++) {
		v.is_waits = way == 4;
		v.is_grouped = way == 1 || v.is_waits;
		if (way == 2)
			wf_print_json(&v);
		else if (way == 3)
			wf_print_tree(&v);
		else
			wf_print_text(&v);
		is_good &= check_printed(wf_view_spent(&t));
	}
	is_good &= look_at_trace(&l, &t);
	/* They take as long as all else together. */
	if (!nr_looked || next_random() & 1)
		is_good &= look_without_stopping(&l, &t);
out:
	wf_waits_free(v.waits);
	wf_groups_done(&groups);
	wf_threads_done(&s);
	wf_layout_done(&l);
	return is_good;
}

/* One word of the first object of each kind, and one extreme number, at a time. */
static bool look_at_extremes(void)
{
	const struct {
		const char *at;
		size_t size;
	} objects[] = {
		{ whole.runtime, sizeof(whole.runtime) },
		{ whole.process, sizeof(whole.process) },
		{ whole.table, sizeof(whole.table) },
		{ whole.trace, sizeof(whole.trace) },
		{ whole.kthreads[0], whole.rows[FAKE_KTHREAD].size },
		{ whole.workers, whole.rows[FAKE_WORKER].size },
		{ whole.rings[0], sizeof(whole.rings[0]) },
		{ whole.places[0], whole.rows[FAKE_EVENT].size },
		{ whole.threads, whole.rows[FAKE_THREAD].size }, /* a free one */
		{ whole.threads + PARKED * whole.rows[FAKE_THREAD].size,
		  whole.rows[FAKE_THREAD].size },
		{ whole.scopes[0], sizeof(whole.scopes[0]) },
		{ whole.scope[0], sizeof(whole.scope[0]) },
		{ whole.groups[0], sizeof(whole.groups[0]) },
		{ whole.tasks[0], sizeof(whole.tasks[0]) },
		{ (const char *)whole.places_of_tasks, sizeof(uint64_t) * 4 },
		{ (const char *)&whole.fibers_all, sizeof(whole.fibers_all) },
		{ (const char *)&whole.fiber_current[PARKED], sizeof(uint64_t) },
		{ (const char *)whole.fiber_pages[PARKED], sizeof(whole.fiber_pages[PARKED]) },
		{ whole.fibers[PARKED], whole.rows[FAKE_FIBERS].size },
		{ whole.fiber[PARKED], whole.rows[FAKE_FIBER].size },
	};

	for (size_t o = 0; o < sizeof(objects) / sizeof(objects[0]); o++) {
		for (size_t i = 0; i + 8 <= objects[o].size; i += 8) {
			for (size_t e = 0; e < NR_EXTREME; e++) {
				image = whole;
				memcpy((char *)&image + (objects[o].at - (const char *)&whole) + i,
				       &extreme[e], 8);
				if (!look(MANY_READS))
					return false;
			}
		}
	}
	return true;
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	double until = argc > 1 ? now() + atof(argv[1]) : 0;
	const char *seed = getenv("WEFT_SEED");
	long rounds = 0;
	int file = memfd_create("printed", 0);

	if (seed && strtoull(seed, NULL, 0))
		random_state = strtoull(seed, NULL, 0);
	fprintf(stderr, "WEFT_SEED=%llu\n", (unsigned long long)random_state);
	if (file < 0 || dup2(file, STDOUT_FILENO) < 0)
		return 1;
	build_whole();
	image = whole;
	if (!look(MANY_READS) || !nr_shown || !nr_traced || !nr_looked || !nr_grouped ||
	    !nr_tasked || !nr_fibered) {
		fprintf(stderr, "the undamaged target is not shown\n");
		return 1;
	}
	build_circles();
	if (!look(MANY_READS) || nr_grouped != 2 || nr_tasked != 2 || nr_cut || nr_fibered != 1) {
		fprintf(stderr, "a circle is not shown, or is read for ever\n");
		return 1;
	}
	image = whole; /* of a weft from before there were groups */
	image.rows[FAKE_GROUP_NR].name[0] = '?';
	if (!look(MANY_READS) || nr_shown != 3 || nr_grouped != 2 || nr_tasked != 3 ||
	    nr_fibered != 2) {
		fprintf(stderr, "a target without groups is not shown\n");
		return 1;
	}
	image = whole; /* before fibers */
	image.rows[FAKE_FIBER_STATE].name[0] = '?';
	if (!look(MANY_READS) || nr_shown != 4 || nr_tasked != 4 || nr_fibered != 2) {
		fprintf(stderr, "a target without fibers is not shown\n");
		return 1;
	}
	if (!until && !look_at_extremes()) {
		fprintf(stderr, "an extreme number is shown wrongly\n");
		return 1;
	}
	while (until ? now() < until : rounds < ROUNDS) {
		damage();
		if (!look(next_random() % 4 ? MANY_READS : next_random() % 300)) {
			fprintf(stderr,
				"round %ld: what was printed is not plain text, or does not say that something is missing\n",
				rounds);
			return 1;
		}
		rounds++;
	}
	fprintf(stderr, "%ld damaged targets were looked at, %ld shown, %ld outputs cut\n", rounds,
		nr_shown, nr_cut);
	return !nr_cut;
}
