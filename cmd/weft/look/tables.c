// SPDX-License-Identifier: Apache-2.0
/* Rows and columns of the views; see live.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "look/tables.h"
#include "numbers.h"

#define MAX_OTHERS 500  /* kernel threads without a worker that are shown */
#define SHARES_FROM 100 /* on a narrower page what a thread waits for is worth more */
#define NR(list) (sizeof(list) / sizeof((list)[0]))

static const struct wf_threads *threads_of(const struct wf_live *l)
{
	return &l->looks[l->now].threads;
}

/* --- threads --- */

static const struct wf_dump_thread *thread(const struct wf_live *l, size_t row)
{
	return &threads_of(l)->threads[row];
}

static void thread_tid(struct wf_live *l, size_t row, char *out, size_t bytes)
{
	snprintf(out, bytes, "%lld", (long long)thread(l, row)->tid);
}

static double thread_tid_value(struct wf_live *l, size_t row)
{
	return -(double)thread(l, row)->tid;
}

static void thread_name(struct wf_live *l, size_t row, char *out, size_t bytes)
{
	snprintf(out, bytes, "%s", thread(l, row)->name);
}

static void thread_state(struct wf_live *l, size_t row, char *out, size_t bytes)
{
	snprintf(out, bytes, "%s", wf_layout_name(&l->look.layout, "state", thread(l, row)->state));
}

static void thread_cpu(struct wf_live *l, size_t row, char *out, size_t bytes)
{
	snprintf(out, bytes, "%.1f", l->looks[l->now].cpu_percent[row]);
}

static double thread_cpu_value(struct wf_live *l, size_t row)
{
	return l->looks[l->now].cpu_percent[row];
}

#define SHARE_COLUMN(name, part)                                                                   \
	static double thread_##name##_value(struct wf_live *l, size_t row)                         \
	{                                                                                          \
		const struct wf_share *s = row < l->shares.nr ? &l->shares.rows[row] : NULL;       \
                                                                                                   \
		return s ? wf_shares_percent(s, s->part) : NAN;                                    \
	}                                                                                          \
	static void thread_##name(struct wf_live *l, size_t row, char *out, size_t bytes)          \
	{                                                                                          \
		double share = thread_##name##_value(l, row);                                      \
                                                                                                   \
		snprintf(out, bytes, isnan(share) ? "-" : "%.0f", share);                          \
	}
SHARE_COLUMN(run, run)
SHARE_COLUMN(ready, ready)
SHARE_COLUMN(wait_share, wait)

static void thread_switches(struct wf_live *l, size_t row, char *out, size_t bytes)
{
	char number[32];

	snprintf(out, bytes, "%s", wf_numbers_text(number, l->looks[l->now].switches_s[row]));
}

static double thread_switches_value(struct wf_live *l, size_t row)
{
	return l->looks[l->now].switches_s[row];
}

/* "mutex 0x55..., held by thread 7" */
static void say_wait(struct wf_live *l, const struct wf_dump_thread *d, char *out, size_t bytes)
{
	struct wf_wait_text w;

	out[0] = '\0';
	if (!l->waits || !wf_waits_is_waiting(&l->look.layout, d))
		return;
	wf_waits_describe(l->waits, d, &w);
	snprintf(out, bytes, "%s%s%s", strcmp(w.kind, "none") == 0 ? "" : w.kind,
		 w.what[0] ? " " : "", w.what);
}

static double since(const struct wf_live *l, const struct wf_dump_thread *d)
{
	if (!wf_waits_is_waiting(&l->look.layout, d) || !d->wait_since ||
	    threads_of(l)->now < d->wait_since)
		return -1;
	return ((double)threads_of(l)->now - (double)d->wait_since) / 1e9;
}

static void say_since(const struct wf_live *l, const struct wf_dump_thread *d, char *out,
		      size_t bytes)
{
	double s = since(l, d);
	char text[32];

	snprintf(out, bytes, "%s", s < 0 ? "" : wf_look_time(text, s));
}

