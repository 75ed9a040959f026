// SPDX-License-Identifier: Apache-2.0
/* A snapshot as text; see print.h. */
#include "dump/fibers.h"
#include "dump/frames.h"
#include "dump/print.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "target/deadlock.h"
#include "text.h"

#define MOST_NAMED 4 /* of those who have stolen tasks of a thread */
#define TIDS_PER_GROUP 8

static const char *clean(char *out, size_t bytes, const char *from)
{
	return wf_text_clean(out, bytes, from);
}

/* "1,234,567" */
static const char *grouped(char out[32], unsigned long long n)
{
	char digits[24];
	int len = snprintf(digits, sizeof(digits), "%llu", n), to = 0;

	for (int i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			out[to++] = ',';
		out[to++] = digits[i];
	}
	out[to] = '\0';
	return out;
}

static const char *plural(size_t n)
{
	return n == 1 ? "" : "s";
}

const char *wf_print_seconds(char out[32], double s)
{
	if (s < 0)
		s = 0;
	if (s < 1)
		snprintf(out, 32, "%.0f ms", s * 1e3);
	else if (s < 120)
		snprintf(out, 32, "%.1f s", s);
	else if (s < 7200)
		snprintf(out, 32, "%.0f min", s / 60);
	else
		snprintf(out, 32, "%.1f h", s / 3600);
	return out;
}

/* The state in the words of somebody who knows threads, but not this scheduler. */
static void describe_state(const struct wf_dump_view *v, const struct wf_dump_thread *d, char *out,
			   size_t bytes)
{
	const char *state = wf_layout_name(v->layout, "state", d->state), *call;

	if (d->is_on_cpu && d->call >= 0) {
		call = wf_waits_call_name(d->call);
		snprintf(out, bytes, call ? "in call %ld (%s)" : "in call %ld", d->call, call);
	} else if (strcmp(state, "ready") == 0 && d->is_preempted) {
		snprintf(out, bytes, "preempted, ready");
	} else if (strcmp(state, "ready") == 0 && !d->nr_switches) {
		snprintf(out, bytes, "ready, has not run yet");
	} else {
		snprintf(out, bytes, "%s", state);
	}
}

static void print_signals(const char *what, uint64_t set)
{
	if (!set)
		return;
	printf("%s:", what);
	/* A mask of nearly all says more by what it leaves open. */
	for (int s = 1; s <= 64; s++) {
		const char *name = s < 32 ? sigabbrev_np(s) : NULL;

		if (!(set & (1ull << (s - 1))))
			continue;
		if (name)
			printf(" %s", name);
		else
			printf(" %d", s);
	}
	printf("\n");
}

/* ", waits for mutex m, held by thread 7": of one thread; of many, only the kind. */
static void print_wait(const struct wf_wait_text *w, bool is_one)
{
	char text[512];

	clean(text, sizeof(text), w->what);
	if (strcmp(w->kind, "sleep") == 0)
		printf(is_one ? " sleeps" : " sleep");
	else if (strcmp(w->kind, "join") == 0 && !is_one)
		printf(" wait for the ends of threads");
	else if (strcmp(w->kind, "join") == 0)
		printf(w->owner ? " waits for the %s" : " waits for the end of a thread, %s", text);
	else if (strcmp(w->kind, "recv") == 0)
		printf(is_one ? " receives from %s" : " receive from channels", text);
	else if (strcmp(w->kind, "send") == 0)
		printf(is_one ? " sends to %s" : " send to channels", text);
	else if (is_one)
		printf(" waits for %s%s%s", w->kind, text[0] ? " " : "", text);
	else
		printf(" wait for %s", w->kind);
}

static void print_reason(const struct wf_dump_view *v, const struct wf_dump_thread *d)
{
	struct wf_wait_text w;
	char time[32];

	if (!wf_view_is_waiting(v, d))
		return;
	wf_waits_describe(v->waits, d, &w);
	if (strcmp(w.kind, "none") == 0)
		return;
	printf(",");
	print_wait(&w, true);
	if (w.since_s >= 0)
		printf(", for %s", wf_print_seconds(time, w.since_s));
	if (w.has_deadline)
		printf(w.left_s >= 0 ? ", %s left" : ", deadline passed",
		       wf_print_seconds(time, w.left_s));
}

