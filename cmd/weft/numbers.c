// SPDX-License-Identifier: Apache-2.0
/* Samples, figures and progress; see numbers.h. */
#include "numbers.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "machine.h"
#include "text.h"

#define QUIET_S 2
#define BAR_COLUMNS 20

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static size_t sort(const double *values, size_t nr, double out[WF_NUMBERS_MAX])
{
	size_t kept = 0;

	for (size_t i = 0; i < nr && kept < WF_NUMBERS_MAX; i++) {
		if (isfinite(values[i]))
			out[kept++] = values[i];
	}
	qsort(out, kept, sizeof(out[0]), compare);
	return kept;
}

/* Of sorted values, with what lies between two of them. */
static double quantile(const double *sorted, size_t nr, double q)
{
	double at = q * (double)(nr - 1);
	size_t low = (size_t)at;
	size_t high = low + 1 < nr ? low + 1 : low;

	return sorted[low] + (sorted[high] - sorted[low]) * (at - (double)low);
}

double wf_numbers_median(const double *values, size_t nr)
{
	double sorted[WF_NUMBERS_MAX];

	nr = sort(values, nr, sorted);
	return nr ? quantile(sorted, nr, 0.5) : NAN;
}

double wf_numbers_spread(const double *values, size_t nr)
{
	double sorted[WF_NUMBERS_MAX], median;

	nr = sort(values, nr, sorted);
	if (!nr)
		return NAN;
	median = quantile(sorted, nr, 0.5);
	return median > 0 ? (quantile(sorted, nr, 0.75) - quantile(sorted, nr, 0.25)) / median : 0;
}

bool wf_numbers_parse(const char *text, int min, int max, int *out)
{
	char *end;
	long value;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	value = strtol(text, &end, 10);
	if (errno || *end || value < min || value > max)
		return false;
	*out = (int)value;
	return true;
}

const char *wf_numbers_text(char out[32], double value)
{
	char digits[32];
	size_t len, used = 0;

	if (!isfinite(value)) {
		strcpy(out, "-");
		return out;
	}
	if (fabs(value) < 99.5) {
		snprintf(out, 32, fabs(value) < 9.995 ? "%.2f" : "%.1f", value);
		return out;
	}
	len = (size_t)snprintf(digits, sizeof(digits), "%.0f", value);
	for (size_t i = 0; i < len && used < 30; i++) {
		if (i > 0 && (len - i) % 3 == 0 && digits[i - 1] != '-')
			out[used++] = ',';
		out[used++] = digits[i];
	}
	out[used] = '\0';
	return out;
}

void wf_numbers_machine(char *out, size_t bytes)
{
	const struct wf_machine live = { "" };
	static char text[8192];
	char cpu[128] = "", *at;
	struct utsname name;
	cpu_set_t set;
	int nr = sched_getaffinity(0, sizeof(set), &set) < 0 ? 1 : CPU_COUNT(&set);

	(void)uname(&name);
	if (wf_machine_read(&live, "/proc/cpuinfo", text, sizeof(text)) > 0 &&
	    (at = strstr(text, "model name")) && (at = strchr(at, ':'))) {
		at[strcspn(at, "\n")] = '\0';
		snprintf(cpu, sizeof(cpu), ", %s", at + 1 + strspn(at + 1, " \t"));
	}
	snprintf(text, sizeof(text), "%s %.100s%s, %d CPU%s", name.sysname, name.release, cpu, nr,
		 nr == 1 ? "" : "s");
	wf_text_clean(out, bytes, text);
}

int wf_numbers_columns(int fd)
{
	struct winsize size;

	return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

void wf_numbers_progress(int done, int total, const char *now)
{
	static struct timespec began;
	struct timespec ts;
	char bar[BAR_COLUMNS + 1], line[256];
	int filled = total > 0 ? done * BAR_COLUMNS / total : 0;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	if (!began.tv_sec)
		began = ts;
	if (ts.tv_sec - began.tv_sec < QUIET_S || !isatty(STDERR_FILENO))
		return;
	memset(bar, '-', BAR_COLUMNS);
	memset(bar, '#', (size_t)filled);
	bar[BAR_COLUMNS] = '\0';
	snprintf(line, sizeof(line), "[%s] %d of %d: %s", bar, done, total, now);
	/* A line that wraps could not be taken away again. */
	fprintf(stderr, "\r\033[K%.*s", wf_numbers_columns(STDERR_FILENO) - 1, line);
}

void wf_numbers_progress_end(void)
{
	if (isatty(STDERR_FILENO))
		fputs("\r\033[K", stderr);
}