static void thread_since(struct wf_live *l, size_t row, char *out, size_t bytes)
{
	say_since(l, thread(l, row), out, bytes);
}

static double thread_since_value(struct wf_live *l, size_t row)
{
	return since(l, thread(l, row));
}

static void thread_wait(struct wf_live *l, size_t row, char *out, size_t bytes)
{
	say_wait(l, thread(l, row), out, bytes);
}

/* The text takes calls of the kernel to find out: by kind and object instead. */
static double thread_wait_value(struct wf_live *l, size_t row)
{
	const struct wf_dump_thread *d = thread(l, row);

	return wf_waits_is_waiting(&l->look.layout, d)
		       ? -((double)d->wait_kind + (double)d->wait_what * 0x1p-64)
		       : -1e9;
}

static size_t nr_threads(const struct wf_live *l)
{
	return l->now < 0 ? 0 : threads_of(l)->nr_threads;
}

static const struct wf_live_column thread_columns[] = {
	{ "TID", -10, thread_tid, thread_tid_value },
	{ "NAME", 15, thread_name, NULL },
	{ "STATE", 8, thread_state, NULL },
	{ "CPU%", -6, thread_cpu, thread_cpu_value },
	{ "RUN", -4, thread_run, thread_run_value, SHARES_FROM },
	{ "RDY", -4, thread_ready, thread_ready_value, SHARES_FROM },
	{ "WAIT", -4, thread_wait_share, thread_wait_share_value, SHARES_FROM },
	{ "SWITCHES/S", -10, thread_switches, thread_switches_value },
	{ "SINCE", -8, thread_since, thread_since_value },
	{ "WAITS FOR", 0, thread_wait, thread_wait_value },
};

/* --- groups, and those of them that are locks --- */

static const struct wf_live_group *group(const struct wf_live *l, size_t row)
{
	return &l->groups[row];
}

static void group_nr(struct wf_live *l, size_t row, char *out, size_t bytes)
{
	snprintf(out, bytes, "%zu", group(l, row)->nr);
}

static double group_nr_value(struct wf_live *l, size_t row)
{
	return (double)group(l, row)->nr;
}

static void group_state(struct wf_live *l, size_t row, char *out, size_t bytes)
{
	snprintf(out, bytes, "%s", wf_layout_name(&l->look.layout, "state", group(l, row)->state));
}

static void group_since(struct wf_live *l, size_t row, char *out, size_t bytes)
{
	say_since(l, group(l, row)->oldest, out, bytes);
}

static double group_since_value(struct wf_live *l, size_t row)
{
	return since(l, group(l, row)->oldest);
}

static void group_oldest(struct wf_live *l, size_t row, char *out, size_t bytes)
{
	const struct wf_dump_thread *d = group(l, row)->oldest;

	snprintf(out, bytes, "%lld %s", (long long)d->tid, d->name);
}

static void group_what(struct wf_live *l, size_t row, char *out, size_t bytes)
{
	const struct wf_live_group *g = group(l, row);

	if (!wf_waits_is_waiting(&l->look.layout, g->oldest))
		out[0] = '\0';
	else if (g->what || g->nr == 1)
		say_wait(l, g->oldest, out, bytes);
	else
		snprintf(out, bytes, "%s", wf_layout_name(&l->look.layout, "wait", g->kind));
}

static size_t nr_groups(const struct wf_live *l)
{
	return l->now < 0 ? 0 : l->nr_groups;
}

static const struct wf_live_column group_columns[] = {
	{ "THREADS", -8, group_nr, group_nr_value },
	{ "STATE", 8, group_state, NULL },
	{ "LONGEST", -8, group_since, group_since_value },
	{ "OF THREAD", 24, group_oldest, NULL },
	{ "WAIT FOR", 0, group_what, NULL },
};

static void lock_address(struct wf_live *l, size_t row, char *out, size_t bytes)
{
	snprintf(out, bytes, "%#llx", (unsigned long long)group(l, row)->what);
}