static const char *mask_text(char out[24], uint64_t mask)
{
	snprintf(out, 24, "%#llx", (unsigned long long)mask);
	return out;
}

void wf_print_thread(const struct wf_dump_view *v, const struct wf_dump_thread *d, const char *mark)
{
	char name[64], state[64];

	describe_state(v, d, state, sizeof(state));
	printf("thread %lld", (long long)d->tid);
	if (d->name[0])
		printf(" \"%s\"", clean(name, sizeof(name), d->name));
	printf(": %s%s", mark, state);
	if (d->is_on_cpu)
		printf(" on kernel thread %d", d->kernel_tid);
	print_reason(v, d);
}

void wf_print_tasks(const struct wf_dump_view *v, const struct wf_dump_thread *d)
{
	const struct wf_dump_reach *r = &v->groups->reaches[d - v->threads->threads];
	const struct wf_dump_thread *threads = v->threads->threads;
	const unsigned nr = r->nr_waiting + r->nr_taken;
	char name[2 * sizeof(threads->name)];
	unsigned nr_named = 0;

	if (nr)
		printf("; %u task%s forked", nr, nr == 1 ? "" : "s");
	if (r->nr_taken)
		printf(", %u stolen by", r->nr_taken);
	for (size_t i = r->first_taker; i != WF_GROUPS_NONE && nr_named < MOST_NAMED;
	     i = v->groups->reaches[i].next_taker)
		printf("%s %s", nr_named++ ? "," : "", clean(name, sizeof(name), threads[i].name));
	if (r->nr_taken > nr_named)
		printf(" and %u more", r->nr_taken - nr_named);
	if (r->runs_of != WF_GROUPS_NONE)
		printf("; at a task of thread %lld \"%s\"", (long long)threads[r->runs_of].tid,
		       clean(name, sizeof(name), threads[r->runs_of].name));
}

static void print_thread(const struct wf_dump_view *v, const struct wf_dump_thread *d)
{
	char mask[24];

	printf("\n");
	wf_print_thread(v, d, "");
	if (v->groups)
		wf_print_tasks(v, d);
	printf("\n");
	if (d->sig_mask)
		printf("    signals blocked: %s\n", mask_text(mask, d->sig_mask));
	print_signals("    signals pending", d->sig_pending);
	wf_frames_print(v, d, 4);
	if (v->groups)
		wf_fibers_print(v, d);
}

/* By what is shown: the runtime's own frames may differ among threads that wait in the same way. */
static int compare_stacks(const struct wf_dump_thread *a, const struct wf_dump_thread *b)
{
	size_t nr_a = a->nr_frames - a->nr_runtime, nr_b = b->nr_frames - b->nr_runtime;

	if (a->state != b->state)
		return a->state < b->state ? -1 : 1;
	if (a->wait_kind != b->wait_kind)
		return a->wait_kind < b->wait_kind ? -1 : 1;
	if (a->is_preempted != b->is_preempted)
		return a->is_preempted ? 1 : -1;
	if (a->is_on_cpu != b->is_on_cpu)
		return a->is_on_cpu ? 1 : -1;
	if (nr_a != nr_b)
		return nr_a < nr_b ? -1 : 1;
	for (size_t i = 0; i < nr_a; i++) {
		uint64_t x = a->frames[a->nr_runtime + i].pc, y = b->frames[b->nr_runtime + i].pc;

		if (x != y)
			return x < y ? -1 : 1;
	}
	return 0;
}

static int by_stack(const void *a, const void *b)
{
	const struct wf_dump_thread *x = *(const struct wf_dump_thread *const *)a;
	const struct wf_dump_thread *y = *(const struct wf_dump_thread *const *)b;
	int order = compare_stacks(x, y);

	return order ? order : (x->tid > y->tid) - (x->tid < y->tid);
}

struct group {
	const struct wf_dump_thread **members;
	size_t nr;
	double waited_s; /* together; 0 if only their number counts */
};

static int by_size(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	if (x->waited_s != y->waited_s)
		return x->waited_s > y->waited_s ? -1 : 1;
	return x->nr > y->nr ? -1 : x->nr < y->nr;
}

static double waited_s(const struct wf_dump_view *v, const struct wf_dump_thread *d)
{
	double s = ((double)v->threads->now - (double)d->wait_since) / 1e9;

	return d->wait_since && s > 0 ? s : 0;
}

