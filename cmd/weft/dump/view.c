// SPDX-License-Identifier: Apache-2.0
/* The meaning of a snapshot, in words; see view.h. */
#include "dump/view.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "text.h"

double wf_view_uptime(const struct wf_target *t)
{
	char path[64], line[1024];
	unsigned long long start;
	struct timespec now;
	const char *after;
	double s = -1;
	FILE *f;

	if (t->is_core)
		return -1;
	snprintf(path, sizeof(path), "/proc/%d/stat", t->pid);
	f = fopen(path, "re");
	if (!f)
		return -1;
	line[fread(line, 1, sizeof(line) - 1, f)] = '\0';
	/* The name may hold anything, also line ends and parentheses: the fields begin behind its last one. */
	if ((after = strrchr(line, ')')) &&
	    sscanf(after + 1,
		   " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
		   &start) == 1 &&
	    clock_gettime(CLOCK_BOOTTIME, &now) == 0)
		s = (double)now.tv_sec + (double)now.tv_nsec / 1e9 -
		    (double)start / (double)sysconf(_SC_CLK_TCK);
	fclose(f);
	return s;
}

const char *wf_view_spent(const struct wf_target *t)
{
	if (!t->budget)
		return NULL;
	return t->budget->spent ? t->budget->spent : t->budget->was_spent;
}

bool wf_view_is_waiting(const struct wf_dump_view *v, const struct wf_dump_thread *d)
{
	return wf_waits_is_waiting(v->layout, d);
}

double wf_view_left(const struct wf_dump_view *v, int64_t deadline)
{
	return ((double)deadline - (double)v->threads->now) / 1e9;
}

bool wf_view_is_overdue(const struct wf_dump_view *v, const struct wf_dump_thread *d)
{
	const struct wf_dump_reach *r = &v->groups->reaches[d - v->threads->threads];

	return wf_view_is_waiting(v, d) &&
	       (r->is_cancelled || (r->until && r->until <= v->threads->now));
}

size_t wf_view_first_frame(const struct wf_dump_view *v, const struct wf_dump_thread *d)
{
	if (v->has_runtime || (d->is_on_cpu && d->call < 0) || d->nr_runtime == d->nr_frames)
		return 0;
	return d->nr_runtime;
}

const char *wf_view_function(char *out, size_t bytes, const char *name)
{
	wf_text_clean(out, bytes, name);
	out[strcspn(out, "@")] = '\0';
	return out;
}
