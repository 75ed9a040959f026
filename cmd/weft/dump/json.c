// SPDX-License-Identifier: Apache-2.0
/* A snapshot as JSON; see print.h. */
#include "dump/print.h"

#include <stdio.h>

#include "target/deadlock.h"
#include "text.h"

static void json_hex(struct wf_text_json *j, const char *name, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%#llx", (unsigned long long)value);
	wf_text_json_string(j, name, text);
}

static void json_frames(struct wf_text_json *j, const struct wf_dump_view *v,
			const struct wf_dump_thread *d)
{
	wf_text_json_begin(j, "frames", '[');
	for (size_t i = wf_view_first_frame(v, d); i < d->nr_frames; i++) {
		struct wf_unwind_name n;
		char function[WF_VIEW_NAME_BYTES];

		wf_unwind_name(v->unwind, &d->frames[i], &n);
		wf_text_json_begin(j, NULL, '{');
		json_hex(j, "pc", d->frames[i].pc);
		if (n.function)
			wf_text_json_string(
				j, "function",
				wf_view_function(function, sizeof(function), n.function));
		if (n.symbol)
			wf_text_json_string(j, "symbol", n.symbol);
		wf_text_json_number(j, "offset", (long long)n.offset);
		if (n.object)
			wf_text_json_string(j, "object", n.object);
		if (n.file) {
			wf_text_json_string(j, "file", n.file);
			wf_text_json_number(j, "line", n.line);
		}
		if (d->frames[i].is_guessed)
			wf_text_json_bool(j, "guessed", true);
		wf_text_json_end(j, '}');
	}
	wf_text_json_end(j, ']');
}

static void json_wait(struct wf_text_json *j, const struct wf_dump_view *v,
		      const struct wf_dump_thread *d)
{
	struct wf_wait_text w;

	if (!wf_view_is_waiting(v, d))
		return;
	wf_waits_describe(v->waits, d, &w);
	wf_waits_json(&w, j);
}

static void json_scope(struct wf_text_json *j, const struct wf_dump_view *v,
		       const struct wf_dump_scope *s)
{
	wf_text_json_string(j, "name", s->name);
	if (s->deadline)
		wf_text_json_number(j, "left_ms", (long long)(wf_view_left(v, s->deadline) * 1e3));
	wf_text_json_bool(j, "cancelled", s->is_cancelled);
}

static void json_tasks(struct wf_text_json *j, const struct wf_dump_view *v,
		       const struct wf_dump_reach *r)
{
	const struct wf_dump_thread *threads = v->threads->threads;

	if (r->runs_of != WF_GROUPS_NONE)
		wf_text_json_number(j, "runs_task_of", threads[r->runs_of].tid);
	if (!r->nr_waiting && !r->nr_taken)
		return;
	wf_text_json_number(j, "tasks_forked", (long long)r->nr_waiting + r->nr_taken);
	wf_text_json_begin(j, "tasks_stolen_by", '[');
	for (size_t i = r->first_taker; i != WF_GROUPS_NONE; i = v->groups->reaches[i].next_taker)
		wf_text_json_number(j, NULL, threads[i].tid);
	wf_text_json_end(j, ']');
}

static void json_fiber_of(struct wf_text_json *j, const char *name, const struct wf_dump_reach *r,
			  uint64_t address)
{
	if (address && address == r->own_fiber)
		wf_text_json_string(j, name, "thread");
	else if (address)
		json_hex(j, name, address);
}

static void json_fibers(struct wf_text_json *j, const struct wf_dump_view *v,
			const struct wf_dump_reach *r)
{
	if (!r->nr_fibers)
		return;
	wf_text_json_number(j, "nr_fibers", (long long)r->nr_fibers);
	wf_text_json_begin(j, "fibers", '[');
	for (size_t i = 0; i < r->nr_fibers_read; i++) {
		const struct wf_dump_fiber *f = &v->groups->fibers[r->first_fiber + i];

		wf_text_json_begin(j, NULL, '{');
		json_hex(j, "id", f->address);
		if (f->name[0])
			wf_text_json_string(j, "name", f->name);
		wf_text_json_string(j, "state", wf_layout_name(v->layout, "fiber", f->state));
		json_fiber_of(j, "resumed_by", r, f->resumer);
		if (f->stack.nr_frames)
			json_frames(j, v, &f->stack);
		wf_text_json_end(j, '}');
	}
	wf_text_json_end(j, ']');
}

