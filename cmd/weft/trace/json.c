// SPDX-License-Identifier: Apache-2.0
/*
 * A trace as JSON, in the format of chrome://tracing; see trace.h.
 *
 * Process 0 is the workers, whose threads are the lanes; the program's own process has its threads with their waits and
 * calls, and three counters. Wakes are left out: there is nothing to show them with.
 */
#include "trace/counted.h"
#include "trace/trace.h"

#include <stdlib.h>

#include "target/wait.h"
#include "text.h"

struct writer {
	FILE *out;
	const struct wf_take *take;
	struct wf_text_json j;
	struct wf_counted counted;
	bool *is_open; /* of each lane: something has begun there */
	unsigned nr_lanes;
	bool is_bad;
	int64_t last_ns;
};

static int process_of(const struct writer *w)
{
	return w->take->target->inner_pid;
}

static void begin(struct writer *w, const char *phase, int process, int64_t thread)
{
	wf_text_json_begin(&w->j, NULL, '{');
	wf_text_json_string(&w->j, "ph", phase);
	wf_text_json_number(&w->j, "pid", process);
	wf_text_json_number(&w->j, "tid", thread);
}

static void end(struct writer *w)
{
	wf_text_json_end(&w->j, '}');
}

/* Microseconds since the trace began. */
static void put_time(struct writer *w, int64_t ns)
{
	wf_text_json_real(&w->j, "ts", (double)(ns - w->take->begin_ns) / 1e3);
}

static void name_one(struct writer *w, const char *what, int process, int64_t thread,
		     const char *name)
{
	begin(w, "M", process, thread);
	wf_text_json_string(&w->j, "name", what);
	wf_text_json_begin(&w->j, "args", '{');
	wf_text_json_string(&w->j, "name", name);
	wf_text_json_end(&w->j, '}');
	end(w);
}

static const char *name_of(const struct writer *w, int64_t tid, char buf[32])
{
	const char *name = wf_take_thread(w->take, tid);

	if (name)
		return name;
	snprintf(buf, 32, "thread %lld", (long long)tid);
	return buf;
}

static void end_lane(struct writer *w, unsigned lane)
{
	if (!w->is_open[lane])
		return;
	begin(w, "E", 0, lane);
	put_time(w, w->last_ns);
	end(w);
	w->is_open[lane] = false;
}

static bool has_lane(struct writer *w, unsigned lane)
{
	bool *p;

	if (lane < w->nr_lanes)
		return true;
	p = realloc(w->is_open, lane + 1);
	if (!p) {
		w->is_bad = true;
		return false;
	}
	w->is_open = p;
	for (; w->nr_lanes <= lane; w->nr_lanes++) {
		char name[32];

		p[w->nr_lanes] = false;
		snprintf(name, sizeof(name),
			 w->nr_lanes < w->take->nr_workers ? "worker %u" : "bound thread %u",
			 w->nr_lanes);
		name_one(w, "thread_name", 0, w->nr_lanes, name);
	}
	return true;
}

static void write_switch(struct writer *w, const struct wf_story_item *i)
{
	char buf[32];

	if (!has_lane(w, i->cpu))
		return;
	end_lane(w, i->cpu);
	if (!i->tid)
		return;
	begin(w, "B", 0, i->cpu);
	put_time(w, i->ns);
	wf_text_json_string(&w->j, "name", name_of(w, i->tid, buf));
	wf_text_json_begin(&w->j, "args", '{');
	wf_text_json_number(&w->j, "tid", i->tid);
	wf_text_json_end(&w->j, '}');
	end(w);
	w->is_open[i->cpu] = true;
}

static void write_slice(struct writer *w, const struct wf_story_item *i, const char *phase,
			const char *category, const char *name)
{
	begin(w, phase, process_of(w), i->tid);
	put_time(w, i->ns);
	if (category)
		wf_text_json_string(&w->j, "cat", category);
	if (name)
		wf_text_json_string(&w->j, "name", name);
	if (phase[0] == 'i')
		wf_text_json_string(&w->j, "s", "t");
	if (i->has_value) {
		wf_text_json_begin(&w->j, "args", '{');
		wf_text_json_number(&w->j, "returned", (long long)i->a);
		wf_text_json_end(&w->j, '}');
	}
	end(w);
}

static void write_counter(void *arg, enum wf_counted_what c, int64_t ns, uint64_t value)
{
	struct writer *w = arg;

	begin(w, "C", process_of(w), 0);
	put_time(w, ns);
	wf_text_json_string(&w->j, "name", wf_counted_names[c]);
	wf_text_json_begin(&w->j, "args", '{');
	wf_text_json_number(&w->j, c == WF_COUNTED_MEMORY ? "bytes" : "threads", (long long)value);
	wf_text_json_end(&w->j, '}');
	end(w);
}

static void write_item(void *arg, const struct wf_story_item *i)
{
	struct writer *w = arg;
	const char *call;
	char text[128];

	wf_counted_before(&w->counted, i);
	w->last_ns = i->ns;
	switch (i->kind) {
	case WF_STORY_SWITCH:
		write_switch(w, i);
		break;
	case WF_STORY_WAKE:
		break;
	case WF_STORY_WAIT:
		wf_take_wait(w->take, i->a, i->b, text, sizeof(text));
		write_slice(w, i, "B", "wait", text);
		break;
	case WF_STORY_CALL:
		call = i->a <= INT32_MAX ? wf_waits_call_name((long)i->a) : NULL;
		snprintf(text, sizeof(text), "call %llu", (unsigned long long)i->a);
		write_slice(w, i, "B", "call", call ? call : text);
		break;
	case WF_STORY_END:
		write_slice(w, i, "E", NULL, NULL);
		break;
	case WF_STORY_PREEMPT:
		write_slice(w, i, "i", "sched", "preempted");
		break;
	}
	wf_counted_after(&w->counted, i);
}

bool wf_trace_json(FILE *out, const struct wf_take *k)
{
	struct writer w = { .out = out, .take = k, .j = { .out = out, .is_line = true } };
	struct wf_story *s = wf_story_new(k);
	char buf[32];

	if (!s)
		return false;
	w.counted = (struct wf_counted){ .take = k, .write = write_counter, .arg = &w };
	wf_text_json_begin(&w.j, NULL, '{');
	wf_text_json_string(&w.j, "displayTimeUnit", "ns");
	wf_text_json_begin(&w.j, "traceEvents", '[');
	name_one(&w, "process_name", 0, 0, "workers");
	name_one(&w, "process_name", process_of(&w), 0, k->program);
	for (const int64_t *tid = wf_story_threads(s); *tid; tid++)
		name_one(&w, "thread_name", process_of(&w), *tid, name_of(&w, *tid, buf));
	wf_story_tell(s, write_item, &w);
	wf_counted_end(&w.counted);
	for (unsigned lane = 0; lane < w.nr_lanes; lane++)
		end_lane(&w, lane);
	wf_text_json_end(&w.j, ']');
	wf_text_json_end(&w.j, '}');
	wf_story_free(s);
	free(w.is_open);
	return !w.is_bad;
}
