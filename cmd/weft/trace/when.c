// SPDX-License-Identifier: Apache-2.0
/*
 * Waiting for something to happen; see when.h.
 *
 * Invariant: the program is not stopped and nothing is written to it. A second copy of the rings is kept, taken as
 * soon as the look is over that found it: a ring that holds less than some looks loses what led to it, and says so.
 */
#include "trace/when.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cmd.h"
#include "look/look.h"
#include "target/wait.h"
#include "trace/since.h"
#include "trace/stop.h"

#define LOOK_NS 10000000
#define CIRCLES_EVERY 100     /* looks: the whole table of threads is read for it */
#define QUIET_NS 1000000000ll /* the same condition is not told again before */
#define STALL_NS 1000000000ll
#define MAX_THREADS 100000u
#define EXIT_NONE 1

struct watch {
	const struct wf_trace_options *options;
	struct wf_look look;
	struct wf_take take;
	struct wf_since *since;
	int64_t told_at[WF_TRACE_MAX_CONDITIONS]; /* 0: never */
	bool is_true[WF_TRACE_MAX_CONDITIONS];    /* a circle stays: it is told once */
	unsigned nr_told;
	int folder;
};

/* --- conditions --- */

bool wf_when_add(struct wf_trace_options *o, const char *text)
{
	static const struct {
		const char *name;
		enum wf_trace_condition_kind kind;
		int64_t ns; /* where no time is given; 0: one must be */
	} kinds[] = {
		{ "call", WF_TRACE_ON_CALL, 0 },
		{ "ready", WF_TRACE_ON_READY, 0 },
		{ "stall", WF_TRACE_ON_STALL, STALL_NS },
		{ "deadlock", WF_TRACE_ON_DEADLOCK, -1 },
	};
	struct wf_trace_condition *c = &o->conditions[o->nr_conditions];
	size_t len = strcspn(text, ">");

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strlen(kinds[i].name) != len || strncmp(kinds[i].name, text, len) != 0)
			continue;
		if (o->nr_conditions == WF_TRACE_MAX_CONDITIONS ||
		    (text[len] ? kinds[i].ns < 0 || !wf_stop_parse_time(text + len + 1, &c->ns)
			       : !kinds[i].ns))
			return false;
		if (!text[len])
			c->ns = kinds[i].ns;
		c->kind = kinds[i].kind;
		c->text = kinds[i].name;
		o->nr_conditions++;
		return true;
	}
	return false;
}

static const char *thread_name(struct watch *w, int64_t tid)
{
	const char *name;

	wf_budget_begin(&w->look.budget);
	wf_take_names(&w->take);
	name = wf_take_thread(&w->take, tid);
	return name ? name : "?";
}

/* By its own word, not only by the events: some of them may have been overwritten. */
static bool is_ready(struct watch *w, int64_t tid)
{
	struct wf_threads s;
	bool is_so = false;

	wf_budget_begin(&w->look.budget);
	if (wf_threads_glance(&s, &w->look.layout, &w->look.target, MAX_THREADS, NULL)) {
		for (size_t i = 0; i < s.nr_threads && !is_so; i++)
			is_so = s.threads[i].tid == tid &&
				strcmp(wf_layout_name(&w->look.layout, "state", s.threads[i].state),
				       "ready") == 0;
	}
	wf_threads_done(&s);
	return is_so;
}

static bool is_deadlocked(struct watch *w)
{
	struct wf_threads s;
	bool is_so;

	wf_budget_begin(&w->look.budget);
	is_so = wf_threads_glance(&s, &w->look.layout, &w->look.target, MAX_THREADS, NULL) &&
		wf_look_deadlocked(&w->look, &s) > 0;
	wf_threads_done(&s);
	return is_so;
}

/* Is it so? Then in words, too. */
static bool holds(struct watch *w, const struct wf_trace_condition *c, int nr_looks, char *out,
		  size_t bytes)
{
	struct wf_since_longest l;
	const char *call;

	switch (c->kind) {
	case WF_TRACE_ON_CALL:
		l = wf_since_longest(w->since, WF_SINCE_CALL);
		if (!l.tid || l.ns <= c->ns)
			return false;
		call = l.call <= INT32_MAX ? wf_waits_call_name((long)l.call) : NULL;
		snprintf(out, bytes, "thread %lld \"%s\" in a call%s%s for %.3g ms",
			 (long long)l.tid, thread_name(w, l.tid), call ? ", " : "",
			 call ? call : "", (double)l.ns / 1e6);
		return true;
	case WF_TRACE_ON_READY:
		l = wf_since_longest(w->since, WF_SINCE_READY);
		if (!l.tid || l.ns <= c->ns || !(l.is_over || is_ready(w, l.tid)))
			return false;
		snprintf(out, bytes, "thread %lld \"%s\" ready for %.3g ms", (long long)l.tid,
			 thread_name(w, l.tid), (double)l.ns / 1e6);
		return true;
	case WF_TRACE_ON_STALL:
		l = wf_since_longest(w->since, WF_SINCE_READY);
		snprintf(out, bytes, "threads are ready, and none came to a worker for %.3g s",
			 (double)wf_since_stalled(w->since) / 1e9);
		return wf_since_stalled(w->since) > c->ns && l.tid && is_ready(w, l.tid);
	case WF_TRACE_ON_DEADLOCK:
		snprintf(out, bytes, "threads wait for one another in a circle");
		return nr_looks % CIRCLES_EVERY == 0 && is_deadlocked(w);
	}
	return false;
}

/* --- what is kept --- */