static void lock_owner(struct wf_live *l, size_t row, char *out, size_t bytes)
{
	const struct wf_dump_thread *d = group(l, row)->owner;

	snprintf(out, bytes, "%lld %s", (long long)d->tid, d->name);
}

static void lock_owner_state(struct wf_live *l, size_t row, char *out, size_t bytes)
{
	const struct wf_dump_thread *d = group(l, row)->owner;
	char wait[448];

	say_wait(l, d, wait, sizeof(wait));
	snprintf(out, bytes, "%s%s%s", wf_layout_name(&l->look.layout, "state", d->state),
		 wait[0] ? ": " : "", wait);
}

static const struct wf_live_column lock_columns[] = {
	{ "WAITERS", -8, group_nr, group_nr_value },
	{ "LONGEST", -8, group_since, group_since_value },
	{ "MUTEX", 18, lock_address, NULL },
	{ "HELD BY", 24, lock_owner, NULL },
	{ "WHICH IS", 0, lock_owner_state, NULL },
};

/* --- workers, then the kernel threads that carry none --- */

static const struct wf_dump_worker *worker(const struct wf_live *l, size_t row)
{
	return row < threads_of(l)->nr_workers ? &threads_of(l)->workers[row] : NULL;
}

/* The kernel thread of a row, or of its worker; NULL: a worker without one. */
static const struct wf_dump_kthread *kthread(const struct wf_live *l, size_t row)
{
	const struct wf_threads *s = threads_of(l);
	const struct wf_dump_worker *w = worker(l, row);
	size_t n = w ? 0 : row - s->nr_workers;

	for (size_t i = 0; i < s->nr_kthreads; i++) {
		const struct wf_dump_kthread *k = &s->kthreads[i];

		if (w && w->kernel_tid == k->tid)
			return k;
		if (!w && !k->worker && n-- == 0)
			return k;
	}
	return NULL;
}

static void worker_name(struct wf_live *l, size_t row, char *out, size_t bytes)
{
	const struct wf_dump_worker *w = worker(l, row);
	const struct wf_dump_kthread *k = kthread(l, row);

	if (w)
		snprintf(out, bytes, "worker %u", w->index);
	else
		snprintf(out, bytes, "%s", k ? wf_threads_roles[wf_threads_role(k)] : "?");
}

static double worker_name_value(struct wf_live *l, size_t row)
{
	return -(double)row;
}

static void worker_kthread(struct wf_live *l, size_t row, char *out, size_t bytes)
{
	const struct wf_dump_kthread *k = kthread(l, row);

	snprintf(out, bytes, k ? "%d" : "-", k ? k->tid : 0);
}

static double cpu_of(const struct wf_live *l, size_t row)
{
	const struct wf_rates_look *to = &l->looks[l->now], *from = &l->looks[!l->now];
	const struct wf_dump_kthread *k = kthread(l, row);
	int64_t after, before = -1;

	if (!k)
		return NAN;
	after = to->kthread_ns[k - to->threads.kthreads];
	for (size_t i = 0; i < from->threads.nr_kthreads; i++) {
		if (from->threads.kthreads[i].tid == k->tid)
			before = from->kthread_ns[i];
	}
	if (after < 0 || before < 0 || after < before || l->rates.interval_s <= 0)
		return NAN;
	return (double)(after - before) / 1e7 / l->rates.interval_s;
}

static double worker_cpu_value(struct wf_live *l, size_t row)
{
	double cpu = cpu_of(l, row);

	return isnan(cpu) ? -1 : cpu;
}

static void worker_cpu(struct wf_live *l, size_t row, char *out, size_t bytes)
{
	double cpu = cpu_of(l, row);

	snprintf(out, bytes, isnan(cpu) ? "-" : "%.1f", cpu);
}