static void json_reach(struct wf_text_json *j, const struct wf_dump_view *v,
		       const struct wf_dump_thread *d)
{
	const struct wf_dump_reach *r;

	if (!v->groups)
		return;
	r = &v->groups->reaches[d - v->threads->threads];
	if (r->group != WF_GROUPS_NONE)
		json_hex(j, "group", v->groups->groups[r->group].address);
	wf_text_json_begin(j, "scopes", '[');
	for (size_t i = 0; i < r->nr_scopes; i++) {
		const struct wf_dump_scope *s = &v->groups->scopes[r->first_scope + i];

		wf_text_json_begin(j, NULL, '{');
		json_scope(j, v, s);
		wf_text_json_bool(j, "shield", s->is_shield);
		wf_text_json_end(j, '}');
	}
	wf_text_json_end(j, ']');
	wf_text_json_bool(j, "overdue", wf_view_is_overdue(v, d));
	json_tasks(j, v, r);
	json_fibers(j, v, r);
}

static void json_groups(struct wf_text_json *j, const struct wf_dump_view *v)
{
	const struct wf_dump_thread *threads = v->threads->threads;

	wf_text_json_begin(j, "groups", '[');
	for (size_t i = 0; v->groups && i < v->groups->nr_groups; i++) {
		const struct wf_dump_group *g = &v->groups->groups[i];

		wf_text_json_begin(j, NULL, '{');
		json_hex(j, "id", g->address);
		json_scope(j, v, &g->scope);
		wf_text_json_string(j, "policy", wf_layout_name(v->layout, "policy", g->policy));
		wf_text_json_number(j, "threads_left", g->nr_left);
		if (g->limit)
			wf_text_json_number(j, "limit", g->limit);
		if (g->owner != WF_GROUPS_NONE)
			wf_text_json_number(j, "opened_by", threads[g->owner].tid);
		if (g->waiter != WF_GROUPS_NONE)
			wf_text_json_number(j, "waited_for_by", threads[g->waiter].tid);
		wf_text_json_end(j, '}');
	}
	wf_text_json_end(j, ']');
}

static void json_thread(struct wf_text_json *j, const struct wf_dump_view *v,
			const struct wf_dump_thread *d)
{
	wf_text_json_begin(j, NULL, '{');
	wf_text_json_number(j, "tid", d->tid);
	wf_text_json_string(j, "name", d->name);
	wf_text_json_string(j, "state", wf_layout_name(v->layout, "state", d->state));
	wf_text_json_bool(j, "preempted", d->is_preempted);
	if (d->is_on_cpu) {
		wf_text_json_bool(j, "direct", d->is_direct);
		wf_text_json_number(j, "kernel_tid", d->kernel_tid);
		if (d->call >= 0)
			wf_text_json_number(j, "call", d->call);
	}
	wf_text_json_number(j, "switches", (long long)d->nr_switches);
	json_hex(j, "signals_blocked", d->sig_mask);
	json_hex(j, "signals_pending", d->sig_pending);
	json_wait(j, v, d);
	json_reach(j, v, d);
	json_frames(j, v, d);
	wf_text_json_end(j, '}');
}