/* The command itself, with what it says in a file. */
static void save_dump(struct watch *w, const char *name)
{
	int out = openat(w->folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
			 0600);
	char pid[16];
	pid_t child;

	if (out < 0)
		return;
	snprintf(pid, sizeof(pid), "%d", w->look.target.pid);
	child = fork();
	if (child == 0) {
		if (dup2(out, STDOUT_FILENO) >= 0)
			execl("/proc/self/exe", "weft", "dump", pid, (char *)NULL);
		_exit(WF_EXIT_REFUSED);
	}
	close(out);
	while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
}

/* DIR/weft-PID-NUMBER-KIND */
static void name_of(const struct watch *w, unsigned number, const char *kind, const char *suffix,
		    char *out, size_t bytes)
{
	snprintf(out, bytes, "weft-%d-%u-%s.%s", w->look.target.pid, number, kind, suffix);
}

static void drop_old(struct watch *w)
{
	unsigned keep = w->options->keep;
	char name[128];

	if (w->nr_told <= keep)
		return;
	for (unsigned i = 0; i < w->options->nr_conditions; i++) {
		const char *kind = w->options->conditions[i].text;

		name_of(w, w->nr_told - keep, kind, w->options->format->suffix, name, sizeof(name));
		(void)unlinkat(w->folder, name, 0);
		name_of(w, w->nr_told - keep, kind, "dump", name, sizeof(name));
		(void)unlinkat(w->folder, name, 0);
	}
}

static void keep_trace(struct watch *w, const struct wf_trace_condition *c, const char *what)
{
	const struct wf_trace_options *o = w->options;
	struct wf_take k;
	char name[128], path[PATH_MAX];

	wf_budget_begin(&w->look.budget);
	w->nr_told++;
	if (!o->is_quiet)
		printf("%s\n", what);
	if (wf_take_begin(&k, &w->look.layout, &w->look.target) && wf_take_look(&k)) {
		wf_take_names(&k);
		wf_take_finish(&k, o->last_ns);
		name_of(w, w->nr_told, c->text, o->format->suffix, name, sizeof(name));
		snprintf(path, sizeof(path), "%s/%s", o->file ? o->file : ".", name);
		if (wf_trace_write_file(path, o->format, &k) && !o->is_quiet)
			wf_trace_say_written(path, o->format, &k);
	}
	fflush(stdout);
	wf_take_done(&k);
	name_of(w, w->nr_told, c->text, "dump", name, sizeof(name));
	save_dump(w, name);
	drop_old(w);
}

static void judge(struct watch *w, int nr_looks)
{
	int64_t now = wf_stop_now();
	char what[256];

	for (unsigned i = 0; i < w->options->nr_conditions; i++) {
		const struct wf_trace_condition *c = &w->options->conditions[i];
		bool is_looked_at = c->kind != WF_TRACE_ON_DEADLOCK ||
				    nr_looks % CIRCLES_EVERY == 0;
		bool was = w->is_true[i];

		if (!is_looked_at || (w->told_at[i] && now - w->told_at[i] < QUIET_NS))
			continue;
		w->is_true[i] = holds(w, c, nr_looks, what, sizeof(what));
		if (!w->is_true[i] || (was && c->kind == WF_TRACE_ON_DEADLOCK))
			continue;
		keep_trace(w, c, what);
		w->told_at[i] = wf_stop_now();
	}
}

static int fail(struct wf_look *l)
{
	wf_cmd_error("trace: %s", l->target.error);
	return WF_EXIT_REFUSED;
}

static int64_t cycles_now(const struct wf_take *k)
{
	return wf_take_ns(k, __builtin_ia32_rdtsc());
}

/* Until it is over. False: out of memory. */
static bool go_on_looking(struct watch *w)
{
	int64_t begin = wf_stop_now();
	bool is_ok = wf_take_look(&w->take);

	wf_take_forget(&w->take);
	for (int i = 0; is_ok && !wf_stop_is_enough(); i++) {
		const struct timespec pause = { .tv_nsec = LOOK_NS };

		if (w->options->for_ns && wf_stop_now() - begin >= w->options->for_ns)
			break;
		wf_budget_begin(&w->look.budget);
		if (i % CIRCLES_EVERY == 0)
			wf_take_names(&w->take);
		(void)nanosleep(&pause, NULL);
		is_ok = wf_take_look(&w->take);
		if (wf_target_is_gone(&w->look.target)) {
			wf_cmd_error("trace: process %d ended, or became another program, after "
				     "%.3g s",
				     w->look.target.pid, (double)(wf_stop_now() - begin) / 1e9);
			break;
		}
		wf_rings_sort(&w->take.rings);
		is_ok = is_ok && wf_since_look(w->since, cycles_now(&w->take));
		wf_take_forget(&w->take);
		if (is_ok)
			judge(w, i);
	}
	return is_ok;
}

int wf_when_run(const struct wf_trace_options *o)
{
	struct watch w = { .options = o, .folder = -1 };
	const char *folder = o->file ? o->file : ".";
	int ret = WF_EXIT_REFUSED;

	wf_stop_catch();
	w.folder = open(folder, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
	if (w.folder < 0) {
		wf_cmd_error("trace: cannot write to %s: %s", folder, strerror(errno));
		return ret;
	}
	if (!wf_look_open(&w.look, o->pid) ||
	    !wf_take_begin(&w.take, &w.look.layout, &w.look.target)) {
		ret = fail(&w.look);
		goto out;
	}
	w.since = wf_since_new(&w.take);
	if (!w.since || !go_on_looking(&w)) {
		(void)wf_target_fail(&w.look.target, "out of memory");
		ret = fail(&w.look);
		goto out;
	}
	ret = w.nr_told ? 0 : EXIT_NONE;
	if (ret)
		wf_cmd_error("trace: nothing of that happened");
out:
	wf_since_free(w.since);
	wf_take_done(&w.take);
	wf_look_done(&w.look);
	close(w.folder);
	return ret;
}
