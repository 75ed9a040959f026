// SPDX-License-Identifier: Apache-2.0
/* Counters at the end of a program; see stats.h. */
#include "obs/stats.h"
#include "base/fmt.h"
#include "sched/runtime.h"

#define STATS_BYTES 1024
#define COLUMN 16

static void line(struct wf_fmt *f, const char *name, uint64_t value)
{
	size_t begin = f->len;

	wf_fmt_str(f, "weft:   ");
	wf_fmt_str(f, name);
	while (f->len - begin < COLUMN + 8 && f->len + 1 < f->cap)
		wf_fmt_str(f, " ");
	wf_fmt_u64(f, value);
	wf_fmt_str(f, "\n");
}

/* The owners go on counting while we read: each number is one that was true a moment ago. */
static void add(struct wf_counters *sum, const struct wf_counters *c)
{
#define WF_COUNTER(member, name) sum->member += wf_load_relaxed(&c->member);
	WF_COUNTERS
#undef WF_COUNTER
}

/* Every generation of every slot was a thread; one of them is main, which nobody made. */
static uint64_t threads_made(void)
{
	uint64_t made = 0;

	for (uint32_t i = 0; i < wf_thread_slots(); i++)
		made += wf_load_relaxed(&wf_thread_slot(i)->generation);
	return made ? made - 1 : 0;
}

WF_NOINLINE void wf_stats_print(const struct wf_stats_gate *gate)
{
	static char text[STATS_BYTES]; /* the process ends: on whatever small stack that is */
	struct wf_counters sum = { 0 };
	uint32_t nr_kthreads = wf_load_acquire(&wf_rt.nr_kthreads);
	struct wf_fmt f;

	for (uint32_t i = 0; i < nr_kthreads; i++)
		add(&sum, &wf_rt.kthreads[i]->count);
	wf_fmt_init(&f, text, sizeof(text));
	wf_fmt_str(&f, "weft: statistics of process ");
	wf_fmt_i64(&f, (int)sys0(__NR_getpid));
	wf_fmt_str(&f, wf_load_acquire(&wf_rt.started) ? "\n" : ", which made no thread\n");
	line(&f, "threads made", threads_made());
#define WF_COUNTER(member, name) line(&f, name, sum.member);
	WF_COUNTERS
#undef WF_COUNTER
	line(&f, "workers", wf_rt.nr_workers);
	line(&f, "kernel threads", nr_kthreads);
	if (gate) {
		line(&f, "sites patched", gate->patched);
		line(&f, "sites left", gate->left);
	}
	(void)sys_write(2, text, f.len);
}
