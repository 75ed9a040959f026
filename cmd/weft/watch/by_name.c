// SPDX-License-Identifier: Apache-2.0
/*
 * `weft watch --process`: processes of a name that are not our children, those that there are and those to come.
 *
 * Called by: watch.c. Invariant: the hook runs once for each end, one after the other; while it runs, events are
 * noted (names.c). A process that it leaves running is one as any other from the moment it has ended.
 */
#include "watch/watch.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "target/find.h"

#define LOOK_SHARE 100               /* of the time, one part is for looking for stalls */
#define LOST_EVERY (60 * WF_WATCH_S) /* one line about messages that were lost */

struct round {
	struct wf_watch_process *ended,
		*stalled; /* those that are due first: to be told, to be looked at */
	int64_t ended_due, stall_due;
	int64_t next_look; /* for a stall, of any process */
	int64_t next_lost;
	unsigned nr_lost_told;
	bool is_full_told;
};

static void tell(struct wf_watch *w, struct wf_watch_event *e, bool is_wanted)
{
	wf_watch_say(w, e->pid, "%s%s%s", e->what, *e->saved ? ", saved " : "", e->saved);
	if (!is_wanted)
		return;
	wf_watch_tell_hook(w, e, w->command);
	(void)wf_watch_names_look(w->names);
}

static void tell_end(struct wf_watch *w, struct wf_watch_process *p)
{
	struct wf_watch_event e = { .kind = "exit", .pid = p->pid };
	char how[sizeof(e.what) - sizeof("has ended: ")];

	if (wf_watch_names_status(p, &e.status)) {
		wf_watch_describe(w, &e);
		snprintf(how, sizeof(how), "%.*s", (int)sizeof(how) - 1, e.what);
		snprintf(e.what, sizeof(e.what), "has ended: %s", how);
	} else {
		snprintf(e.what, sizeof(e.what), "has ended");
	}
	p->is_dropped = true;
	tell(w, &e, w->tells_exit);
}

static void tell_stall(struct wf_watch *w, struct wf_watch_process *p, const char *why)
{
	struct wf_watch_event e = {
		.kind = "stall", .suffix = "stall", .pid = p->pid, .is_alive = true
	};

	snprintf(e.what, sizeof(e.what), "%s", why);
	wf_watch_save(w, &e);
	tell(w, &e, w->tells_stall);
}

/* A process without weft is not looked at before it becomes another program. */
static void look_at(struct wf_watch *w, struct wf_watch_process *p, struct round *r)
{
	int64_t before = wf_watch_now();
	bool is_stalled, has_library;
	char why[160];

	if (p->look_from) {
		p->look_from = 0;
		wf_watch_stall_reset(w);
		p->stall = w->stall;
	}
	if (wf_find_has_library(p->pid, &has_library) && !has_library) {
		p->stall.next_look = WF_WATCH_NEVER;
		return;
	}
	w->stall = p->stall;
	is_stalled = wf_watch_stall_look(w, p->pid, why, sizeof(why));
	p->stall = w->stall;
	r->next_look = wf_watch_now() + LOOK_SHARE * (wf_watch_now() - before);
	if (is_stalled && !w->is_ending && !wf_watch_ended(p->pidfd))
		tell_stall(w, p, why);
}

static int64_t stall_due(const struct wf_watch *w, const struct wf_watch_process *p)
{
	if (!w->stall_ns || p->is_dropped || p->over_at != WF_WATCH_NEVER)
		return WF_WATCH_NEVER;
	return p->look_from ? p->look_from : p->stall.next_look;
}

static void plan(const struct wf_watch *w, struct round *r)
{
	struct wf_watch_names *n = w->names;

	r->ended_due = r->stall_due = WF_WATCH_NEVER;
	for (size_t i = 0; i < n->nr; i++) {
		struct wf_watch_process *p = &n->processes[i];

		if (wf_watch_names_due(p) < r->ended_due) {
			r->ended_due = wf_watch_names_due(p);
			r->ended = p;
		}
		if (stall_due(w, p) < r->stall_due) {
			r->stall_due = stall_due(w, p);
			r->stalled = p;
		}
	}
	if (r->stall_due < r->next_look)
		r->stall_due = r->next_look;
}

static void say_start(const struct wf_watch *w)
{
	const struct wf_watch_names *n = w->names;

	wf_cmd_error("watch: processes named '%s': %zu; %s%s", w->process, n->nr,
		     n->connector >= 0 ? "the kernel tells of those to come"
				       : "others are looked for once a second, since the kernel "
					 "does not tell of them: ",
		     n->connector >= 0 ? "" : n->why_looking);
}

/* Each once, or once a minute; later, where that would wait now. */
static void say_trouble(const struct wf_watch *w, struct round *r)
{
	struct pollfd p = { .fd = STDERR_FILENO, .events = POLLOUT };
	const struct wf_watch_names *n = w->names;

	if (poll(&p, 1, 0) != 1 || !(p.revents & POLLOUT))
		return;
	if (n->is_full && !r->is_full_told) {
		wf_cmd_error("watch: %zu processes are watched, and no more can be; the others are "
			     "when some of these have ended",
			     n->nr);
		r->is_full_told = true;
	}
	if (n->nr_lost == r->nr_lost_told || wf_watch_now() < r->next_lost)
		return;
	wf_cmd_error("watch: messages of the kernel were lost; all processes were looked at%s%s",
		     n->connector >= 0 ? "" : ", as they are once a second now: ",
		     n->connector >= 0 ? "" : n->why_looking);
	r->nr_lost_told = n->nr_lost;
	r->next_lost = wf_watch_now() + LOST_EVERY;
}

int wf_watch_by_name(struct wf_watch *w)
{
	struct round r = { 0 };

	w->oom_before = -1;
	if (!wf_watch_names_open(w)) {
		wf_cmd_error("watch: cannot watch processes by name: %s", strerror(errno));
		return WF_EXIT_REFUSED;
	}
	say_start(w);
	while (!w->is_ending) {
		say_trouble(w, &r);
		wf_watch_names_tidy(w->names);
		plan(w, &r);
		wf_watch_round(w, r.ended_due < r.stall_due ? r.ended_due : r.stall_due);
		if (!w->is_ending && r.ended_due <= wf_watch_now())
			tell_end(w, r.ended);
		else if (!w->is_ending && r.stall_due <= wf_watch_now() &&
			 stall_due(w, r.stalled) != WF_WATCH_NEVER)
			look_at(w, r.stalled, &r);
	}
	wf_watch_names_close(w->names);
	return 128 + w->ended_by;
}
