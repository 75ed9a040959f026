// SPDX-License-Identifier: Apache-2.0
/*
 * The files that are written about one event.
 *
 * Called by: supervise.c, foreign.c. Invariant: trouble here is one line, and the program is restarted all the same.
 */
#include "watch/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "numbers.h"
#include "text.h"

#define DUMP_LIMIT (150 * WF_WATCH_S) /* a dump gives up by itself before that */

static int create(int folder, const char *name)
{
	return openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
}

static FILE *create_stream(int folder, const char *name)
{
	int fd = create(folder, name);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");

	if (!f && fd >= 0)
		close(fd);
	return f;
}

static bool close_stream(FILE *f)
{
	bool is_good = f && !ferror(f);

	return f && fclose(f) == 0 && is_good;
}

static bool write_all(int fd, const char *text, size_t bytes)
{
	while (bytes) {
		ssize_t n = write(fd, text, bytes);

		if (n <= 0)
			return false;
		text += n;
		bytes -= (size_t)n;
	}
	return true;
}

static bool save_stderr(const struct wf_watch *w, int folder)
{
	size_t at = (size_t)(w->tail_bytes % WF_WATCH_TAIL_BYTES);
	int fd = create(folder, "stderr.txt");
	bool is_good = fd >= 0;

	if (is_good && w->tail_bytes >= WF_WATCH_TAIL_BYTES)
		is_good = write_all(fd, w->tail + at, WF_WATCH_TAIL_BYTES - at);
	is_good = is_good && write_all(fd, w->tail, at);
	return fd >= 0 && close(fd) == 0 && is_good;
}

/*
 * One file by another command of ours: its words before the process or core. most: the highest exit status that is good.
 * False: there is no such file afterwards.
 */
static bool save_by(struct wf_watch *w, const struct wf_watch_event *e, int folder,
		    const char *name, const char *core, const char *const *words, int most)
{
	static char weft[] = "/proc/self/exe", core_option[] = "--core";
	char pid[16], file[PATH_MAX], *argv[12];
	int nr = 0, fd = create(folder, name), status;

	if (fd < 0)
		return false;
	snprintf(pid, sizeof(pid), "%d", (int)e->pid);
	snprintf(file, sizeof(file), "%s", core);
	argv[nr++] = weft;
	while (*words)
		argv[nr++] = (char *)*words++; /* execv() does not write to them */
	if (*core)
		argv[nr++] = core_option;
	argv[nr++] = *core ? file : pid;
	argv[nr] = NULL;
	status = wf_watch_run(w, argv, fd, DUMP_LIMIT);
	close(fd);
	if (status >= 0 && WIFEXITED(status) && WEXITSTATUS(status) <= most)
		return true;
	(void)unlinkat(folder, name, 0);
	return false;
}

static bool save_dump(struct wf_watch *w, const struct wf_watch_event *e, int folder,
		      const char *name, const char *core)
{
	static const char *const text[] = { "dump", "--events", "200", NULL };
	static const char *const json[] = { "dump", "--events", "200", "--json", NULL };

	/* 1: there are no events, and all else. */
	return save_by(w, e, folder, name, core, strstr(name, "json") ? json : text, 1);
}

