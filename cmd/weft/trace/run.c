// SPDX-License-Identifier: Apache-2.0
/*
 * `weft trace`, once it is known of what; see trace.h.
 *
 * Invariant: what was taken is written, also if the program ends meanwhile or the user has enough.
 */
#include "trace/trace.h"

#include <limits.h>
#include <time.h>

#include "cmd.h"
#include "trace/stop.h"

#define LOOK_NS 50000000 /* a ring of 1 MiB holds so much of 650,000 events in a second */
#define NAMES_EVERY 10   /* looks */

static int fail(const struct wf_target *t)
{
	if (t->pid && wf_target_is_gone(t))
		wf_cmd_error("trace: process %d ended while it was looked at", t->pid);
	else
		wf_cmd_error("trace: %s", t->error);
	return WF_EXIT_REFUSED;
}

static bool look(struct wf_take *k, struct wf_target *t)
{
	wf_budget_begin(t->budget);
	return wf_take_look(k) || wf_target_fail(t, "out of memory");
}

/* From now on until the time is over, the user has enough, or the program is gone. */
static bool follow(const struct wf_trace_options *o, struct wf_take *k, struct wf_target *t)
{
	int64_t begin = wf_stop_now(), left;
	bool is_ok = look(k, t);

	wf_take_forget(k);
	for (int i = 0;
	     is_ok && !wf_stop_is_enough() && (left = begin + o->for_ns - wf_stop_now()) > 0; i++) {
		struct timespec pause = { .tv_nsec = left < LOOK_NS ? left : LOOK_NS };

		if (i % NAMES_EVERY == 0)
			wf_take_names(k);
		wf_take_note_memory(k);
		(void)nanosleep(&pause, NULL);
		is_ok = look(k, t);
		if (wf_target_is_gone(t)) {
			wf_cmd_error("trace: process %d ended, or became another program, after "
				     "%.3g s",
				     t->pid, (double)(wf_stop_now() - begin) / 1e9);
			break;
		}
	}
	if (k->rings.is_full)
		wf_cmd_error("trace: only the first %zu events are kept", k->rings.nr_events);
	return is_ok;
}

static int take(const struct wf_trace_options *o, const struct wf_layout *l, struct wf_target *t)
{
	struct wf_take k = { 0 };
	char file[PATH_MAX];
	bool is_ok;
	int ret = WF_EXIT_REFUSED;

	is_ok = wf_take_begin(&k, l, t) && (o->for_ns ? follow(o, &k, t) : look(&k, t));
	if (!is_ok) {
		ret = fail(t);
		goto out;
	}
	wf_budget_begin(t->budget);
	wf_take_names(&k);
	wf_take_note_memory(&k);
	wf_take_finish(&k, o->last_ns);
	if (k.rings.nr_lacking)
		wf_cmd_error("trace: %u kernel threads have kept no events, for want of memory",
			     k.rings.nr_lacking);
	if (t->budget->was_spent)
		wf_cmd_error("trace: not all was read: too much of it (%s)", t->budget->was_spent);
	wf_trace_name_file(o, &k, file, sizeof(file));
	if (wf_trace_write_file(file, o->format, &k)) {
		if (!o->is_quiet)
			wf_trace_say_written(file, o->format, &k);
		ret = 0;
	}
out:
	wf_take_done(&k);
	return ret;
}

int wf_trace_run(const struct wf_trace_options *o)
{
	struct wf_layout l = { 0 };
	struct wf_budget budget;
	struct wf_target t;
	bool is_ok;
	int ret;

	wf_budget_begin(&budget);
	if (o->for_ns)
		wf_stop_catch();
	is_ok = o->core ? wf_target_open_core(&t, o->core, o->exe, &budget)
			: wf_target_open_process(&t, o->pid, &budget);
	if (!is_ok) {
		wf_cmd_error("trace: %s", t.error);
		ret = WF_EXIT_REFUSED;
	} else {
		ret = wf_layout_read(&l, &t) ? take(o, &l, &t) : fail(&t);
	}
	wf_layout_done(&l);
	wf_target_done(&t);
	return ret;
}