static void worker_queue(struct wf_live *l, size_t row, char *out, size_t bytes)
{
	const struct wf_dump_worker *w = worker(l, row);

	snprintf(out, bytes, w ? "%u" : "", w ? w->nr_queued + w->nr_inbox : 0);
}

static double worker_queue_value(struct wf_live *l, size_t row)
{
	const struct wf_dump_worker *w = worker(l, row);

	return w ? (double)w->nr_queued + (double)w->nr_inbox : -1;
}

static void worker_does(struct wf_live *l, size_t row, char *out, size_t bytes)
{
	const struct wf_dump_worker *w = worker(l, row);
	const struct wf_dump_kthread *k = kthread(l, row);
	int64_t tid = k ? k->cur_tid : 0;
	const char *call = k && k->insys ? wf_waits_call_name((long)k->call_nr) : NULL;

	if (!tid && w && !w->rests)
		snprintf(out, bytes, w->is_vacant ? "is vacant" : "is idle");
	else if (!tid)
		snprintf(out, bytes, "%s", w ? "rests" : "");
	else
		snprintf(out, bytes, "thread %lld%s%s", (long long)tid, call ? " in " : "",
			 call ? call : "");
}

static size_t nr_workers(const struct wf_live *l)
{
	size_t nr = 0;

	if (l->now < 0)
		return 0;
	for (size_t i = 0; i < threads_of(l)->nr_kthreads && nr < MAX_OTHERS; i++)
		nr += !threads_of(l)->kthreads[i].worker;
	return nr + threads_of(l)->nr_workers;
}

static const struct wf_live_column worker_columns[] = {
	{ "ROLE", 22, worker_name, worker_name_value },
	{ "KERNEL TID", -10, worker_kthread, NULL },
	{ "CPU%", -6, worker_cpu, worker_cpu_value },
	{ "QUEUE", -6, worker_queue, worker_queue_value },
	{ "DOES", 0, worker_does, NULL },
};

/* --- processes --- */

static const struct wf_live_process *process(const struct wf_live *l, size_t row)
{
	return &l->processes[row];
}

static void process_pid(struct wf_live *l, size_t row, char *out, size_t bytes)
{
	snprintf(out, bytes, "%d", process(l, row)->look.target.pid);
}

static double process_pid_value(struct wf_live *l, size_t row)
{
	return -(double)process(l, row)->look.target.pid;
}

static void process_program(struct wf_live *l, size_t row, char *out, size_t bytes)
{
	const char *program = process(l, row)->look.target.program;
	const char *base = strrchr(program, '/');

	snprintf(out, bytes, "%s", base ? base + 1 : program);
}

static double process_value(const struct wf_live_process *p, size_t column)
{
	const struct wf_threads *s = &p->looks[p->now].threads;

	switch (column) {
	case 0:
		return p->rates.cpu_percent;
	case 1:
		return (double)s->nr_alive;
	case 2:
		return (double)p->rates.nr_running;
	case 3:
		return (double)p->rates.nr_ready;
	case 4:
		return (double)p->rates.nr_waiting;
	case 5:
		return (double)s->nr_workers;
	default:
		return p->rates.count_s[0];
	}
}

#define PROCESS_COLUMN(name, nr)                                                                   \
	static double process_##name##_value(struct wf_live *l, size_t row)                        \
	{                                                                                          \
		return process_value(process(l, row), nr);                                         \
	}                                                                                          \
	static void process_##name(struct wf_live *l, size_t row, char *out, size_t bytes)         \
	{                                                                                          \
		char text[32];                                                                     \
                                                                                                   \
		if ((nr) == 6)                                                                     \
			snprintf(out, bytes, "%s",                                                 \
				 wf_numbers_text(text, process_value(process(l, row), nr)));       \
		else                                                                               \
			snprintf(out, bytes, "%.*f", (nr) == 0,                                    \
				 process_value(process(l, row), nr));                              \
	}