static void print_group(const struct wf_dump_view *v, const struct group *g)
{
	const struct wf_dump_thread *d = g->members[0], *oldest = d;
	char state[64], number[32];

	if (g->nr == 1) {
		print_thread(v, d);
		return;
	}
	for (size_t i = 0; i < g->nr; i++) {
		if (g->members[i]->wait_since && g->members[i]->wait_since < oldest->wait_since)
			oldest = g->members[i];
	}
	describe_state(v, d, state, sizeof(state));
	printf("\n%s threads: %s", grouped(number, g->nr), state);
	if (wf_view_is_waiting(v, d)) {
		struct wf_wait_text w;
		char time[32];

		wf_waits_describe(v->waits, oldest, &w);
		printf(",");
		print_wait(&w, false);
		if (g->waited_s > 0)
			printf(", together for %s", wf_print_seconds(time, g->waited_s));
		if (w.since_s >= 0)
			printf(", the longest for %s", wf_print_seconds(time, w.since_s));
	}
	printf("\n    threads");
	for (size_t i = 0; i < g->nr && i < TIDS_PER_GROUP; i++)
		printf(" %lld", (long long)g->members[i]->tid);
	printf(g->nr > TIDS_PER_GROUP ? " ...\n" : "\n");
	wf_frames_print(v, d, 4);
}

static void print_groups(const struct wf_dump_view *v)
{
	const struct wf_threads *s = v->threads;
	const struct wf_dump_thread **order = calloc(s->nr_threads + 1, sizeof(*order));
	struct group *groups = calloc(s->nr_threads + 1, sizeof(*groups));
	size_t nr = 0, nr_shown = 0;

	for (size_t i = 0; order && groups && i < s->nr_threads; i++) {
		if (!v->is_waits || wf_view_is_waiting(v, &s->threads[i]))
			order[nr_shown++] = &s->threads[i];
	}
	if (nr_shown)
		qsort(order, nr_shown, sizeof(*order), by_stack);
	for (size_t i = 0; i < nr_shown; i++) {
		if (!i || compare_stacks(order[i - 1], order[i]))
			groups[nr++] = (struct group){ .members = &order[i] };
		groups[nr - 1].nr++;
		if (v->is_waits)
			groups[nr - 1].waited_s += waited_s(v, order[i]);
	}
	if (nr)
		qsort(groups, nr, sizeof(*groups), by_size);
	for (size_t i = 0; i < nr; i++)
		print_group(v, &groups[i]);
	free(groups);
	free(order);
}

static void print_workers(const struct wf_dump_view *v)
{
	const struct wf_threads *s = v->threads;

	for (size_t i = 0; i < s->nr_workers; i++) {
		const struct wf_dump_worker *w = &s->workers[i];

		printf("worker %u: ", w->index);
		if (w->is_vacant || !w->kernel_tid)
			printf("vacant");
		else
			printf("on kernel thread %d", w->kernel_tid);
		if (w->cur_tid)
			printf(", runs thread %lld", (long long)w->cur_tid);
		else if (w->kernel_tid)
			printf(w->rests ? ", rests" : ", idle");
		printf(", %u queued, %u in the inbox\n", w->nr_queued, w->nr_inbox);
	}
	for (size_t i = 0; i < s->nr_kthreads; i++) {
		const struct wf_dump_kthread *k = &s->kthreads[i];
		const char *call = wf_waits_call_name(k->call);

		printf("kernel thread %d: %s", k->tid, wf_threads_roles[wf_threads_role(k)]);
		if (k->call >= 0)
			printf(call ? ", in the kernel in %s" : ", in the kernel in call%.0s %ld",
			       call ? call : "", k->call);
		if (k->bound_tid && !k->cur_tid)
			printf(", keeps itself for thread %lld", (long long)k->bound_tid);
		if (k->cur_tid)
			printf(", has thread %lld", (long long)k->cur_tid);
		printf("\n");
	}
}

