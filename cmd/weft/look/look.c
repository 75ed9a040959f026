// SPDX-License-Identifier: Apache-2.0
/* Looking without stopping; see look.h. */
#include "look/look.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "text.h"

#define LOOK_S 10

static double clock_s(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

double wf_look_now_s(void)
{
	return clock_s(CLOCK_MONOTONIC);
}

bool wf_look_kernel(int pid, struct wf_look_kernel *out)
{
	double tick = 1.0 / (double)sysconf(_SC_CLK_TCK);
	unsigned long long user, system, started;
	char path[64], line[1024];
	const char *after;
	unsigned tasks;
	struct stat s;
	bool is_ok;
	FILE *f;

	*out = (struct wf_look_kernel){ 0 };
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	line[fread(line, 1, sizeof(line) - 1, f)] = '\0';
	/* The name may hold anything, also line ends and parentheses: the fields begin behind its last one. */
	is_ok = (after = strrchr(line, ')')) &&
		sscanf(after + 1,
		       " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %u %*d %llu",
		       &user, &system, &tasks, &started) == 4;
	is_ok &= fstat(fileno(f), &s) == 0;
	fclose(f);
	if (!is_ok)
		return false;
	*out = (struct wf_look_kernel){
		.age_s = clock_s(CLOCK_BOOTTIME) - (double)started * tick,
		.cpu_s = (double)(user + system) * tick,
		.nr_tasks = tasks,
		.started = started,
		.owner = s.st_uid,
	};
	if (out->age_s < 0)
		out->age_s = 0;
	out->began_s = clock_s(CLOCK_REALTIME) - out->age_s;
	return true;
}

bool wf_look_open(struct wf_look *l, int pid)
{
	struct wf_look_kernel kernel;

	*l = (struct wf_look){ .target.memory_fd = -1, .nr_opened = 1 };
	wf_budget_begin(&l->budget);
	if (!wf_look_kernel(pid, &kernel)) {
		l->target.pid = pid;
		return wf_target_fail(&l->target, "no process %d", pid);
	}
	l->started = kernel.started;
	return wf_target_open_process(&l->target, pid, &l->budget) &&
	       wf_layout_read(&l->layout, &l->target);
}

void wf_look_done(struct wf_look *l)
{
	wf_layout_done(&l->layout);
	wf_target_done(&l->target);
}

/* On failure what was known of the program before still stands. */
static bool reopen(struct wf_look *l)
{
	struct wf_look next;

	if (!wf_look_open(&next, l->target.pid)) {
		wf_target_fail(&l->target, "%s", next.target.error);
		wf_look_done(&next);
		return false;
	}
	next.nr_opened = l->nr_opened + 1;
	wf_look_done(l);
	*l = next;
	l->target.budget = &l->budget;
	return true;
}

bool wf_look_at(struct wf_look *l, struct wf_threads *out, struct wf_look_kernel *kernel,
		size_t max_threads, const struct wf_threads_part *part)
{
	int pid = l->target.pid;

	*out = (struct wf_threads){ 0 };
	wf_budget_begin(&l->budget);
	wf_budget_set_time(&l->budget, LOOK_S);
	/* The memory that was opened is that of the program from then on: after an exec there is nothing to be read in it. */
	if (!wf_look_kernel(pid, kernel) || kernel->started != l->started)
		return wf_target_fail(&l->target, "process %d has ended", pid);
	if (!wf_threads_glance(out, &l->layout, &l->target, max_threads, part))
		return wf_target_fail(&l->target, "out of memory");
	if (!wf_target_is_gone(&l->target))
		return true;
	wf_threads_done(out);
	return reopen(l) && wf_threads_glance(out, &l->layout, &l->target, max_threads, NULL);
}

void wf_look_why_native(const struct wf_look *l, char *out, size_t bytes)
{
	const struct wf_inspect_field *f = &l->layout.field[WF_L_LX_WHY_NATIVE];
	char text[256] = "";
	size_t nr = f->size < sizeof(text) ? f->size : sizeof(text) - 1;

	if (l->layout.process)
		(void)wf_target_read_some(&l->target, l->layout.process + f->offset, text, nr);
	wf_text_clean(out, bytes, text);
}

const char *wf_look_time(char out[32], double s)
{
	if (s < 10)
		snprintf(out, 32, "%.1f s", s);
	else if (s < 120)
		snprintf(out, 32, "%.0f s", s);
	else if (s < 7200)
		snprintf(out, 32, "%.0f min", s / 60);
	else if (s < 172800)
		snprintf(out, 32, "%.1f h", s / 3600);
	else
		snprintf(out, 32, "%.0f d", s / 86400);
	return out;
}