static void json_workers(struct wf_text_json *j, const struct wf_dump_view *v)
{
	const struct wf_threads *s = v->threads;

	wf_text_json_begin(j, "workers", '[');
	for (size_t i = 0; i < s->nr_workers; i++) {
		const struct wf_dump_worker *w = &s->workers[i];

		wf_text_json_begin(j, NULL, '{');
		wf_text_json_number(j, "index", w->index);
		wf_text_json_bool(j, "vacant", w->is_vacant);
		wf_text_json_bool(j, "rests", w->rests);
		if (w->kernel_tid)
			wf_text_json_number(j, "kernel_tid", w->kernel_tid);
		if (w->cur_tid)
			wf_text_json_number(j, "thread", w->cur_tid);
		wf_text_json_number(j, "queued", w->nr_queued);
		wf_text_json_number(j, "inbox", w->nr_inbox);
		wf_text_json_end(j, '}');
	}
	wf_text_json_end(j, ']');
	wf_text_json_begin(j, "kernel_threads", '[');
	for (size_t i = 0; i < s->nr_kthreads; i++) {
		const struct wf_dump_kthread *k = &s->kthreads[i];

		wf_text_json_begin(j, NULL, '{');
		wf_text_json_number(j, "tid", k->tid);
		wf_text_json_string(j, "role", wf_threads_roles[wf_threads_role(k)]);
		if (k->worker_index >= 0)
			wf_text_json_number(j, "worker", k->worker_index);
		if (k->cur_tid)
			wf_text_json_number(j, "thread", k->cur_tid);
		if (k->bound_tid)
			wf_text_json_number(j, "bound_to", k->bound_tid);
		if (k->call >= 0)
			wf_text_json_number(j, "call", k->call);
		wf_text_json_end(j, '}');
	}
	wf_text_json_end(j, ']');
}

static void json_events(struct wf_text_json *j, const struct wf_dump_view *v)
{
	wf_text_json_begin(j, "events", '[');
	for (size_t i = 0; i < v->threads->nr_events; i++) {
		const struct wf_dump_event *e = &v->threads->events[i];

		wf_text_json_begin(j, NULL, '{');
		wf_text_json_number(j, "cycles", (long long)e->cycles);
		wf_text_json_number(j, "kernel_tid", e->kernel_tid);
		wf_text_json_number(j, "thread", e->tid);
		wf_text_json_string(j, "event", wf_layout_name(v->layout, "event", e->event));
		json_hex(j, "a", e->a);
		json_hex(j, "b", e->b);
		wf_text_json_end(j, '}');
	}
	wf_text_json_end(j, ']');
}

static void json_circle(const struct wf_dump_thread *const *circle, size_t nr, void *arg)
{
	struct wf_text_json *j = arg;

	wf_text_json_begin(j, NULL, '[');
	for (size_t i = 0; i < nr; i++)
		wf_text_json_number(j, NULL, circle[i]->tid);
	wf_text_json_end(j, ']');
}

void wf_print_json(const struct wf_dump_view *v)
{
	struct wf_text_json j = { .out = stdout };
	const struct wf_threads *s = v->threads;
	double up = wf_view_uptime(v->target);

	wf_text_json_begin(&j, NULL, '{');
	wf_text_json_string(&j, "weft", WEFT_VERSION);
	wf_text_json_string(&j, "program", v->target->program);
	wf_text_json_number(&j, "pid", v->target->pid);
	if (v->target->inner_pid != v->target->pid)
		wf_text_json_number(&j, "pid_inside", v->target->inner_pid);
	if (up >= 0)
		wf_text_json_number(&j, "uptime_ms", (long long)(up * 1e3));
	if (v->target->core_signal)
		wf_text_json_number(&j, "signal", v->target->core_signal);
	if (!v->target->is_core)
		wf_text_json_number(&j, "stopped_us", v->target->stopped_us);
	wf_text_json_bool(&j, "started", s->is_started);
	wf_text_json_number(&j, "nr_threads", (long long)s->nr_alive);
	wf_text_json_number(&j, "nr_not_begun", (long long)s->nr_not_begun);
	json_hex(&j, "signals_pending", s->sig_pending);
	json_workers(&j, v);
	wf_text_json_begin(&j, "deadlocks", '[');
	wf_deadlock_find(s, v->waits, json_circle, &j);
	wf_text_json_end(&j, ']');
	wf_text_json_begin(&j, "threads", '[');
	for (size_t i = 0; i < s->nr_threads; i++) {
		if (!v->only || v->only == s->threads[i].tid)
			json_thread(&j, v, &s->threads[i]);
	}
	wf_text_json_end(&j, ']');
	json_groups(&j, v);
	json_events(&j, v);
	if (v->target->is_core && v->target->core_bytes < v->target->core_wanted)
		wf_text_json_number(&j, "core_cut_at", (long long)v->target->core_bytes);
	if (wf_view_spent(v->target))
		wf_text_json_string(&j, "incomplete", wf_view_spent(v->target));
	wf_text_json_end(&j, '}');
}