static void print_circle(const struct wf_dump_thread *const *circle, size_t nr, void *arg)
{
	const struct wf_dump_view *v = arg;

	printf("\n%sDEADLOCK of %zu threads:%s\n", wf_text_tone(WF_TEXT_BAD), nr, wf_text_plain());
	for (size_t i = 0; i < nr; i++) {
		struct wf_wait_text w;
		char name[64];

		wf_waits_describe(v->waits, circle[i], &w);
		printf("    thread %lld \"%s\"", (long long)circle[i]->tid,
		       clean(name, sizeof(name), circle[i]->name));
		print_wait(&w, true);
		printf("\n");
	}
}

static bool is_ours(const struct wf_threads *s, int tid)
{
	for (size_t i = 0; i < s->nr_kthreads; i++) {
		if (s->kthreads[i].tid == tid)
			return true;
	}
	return false;
}

static void print_foreign(const struct wf_dump_view *v)
{
	const struct wf_target *t = v->target;

	for (size_t i = 0; v->threads->is_started && i < t->nr_lwps; i++) {
		char name[64];

		if (!is_ours(v->threads, t->lwps[i].tid))
			printf("kernel thread %d: not weft's%s%s\n", t->lwps[i].tid,
			       t->lwps[i].name[0] ? ", " : "",
			       clean(name, sizeof(name), t->lwps[i].name));
	}
}

static void print_cut(const struct wf_target *t)
{
	char bytes[32], wanted[32];

	if (t->is_core && t->core_bytes < t->core_wanted)
		printf("the core file is cut after %s of %s bytes: what lies behind is missing\n",
		       grouped(bytes, t->core_bytes), grouped(wanted, t->core_wanted));
}

void wf_print_head(const struct wf_dump_view *v)
{
	const struct wf_threads *s = v->threads;
	char program[512], number[32], time[32];
	size_t nr_kthreads = s->is_started ? s->nr_kthreads : v->target->nr_lwps;
	double up = wf_view_uptime(v->target);

	printf("%s, process %d", clean(program, sizeof(program), v->target->program),
	       v->target->pid);
	if (up >= 0)
		printf(", up %s", wf_print_seconds(time, up));
	if (v->target->core_signal)
		printf(", ended by SIG%s", sigabbrev_np(v->target->core_signal)
						   ? sigabbrev_np(v->target->core_signal)
						   : "?");
	printf(": %zu worker%s, %zu kernel thread%s, %s thread%s\n", s->nr_workers,
	       plural(s->nr_workers), nr_kthreads, plural(nr_kthreads),
	       grouped(number, s->nr_alive), plural(s->nr_alive));
	if (s->nr_not_begun)
		printf("%s more spawned by weft_thread_spawn(): no pthread runs %s yet\n",
		       grouped(number, s->nr_not_begun), s->nr_not_begun == 1 ? "it" : "them");
	if (!v->target->is_core)
		printf("the process was stopped for %.1f ms\n",
		       (double)v->target->stopped_us / 1e3);
	if (v->target->inner_pid != v->target->pid)
		printf("in a PID namespace of its own: there it is process %d, and threads have "
		       "the numbers that they have there\n",
		       v->target->inner_pid);
	print_cut(v->target);
	if (!s->is_started)
		printf("weft has not begun: the program has made no thread yet\n");
}

void wf_print_tail(const struct wf_dump_view *v)
{
	const struct wf_threads *s = v->threads;
	char number[32];

	if (s->nr_alive > s->nr_threads && !v->only)
		printf("\n... and %s more threads; see --limit\n",
		       grouped(number, s->nr_alive - s->nr_threads));
	wf_print_events(v);
	if (wf_view_spent(v->target))
		printf("\nNot all was read: the limit of %s for one dump was reached. Is this "
		       "process what it seems?\n",
		       wf_view_spent(v->target));
}

void wf_print_text(const struct wf_dump_view *v)
{
	const struct wf_threads *s = v->threads;

	wf_print_head(v);
	if (v->is_waits) {
		wf_deadlock_find(s, v->waits, print_circle, (void *)v);
	} else if (!v->only) {
		print_workers(v);
		print_foreign(v);
		print_signals("signals pending for the process", s->sig_pending);
		wf_deadlock_find(s, v->waits, print_circle, (void *)v);
	}
	if (v->is_grouped) {
		print_groups(v);
	} else {
		for (size_t i = 0; i < s->nr_threads; i++) {
			if (!v->only || v->only == s->threads[i].tid)
				print_thread(v, &s->threads[i]);
		}
	}
	wf_print_tail(v);
}
