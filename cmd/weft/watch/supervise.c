// SPDX-License-Identifier: Apache-2.0
/*
 * The life of a program that is watched: started, looked at, buried, started again.
 *
 * Called by: watch.c. Invariant: when the next one is started, nothing lives any more that the last one started; the same
 * when `weft watch` ends.
 */
#include "watch/watch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cmd.h"

static void become_program(const struct wf_watch *w, pid_t parent)
{
	static char weft[] = "weft", run[] = "run", end[] = "--";
	size_t nr = 0;
	char **argv;

	while (w->command[nr])
		nr++;
	argv = calloc(nr + 4, sizeof(*argv));
	if (!argv || dup2(w->err_out, STDERR_FILENO) < 0)
		_exit(WF_EXIT_REFUSED);
	argv[0] = weft;
	argv[1] = run;
	argv[2] = end;
	memcpy(&argv[3], w->command, nr * sizeof(*argv));
	/* A program that nobody watches would stand in the way of the next one that is watched. */
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(WF_EXIT_REFUSED);
	wf_watch_restore(w);
	if (!getenv("WEFT_TRACE"))
		(void)setenv("WEFT_RECORD", "1", 0);
	wf_watch_door_give(w);
	wf_watch_notify_give(parent);
	execv("/proc/self/exe", argv);
	dprintf(STDERR_FILENO, "weft: watch: cannot run weft run: %s\n", strerror(errno));
	_exit(WF_EXIT_REFUSED);
}

static bool start(struct wf_watch *w)
{
	pid_t parent = getpid(), pid;

	w->tail_bytes = 0;
	w->is_child_over = w->was_killed = w->is_ended_by_us = false;
	w->kill_at = WF_WATCH_NEVER;
	w->started_at = wf_watch_now();
	w->started_wall_s = time(NULL);
	w->oom_before = wf_watch_oom_kills();
	wf_watch_stall_reset(w);
	wf_watch_door_reset(w);
	pid = fork();
	if (pid == 0)
		become_program(w, parent);
	if (pid < 0) {
		wf_cmd_error("watch: cannot start %s: %s", w->command[0], strerror(errno));
		return false;
	}
	w->child = pid;
	return true;
}

static void tell_hook(struct wf_watch *w, const struct wf_watch_event *e)
{
	static char shell[] = "/bin/sh", option[] = "-c";
	char *argv[] = { shell, option, (char *)w->hook, NULL };

	if (w->hook)
		wf_watch_tell_hook(w, e, argv);
}

static void stalled(struct wf_watch *w, const char *why)
{
	struct wf_watch_event e = {
		.kind = "stall", .suffix = "stall", .pid = w->child, .is_alive = true
	};

	snprintf(e.what, sizeof(e.what), "%s", why);
	wf_watch_save(w, &e);
	wf_watch_say(w, e.pid, "%s%s%s%s", e.what, *e.saved ? ", saved " : "", e.saved,
		     w->stall_restarts ? "; it is ended" : "");
	tell_hook(w, &e);
	if (!w->stall_restarts || w->is_child_over || w->is_ending)
		return;
	w->is_ended_by_us = true;
	(void)kill(w->child, SIGTERM);
	w->kill_at = wf_watch_now() + w->grace_ns;
	w->stall.next_look = WF_WATCH_NEVER;
}

/* Returns when the child has ended. */
static void attend(struct wf_watch *w)
{
	char why[160];

	while (!w->is_child_over) {
		wf_watch_round(w, wf_watch_stall_due(w));
		if (!w->is_child_over && w->dying_folder < 0 && wf_watch_door_is_dying(w)) {
			wf_watch_save_dying(w, wf_watch_door_signal(w));
			wf_watch_door_release(w);
		}
		if (!w->is_child_over && !w->is_ending &&
		    wf_watch_stall_look(w, w->child, why, sizeof(why)))
			stalled(w, why);
	}
	wf_watch_drain(w);
}

static int exit_code(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static bool is_crash(int status)
{
	static const int crashes[] = { SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS };

	for (size_t i = 0; i < sizeof(crashes) / sizeof(crashes[0]); i++) {
		if (WIFSIGNALED(status) && WTERMSIG(status) == crashes[i])
			return true;
	}
	return false;
}

/* Deaths, newest at `next`: whether the last max + 1 lie within the time. */
struct deaths {
	int64_t at[WF_WATCH_RESTARTS_MAX + 1];
	size_t nr;
};

static bool is_too_often(const struct wf_watch *w, struct deaths *d)
{
	size_t of = (size_t)w->max + 1;
	int64_t now = wf_watch_now(), *oldest = &d->at[d->nr % of];
	bool is_full = ++d->nr >= of;

	*oldest = now;
	return is_full && now - d->at[d->nr % of] <= w->max_within_ns;
}

/* The delay of now; the next one is twice as long. A program that ran for long enough begins anew. */
static int64_t next_delay(const struct wf_watch *w, int64_t *delay, int64_t lived)
{
	int64_t now;

	if (lived >= w->delay_max_ns && lived >= 10 * WF_WATCH_S)
		*delay = w->delay_ns;
	now = *delay;
	*delay = now > w->delay_max_ns / 2 ? w->delay_max_ns : 2 * now;
	return now;
}

/* A death is saved and told. False: it was the last. */
static bool bury(struct wf_watch *w, struct deaths *deaths, int64_t *delay)
{
	struct wf_watch_event e = { .kind = "death", .pid = w->child, .status = w->child_status };
	int64_t lived = wf_watch_now() - w->started_at, pause;
	bool was_asked = w->is_ending || w->is_ended_by_us;
	bool is_last = w->is_ending || (w->child_status == 0 && !w->is_ended_by_us);
	char up[32], next[32], then[64] = "";

	wf_watch_describe(w, &e);
	if (was_asked ? is_crash(e.status) : e.status != 0)
		wf_watch_save(w, &e);
	w->child = 0;
	if (!is_last && is_too_often(w, deaths)) {
		snprintf(then, sizeof(then), "; given up after %d restart%s in %s", w->max,
			 w->max == 1 ? "" : "s", wf_watch_span(next, w->max_within_ns));
		is_last = true;
	}
	pause = next_delay(w, delay, lived);
	if (!is_last)
		snprintf(then, sizeof(then), "; restart %u in %s", ++w->restarts,
			 wf_watch_span(next, pause));
	wf_watch_say(w, e.pid, "%s, up %s%s%s%s", e.what, wf_watch_span(up, lived),
		     *e.saved ? ", saved " : "", e.saved, then);
	tell_hook(w, &e);
	wf_watch_end_all(w);
	if (!is_last)
		wf_watch_notify_alive(w);
	for (pause += wf_watch_now(); !is_last && !w->is_ending && wf_watch_now() < pause;)
		wf_watch_round(w, pause);
	return !is_last && !w->is_ending;
}

int wf_watch_supervise(struct wf_watch *w)
{
	static struct deaths deaths;
	int64_t delay = w->delay_ns;

	do {
		if (!start(w))
			return WF_EXIT_REFUSED;
		attend(w);
	} while (bury(w, &deaths, &delay));
	return exit_code(w->child_status);
}
