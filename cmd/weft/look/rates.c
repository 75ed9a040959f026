// SPDX-License-Identifier: Apache-2.0
/* Differences; see rates.h. */
#include "look/rates.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target/wait.h"

static int64_t kthread_ns(int pid, int tid)
{
	char path[64];
	long long ns = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", pid, tid);
	f = fopen(path, "re");
	if (!f)
		return -1;
	if (fscanf(f, "%lld", &ns) != 1)
		ns = -1;
	fclose(f);
	return ns;
}

#define PART_FROM 50000 /* threads; of fewer every look is at all */
#define PART_THREADS 12500

static unsigned parts_of(const struct wf_rates_look *before)
{
	unsigned nr = 1;

	while (before && before->threads.nr_threads > PART_FROM &&
	       before->threads.nr_threads / nr > PART_THREADS)
		nr *= 2;
	return nr;
}

bool wf_rates_look(struct wf_look *l, struct wf_rates_look *out, size_t max_threads,
		   const struct wf_rates_look *before)
{
	const struct wf_threads *s = &out->threads;
	struct wf_threads_part part = { .of = parts_of(before) };
	double began_s = wf_look_now_s();
	size_t room;

	*out = (struct wf_rates_look){ .nr_parts = part.of };
	if (part.of > 1) {
		part.nr = out->part = (before->part + 1) % part.of;
		part.before = &before->threads;
	}
	if (!wf_look_at(l, &out->threads, &out->kernel, max_threads, part.of > 1 ? &part : NULL))
		return false;
	out->at_s = wf_look_now_s();
	out->cost_s = out->at_s - began_s;
	room = s->nr_threads + 1;
	out->kthread_ns = calloc(s->nr_kthreads + 1, sizeof(*out->kthread_ns));
	out->order = calloc(room, sizeof(*out->order));
	out->cpu_percent = calloc(room, sizeof(*out->cpu_percent));
	out->switches_s = calloc(room, sizeof(*out->switches_s));
	if (!out->kthread_ns || !out->order || !out->cpu_percent || !out->switches_s)
		return wf_target_fail(&l->target, "out of memory");
	for (size_t i = 0; i < s->nr_kthreads; i++) {
		/* In a container the runtime's numbers are those in there. */
		out->kthread_ns[i] = l->target.inner_pid == l->target.pid
					     ? kthread_ns(l->target.pid, s->kthreads[i].tid)
					     : -1;
	}
	return true;
}

void wf_rates_done(struct wf_rates_look *r)
{
	wf_threads_done(&r->threads);
	free(r->kthread_ns);
	free(r->order);
	free(r->cpu_percent);
	free(r->switches_s);
	*r = (struct wf_rates_look){ 0 };
}

/* Rows are read in the order of their addresses, so *at only grows as d goes on. */
static const struct wf_dump_thread *find(const struct wf_threads *s, const struct wf_dump_thread *d,
					 size_t *at)
{
	while (*at < s->nr_threads && s->threads[*at].address < d->address)
		(*at)++;
	if (*at == s->nr_threads || s->threads[*at].address != d->address ||
	    s->threads[*at].tid != d->tid)
		return NULL;
	return &s->threads[*at];
}

/* CPU time of the kernel thread that carries d, or -1. */
static int64_t carrier_ns(const struct wf_rates_look *r, const struct wf_dump_thread *d)
{
	for (size_t i = 0; i < r->threads.nr_kthreads; i++) {
		if (r->threads.kthreads[i].tid == d->kernel_tid &&
		    r->threads.kthreads[i].cur == d->address)
			return r->kthread_ns[i];
	}
	return -1;
}

/* The runtime charges a thread when it leaves; of one that stayed on its kernel thread the kernel knows more. */
static double used_ns(const struct wf_rates_look *from, const struct wf_rates_look *to,
		      const struct wf_dump_thread *then, const struct wf_dump_thread *now)
{
	int64_t before, after;

	if (then && then->is_on_cpu && now->is_on_cpu && then->kernel_tid == now->kernel_tid &&
	    then->nr_switches == now->nr_switches) {
		before = carrier_ns(from, then);
		after = carrier_ns(to, now);
		if (before >= 0 && after >= before)
			return (double)(after - before);
	}
	return (double)now->run_ns - (then ? (double)then->run_ns : 0);
}

static const struct wf_rates_look
	*sorted; /* qsort() has no argument for it; the command has one thread */
static enum wf_rates_sort sort_key;

static double key_of(size_t i)
{
	const struct wf_dump_thread *d = &sorted->threads.threads[i];

	switch (sort_key) {
	case WF_RATES_BY_CPU:
		return sorted->cpu_percent[i];
	case WF_RATES_BY_SWITCHES:
		return sorted->switches_s[i];
	case WF_RATES_BY_WAIT:
		return d->wait_since ? -(double)d->wait_since : -INFINITY;
	default:
		return -(double)d->tid;
	}
}

static int by_key(const void *a, const void *b)
{
	size_t i = *(const size_t *)a, j = *(const size_t *)b;
	double x = key_of(i), y = key_of(j);

	if (x != y)
		return x > y ? -1 : 1;
	return i < j ? -1 : i > j;
}

static void count_states(const struct wf_look *l, const struct wf_threads *s, struct wf_rates *out)
{
	for (size_t i = 0; i < s->nr_threads; i++) {
		const struct wf_dump_thread *d = &s->threads[i];

		if (wf_waits_is_waiting(&l->layout, d))
			out->nr_waiting++;
		else if (d->state == l->layout.running)
			out->nr_running++;
		else
			out->nr_ready++;
	}
}

/* A thread that was not looked at this time keeps the figures that it had. */
static void fill_row(const struct wf_rates_look *from, struct wf_rates_look *to, size_t i,
		     size_t *at, double seconds)
{
	const struct wf_dump_thread *now = &to->threads.threads[i],
				    *then = find(&from->threads, now, at);
	double switches = (double)now->nr_switches - (then ? (double)then->nr_switches : 0);

	to->order[i] = i;
	if (then && then->read_at == now->read_at) {
		to->cpu_percent[i] = from->cpu_percent[*at];
		to->switches_s[i] = from->switches_s[*at];
		return;
	}
	if (to->nr_parts > 1 && then)
		seconds = (double)(now->read_at - then->read_at) / 1e9;
	to->cpu_percent[i] = fmax(0, used_ns(from, to, then, now)) / 1e7 / seconds;
	to->switches_s[i] = fmax(0, switches) / seconds;
}

void wf_rates_between(const struct wf_look *l, const struct wf_rates_look *from,
		      struct wf_rates_look *to, enum wf_rates_sort sort, struct wf_rates *out)
{
	const struct wf_threads *s = &to->threads;
	double seconds = to->at_s - from->at_s;
	size_t at = 0;

	*out = (struct wf_rates){ .interval_s = seconds };
	if (seconds <= 0)
		seconds = 1e-9;
	out->cpu_percent = fmax(0, to->kernel.cpu_s - from->kernel.cpu_s) / seconds * 100;
	for (int i = 0; i < WF_NR_COUNTS; i++)
		out->count_s[i] = fmax(0, (double)s->count[i] - (double)from->threads.count[i]) /
				  seconds;
	for (size_t i = 0; i < s->nr_threads; i++)
		fill_row(from, to, i, &at, seconds);
	count_states(l, s, out);
	if (sort == WF_RATES_UNSORTED)
		return;
	sorted = to;
	sort_key = sort;
	qsort(to->order, s->nr_threads, sizeof(*to->order), by_key);
}
