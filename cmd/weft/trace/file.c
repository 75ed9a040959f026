// SPDX-License-Identifier: Apache-2.0
/*
 * The file of a trace; see trace.h.
 *
 * Invariant: no symbolic link is followed and nobody else's file is touched, for the folder may be one that others write to.
 * A file that cannot be finished does not stay.
 */
#include "trace/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd.h"

static const struct wf_trace_format formats[] = {
	{ "perfetto", "pftrace", wf_trace_perfetto },
	{ "json", "json", wf_trace_json },
	{ "text", "txt", wf_trace_text },
};

bool wf_trace_find_format(const char *name, const struct wf_trace_format **out)
{
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		if (!name || strcmp(formats[i].name, name) == 0) {
			*out = &formats[i];
			return true;
		}
	}
	return false;
}

static bool fail(const char *file, const char *why)
{
	wf_cmd_error("trace: cannot write %s: %s", file, why);
	return false;
}

static bool is_ours(int fd, struct stat *st)
{
	return fstat(fd, st) == 0 &&
	       (!S_ISREG(st->st_mode) || (st->st_uid == geteuid() && st->st_nlink == 1));
}

static FILE *create(const char *file)
{
	int fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW, 0600);
	struct stat st;
	FILE *f = NULL;

	if (fd < 0) {
		(void)fail(file, errno == ELOOP ? "it is a symbolic link; name the file itself"
						: strerror(errno));
		return NULL;
	}
	if (!is_ours(fd, &st))
		(void)fail(file, "it belongs to another user, or has another name as well");
	else if (S_ISREG(st.st_mode) && ftruncate(fd, 0) < 0)
		(void)fail(file, strerror(errno));
	else
		f = fdopen(fd, "w");
	if (!f)
		close(fd);
	return f;
}

static void take_away(const char *file)
{
	struct stat st;

	if (lstat(file, &st) == 0 && S_ISREG(st.st_mode))
		(void)unlink(file);
}

bool wf_trace_write_file(const char *file, const struct wf_trace_format *format,
			 const struct wf_take *k)
{
	bool is_stdout = strcmp(file, "-") == 0, is_good, has_memory;
	FILE *out = is_stdout ? stdout : create(file);
	int error;

	if (!out)
		return false;
	errno = 0;
	has_memory = format->write(out, k);
	is_good = fflush(out) == 0 && !ferror(out);
	error = errno;
	if (!is_stdout && fclose(out) != 0 && is_good) {
		is_good = false;
		error = errno;
	}
	if (has_memory && is_good)
		return true;
	if (!is_stdout)
		take_away(file);
	return fail(is_stdout ? "standard output" : file, !has_memory ? "out of memory"
							  : error     ? strerror(error)
								      : "an error");
}

void wf_trace_name_file(const struct wf_trace_options *o, const struct wf_take *k, char *out,
			size_t bytes)
{
	if (o->file)
		snprintf(out, bytes, "%s", o->file);
	else
		snprintf(out, bytes, "weft-%d.%s",
			 k->target->pid ? k->target->pid : k->target->inner_pid, o->format->suffix);
}

/* "12,345" */
static const char *grouped(char out[32], uint64_t value)
{
	char digits[24];
	int len = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)value), used = 0;

	for (int i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			out[used++] = ',';
		out[used++] = digits[i];
	}
	out[used] = '\0';
	return out;
}

void wf_trace_say_written(const char *file, const struct wf_trace_format *format,
			  const struct wf_take *k)
{
	char events[32], lost[32], threads[32];

	fprintf(strcmp(file, "-") ? stdout : stderr,
		"wrote %s: %.3g s, %u worker%s, %s thread%s, %s events, %s lost%s\n", file,
		(double)(k->end_ns - k->begin_ns) / 1e9, k->nr_workers,
		k->nr_workers == 1 ? "" : "s", grouped(threads, k->nr_threads),
		k->nr_threads == 1 ? "" : "s", grouped(events, k->rings.nr_events),
		grouped(lost, k->rings.nr_lost),
		format == formats ? "; open it at https://ui.perfetto.dev" : "");
}