/* The command's complaints go to a file of their own, which stays only if there is something in it. */
static bool save_trace(struct wf_watch *w, const struct wf_watch_event *e, int folder,
		       const char *core)
{
	char path[64];
	const char *const words[] = { "trace", "--quiet", "-o", path, NULL };
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d/trace.pftrace", (int)getpid(), folder);
	if (!save_by(w, e, folder, "trace.txt", core, words, 0))
		return false;
	if (fstatat(folder, "trace.txt", &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_size == 0)
		(void)unlinkat(folder, "trace.txt", 0);
	return true;
}

static void put_time(char out[32], time_t when)
{
	struct tm tm;

	if (!localtime_r(&when, &tm) || !strftime(out, 32, "%Y-%m-%dT%H:%M:%S%z", &tm))
		out[0] = '\0';
}

static bool save_status(const struct wf_watch *w, const struct wf_watch_event *e, int folder,
			const char *core)
{
	FILE *f = create_stream(folder, "status.json");
	struct wf_text_json j = { .out = f };
	char when[32];

	if (!f)
		return false;
	wf_text_json_begin(&j, NULL, '{');
	wf_text_json_string(&j, "weft", WEFT_VERSION);
	wf_text_json_string(&j, "name", w->name);
	wf_text_json_number(&j, "pid", e->pid);
	wf_text_json_string(&j, "event", e->kind);
	wf_text_json_string(&j, "what", e->what);
	if (!strcmp(e->kind, "death") && WIFEXITED(e->status))
		wf_text_json_number(&j, "exit_status", WEXITSTATUS(e->status));
	if (!strcmp(e->kind, "death") && WIFSIGNALED(e->status)) {
		wf_text_json_number(&j, "signal", WTERMSIG(e->status));
		wf_text_json_bool(&j, "core_dumped", WCOREDUMP(e->status));
	}
	if (*core)
		wf_text_json_string(&j, "core", core);
	put_time(when, time(NULL));
	wf_text_json_string(&j, "time", when);
	if (!w->foreign) {
		wf_text_json_number(&j, "uptime_ms",
				    (wf_watch_now() - w->started_at) / WF_WATCH_MS);
		wf_text_json_number(&j, "restarts", w->restarts);
		wf_text_json_begin(&j, "command", '[');
		for (char **arg = w->command; *arg; arg++)
			wf_text_json_string(&j, NULL, *arg);
		wf_text_json_end(&j, ']');
	}
	wf_text_json_end(&j, '}');
	return close_stream(f);
}

static bool save_report(const struct wf_watch *w, const struct wf_watch_event *e, int folder,
			const char *core, int nr_dumps)
{
	FILE *f = create_stream(folder, "report.txt");
	char text[4096], span[32], machine[200];

	if (!f)
		return false;
	put_time(text, time(NULL));
	fprintf(f, "%s[%d]: %s\n\n", w->name, (int)e->pid, e->what);
	fprintf(f, "time      %s\n", text);
	if (!w->foreign) {
		fprintf(f, "up        %s\n", wf_watch_span(span, wf_watch_now() - w->started_at));
		fprintf(f, "restarts  %u before\n", w->restarts);
		fprintf(f, "command  ");
		for (char **arg = w->command; *arg; arg++)
			fprintf(f, " %s", wf_text_clean(text, sizeof(text), *arg));
		fputc('\n', f);
	}
	wf_numbers_machine(machine, sizeof(machine));
	fprintf(f, "machine   %s\nweft      %s\n", machine, WEFT_VERSION);
	if (*core)
		fprintf(f, "core      %s\n", wf_text_clean(text, sizeof(text), core));
	fprintf(f, "dump      %s\n",
		nr_dumps == 2 ? "dump.txt, dump.json"
		: nr_dumps    ? "dump.txt; the process died before there was a dump.json"
		: e->is_alive ? "none: the process could not be read, or is not under weft"
		: *core ? "none: the core could not be read, or is not of a program under weft"
			: "none: the process was gone, and left no core where it was looked for");
	if (nr_dumps)
		fprintf(f, "trace     %s\n",
			w->has_trace ? "trace.pftrace: for https://ui.perfetto.dev"
				     : "none: the program keeps no events (weft run --record)");
	if (!w->foreign)
		fprintf(f, "stderr    stderr.txt: the last %zu of %llu bytes\n",
			(size_t)(w->tail_bytes < WF_WATCH_TAIL_BYTES ? w->tail_bytes
								     : WF_WATCH_TAIL_BYTES),
			(unsigned long long)w->tail_bytes);
	return close_stream(f);
}

/*
 * How many of the two dumps there are: of a process that dies meanwhile, maybe the first one alone. The trace comes first:
 * what its rings hold is written over while a stalled process is dumped.
 */
static int save_dumps(struct wf_watch *w, const struct wf_watch_event *e, int folder,
		      const char *core)
{
	w->has_trace = save_trace(w, e, folder, core);
	if (!save_dump(w, e, folder, "dump.txt", core))
		return 0;
	return 1 + save_dump(w, e, folder, "dump.json", core);
}

void wf_watch_save_dying(struct wf_watch *w, int sig)
{
	struct wf_watch_event e = { .kind = "death", .pid = w->child, .status = sig };

	wf_watch_describe(w, &e);
	w->dying_folder = wf_watch_folder_new(w, &e, w->dying_saved, sizeof(w->dying_saved));
	w->nr_dying_dumps = w->dying_folder < 0 ? 0 : save_dumps(w, &e, w->dying_folder, "");
}

/* The folder that the event has already, if it died at the door, or a new one. */
static int take_folder(struct wf_watch *w, struct wf_watch_event *e)
{
	int folder = w->dying_folder;

	if (e->is_alive || folder < 0)
		return wf_watch_folder_new(w, e, e->saved, sizeof(e->saved));
	memcpy(e->saved, w->dying_saved, sizeof(e->saved));
	w->dying_folder = -1;
	return folder;
}

void wf_watch_save(struct wf_watch *w, struct wf_watch_event *e)
{
	int nr_dumps = !e->is_alive && w->dying_folder >= 0 ? w->nr_dying_dumps : 0;
	bool is_good = true;
	int folder = take_folder(w, e);
	char core[PATH_MAX] = "";

	if (folder < 0) {
		e->saved[0] = '\0';
		wf_watch_say(w, e->pid, "nothing is saved below %s: %s", w->dir, strerror(-folder));
		return;
	}
	errno = 0;
	if (!e->is_alive && !wf_watch_find_core(w, e, core, sizeof(core)))
		core[0] = '\0';
	if (!nr_dumps && (e->is_alive || *core))
		nr_dumps = save_dumps(w, e, folder, core);
	errno = 0;
	is_good &= w->foreign || save_stderr(w, folder);
	is_good &= save_status(w, e, folder, core);
	is_good &= save_report(w, e, folder, core, nr_dumps);
	if (!is_good)
		wf_watch_say(w, e->pid, "not all could be saved in %s: %s", e->saved,
			     errno ? strerror(errno) : "the disk is full");
	close(folder);
	wf_watch_folders_trim(w);
}