PROCESS_COLUMN(cpu, 0)
PROCESS_COLUMN(threads, 1)
PROCESS_COLUMN(running, 2)
PROCESS_COLUMN(ready, 3)
PROCESS_COLUMN(waiting, 4)
PROCESS_COLUMN(workers, 5)
PROCESS_COLUMN(switches, 6)

static size_t nr_processes(const struct wf_live *l)
{
	return l->nr_processes;
}

static const struct wf_live_column process_columns[] = {
	{ "PID", -8, process_pid, process_pid_value },
	{ "PROGRAM", 20, process_program, NULL },
	{ "CPU%", -6, process_cpu, process_cpu_value },
	{ "THREADS", -8, process_threads, process_threads_value },
	{ "RUN", -6, process_running, process_running_value },
	{ "READY", -6, process_ready, process_ready_value },
	{ "WAIT", -8, process_waiting, process_waiting_value },
	{ "WORKERS", -8, process_workers, process_workers_value },
	{ "SWITCHES/S", -12, process_switches, process_switches_value },
};

const struct wf_live_table wf_tables[WF_LIVE_NR_VIEWS] = {
	[WF_LIVE_THREADS] = { "threads", thread_columns, NR(thread_columns), 3, nr_threads,
			      "no threads" },
	[WF_LIVE_GROUPS] = { "groups", group_columns, NR(group_columns), 0, nr_groups,
			     "no threads" },
	[WF_LIVE_LOCKS] = { "locks", lock_columns, NR(lock_columns), 0, nr_groups,
			    "no thread waits for a mutex whose owner is known" },
	[WF_LIVE_WORKERS] = { "workers", worker_columns, NR(worker_columns), 0, nr_workers,
			      "no workers yet" },
	[WF_LIVE_PROCESSES] = { "processes", process_columns, NR(process_columns), 2, nr_processes,
				"no process runs under weft that may be looked at" },
};

/* --- groups --- */

/* Of descriptors, calls for several and sleeps each thread has its own: those are not told apart. */
static void key_of(const struct wf_live *l, const struct wf_dump_thread *d,
		   struct wf_live_group *out)
{
	const struct wf_layout *y = &l->look.layout;

	*out = (struct wf_live_group){ .oldest = d, .nr = 1, .state = d->state };
	if (!wf_waits_is_waiting(y, d))
		return;
	out->kind = d->wait_kind;
	if (d->wait_kind == y->waits_futex || d->wait_kind == y->waits_call)
		out->what = d->wait_what;
}

static int by_group(const void *a, const void *b)
{
	const struct wf_live_group *x = a, *y = b;

	if (x->state != y->state)
		return x->state < y->state ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (x->what != y->what)
		return x->what < y->what ? -1 : 1;
	return 0;
}

void wf_tables_make_groups(struct wf_live *l)
{
	const struct wf_threads *s = threads_of(l);
	struct wf_live_group *g = calloc(s->nr_threads + 1, sizeof(*g));
	size_t nr = 0;

	free(l->groups);
	l->groups = g;
	l->nr_groups = 0;
	if (!g)
		return;
	for (size_t i = 0; i < s->nr_threads; i++) {
		const struct wf_dump_thread *d = &s->threads[i];

		key_of(l, d, &g[nr]);
		if (l->view == WF_LIVE_LOCKS) {
			const struct wf_dump_thread *owner = l->waits ? wf_waits_owner(l->waits, d)
								      : NULL;

			if (!owner || wf_waits_is_join(owner, d))
				continue; /* not a lock: it waits for the other one's end */
			g[nr].owner = owner;
		}
		nr++;
	}
	qsort(g, nr, sizeof(*g), by_group);
	for (size_t i = 0; i < nr; i++) {
		struct wf_live_group *last = &g[l->nr_groups - 1];

		if (!l->nr_groups || by_group(last, &g[i])) {
			g[l->nr_groups++] = g[i];
			continue;
		}
		last->nr++;
		if (since(l, g[i].oldest) > since(l, last->oldest))
			last->oldest = g[i].oldest;
	}
}
