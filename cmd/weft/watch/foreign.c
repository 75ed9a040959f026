// SPDX-License-Identifier: Apache-2.0
/*
 * `weft watch --pid`: a process that is not our child, until it ends.
 *
 * Called by: watch.c. Invariant: the process is known by its pidfd, opened first; a later one of the same number is not
 * taken for it.
 */
#include "watch/watch.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cmd.h"

/* Until it ends, we are told to end, or the deadline. */
static void wait_for_end(struct wf_watch *w, int pidfd, int64_t deadline)
{
	struct pollfd p[2] = { { .fd = pidfd, .events = POLLIN },
			       { .fd = w->signals, .events = POLLIN } };
	int64_t left = deadline - wf_watch_now();

	(void)poll(p, 2,
		   deadline == WF_WATCH_NEVER ? -1
		   : left > 0                 ? (int)(left / WF_WATCH_MS + 1)
					      : 0);
	wf_watch_round(w, 0);
}

static void tell(struct wf_watch *w, struct wf_watch_event *e, bool is_wanted)
{
	wf_watch_say(w, e->pid, "%s%s%s", e->what, *e->saved ? ", saved " : "", e->saved);
	if (is_wanted)
		wf_watch_tell_hook(w, e, w->command);
}

int wf_watch_foreign(struct wf_watch *w)
{
	int pidfd = (int)syscall(SYS_pidfd_open, w->foreign, 0);
	struct wf_watch_event e = { .pid = w->foreign };
	char why[160];

	if (pidfd < 0) {
		wf_cmd_error("watch: cannot watch process %d: %s", (int)w->foreign,
			     strerror(errno));
		return WF_EXIT_REFUSED;
	}
	w->started_at = wf_watch_now();
	wf_watch_stall_reset(w);
	while (!w->is_ending && !wf_watch_ended(pidfd)) {
		wait_for_end(w, pidfd, wf_watch_stall_due(w));
		if (w->is_ending || wf_watch_ended(pidfd) ||
		    !wf_watch_stall_look(w, w->foreign, why, sizeof(why)))
			continue;
		e.kind = "stall";
		e.is_alive = true;
		snprintf(e.suffix, sizeof(e.suffix), "stall");
		snprintf(e.what, sizeof(e.what), "%s", why);
		wf_watch_save(w, &e);
		tell(w, &e, w->tells_stall);
	}
	if (!w->is_ending) {
		e = (struct wf_watch_event){ .kind = "exit", .pid = w->foreign };
		snprintf(e.what, sizeof(e.what), "has ended");
		tell(w, &e, w->tells_exit);
	}
	close(pidfd);
	wf_watch_end_all(w);
	return w->is_ending ? 128 + w->ended_by : 0;
}
