// SPDX-License-Identifier: Apache-2.0
/*
 * One run of the command, on one of the two sides: started, watched, measured, and its output compared with that of the
 * first native run.
 *
 * Used by: compare.c. Invariant: nothing of a run is left when wf_compare_one_run() returns.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cmd.h"
#include "compare/compare.h"
#include "text.h"

#define LOOK_MS 5       /* between looks at the number of kernel threads, at first */
#define LOOK_ALL_MS 400 /* at most, between two at all processes */
#define START_S 30      /* a server that does not listen by then is given up */
#define FALLBACK "weft: running on plain NPTL: "

struct run {
	struct wf_compare *c;
	enum wf_compare_side_id side;
	struct wf_keeper keeper;
	int in, out, err;  /* what the program has as standard streams */
	int load_out;      /* what the load has printed; -1: no load */
	int kthreads;      /* most that were seen */
	double next_all_s; /* when to look at all processes */
	double step_all_s;
	double load_s;
};

/* The standard output of the first native run; -1 before that. */
static int first_output = -1;

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

__attribute__((format(printf, 2, 3))) static bool fail(struct wf_compare *c, const char *format,
						       ...)
{
	char text[sizeof(c->failure)];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	wf_text_clean(c->failure, sizeof(c->failure), text);
	return false;
}

static const char *side_name(const struct run *r)
{
	return r->side == WF_COMPARE_NATIVE ? "natively" : "under weft";
}

/* At most bytes - 1 of a file, as a string. */
static void read_start(int fd, char *out, size_t bytes)
{
	ssize_t n = pread(fd, out, bytes - 1, 0);

	out[n > 0 ? n : 0] = '\0';
}

/* The last line that says anything. */
static void last_line(int fd, char *out, size_t bytes)
{
	struct stat st;
	char text[1024], *end, *at;
	off_t from;
	ssize_t n;

	out[0] = '\0';
	if (fstat(fd, &st) < 0)
		return;
	from = st.st_size > (off_t)sizeof(text) - 1 ? st.st_size - (off_t)sizeof(text) + 1 : 0;
	n = pread(fd, text, sizeof(text) - 1, from);
	if (n <= 0)
		return;
	end = text + n;
	while (end > text && end[-1] == '\n')
		end--;
	*end = '\0';
	at = strrchr(text, '\n');
	snprintf(out, bytes, "%.190s", at ? at + 1 : text);
}

/* True when both hold the same. A file that cannot be mapped differs from all. */
static bool is_same_output(int a, int b)
{
	struct stat sa, sb;
	void *pa, *pb;
	bool is_same;

	if (fstat(a, &sa) < 0 || fstat(b, &sb) < 0 || sa.st_size != sb.st_size)
		return false;
	if (sa.st_size == 0)
		return true;
	pa = mmap(NULL, (size_t)sa.st_size, PROT_READ, MAP_PRIVATE, a, 0);
	pb = mmap(NULL, (size_t)sa.st_size, PROT_READ, MAP_PRIVATE, b, 0);
	is_same = pa != MAP_FAILED && pb != MAP_FAILED && memcmp(pa, pb, (size_t)sa.st_size) == 0;
	if (pa != MAP_FAILED)
		munmap(pa, (size_t)sa.st_size);
	if (pb != MAP_FAILED)
		munmap(pb, (size_t)sa.st_size);
	return is_same;
}

static void look_at_kthreads(struct run *r)
{
	double now = now_s();
	bool all = now >= r->next_all_s;
	int nr = wf_keeper_kthreads(&r->keeper, all);

	if (nr > r->kthreads)
		r->kthreads = nr;
	if (all) {
		r->step_all_s = fmin(r->step_all_s * 2, LOOK_ALL_MS / 1e3);
		r->next_all_s = now + r->step_all_s;
	}
}

/* Wait until fd is readable or `until` is over, and look at the run meanwhile. */
static bool wait_and_look(struct run *r, int fd, double until)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int step_ms = LOOK_MS;

	for (;;) {
		double left = until - now_s();
		int ret;

		if (left <= 0)
			return false;
		ret = poll(&p, 1, left * 1e3 < step_ms ? (int)(left * 1e3) + 1 : step_ms);
		if (ret > 0)
			return true;
		look_at_kthreads(r);
		step_ms = step_ms < 40 ? step_ms + 1 : 40;
	}
}

static int start(struct run *r)
{
	char self[] = "/proc/self/exe", run[] = "run", end[] = "--", workers[] = "--workers";
	char number[16];
	size_t nr = 0, used = 0;
	char **argv;
	int ret;

	if (r->side == WF_COMPARE_NATIVE)
		return wf_keeper_start(&r->keeper, r->c->command, r->in, r->out, r->err);
	while (r->c->command[nr])
		nr++;
	argv = calloc(nr + 6, sizeof(*argv));
	if (!argv)
		return -1;
	snprintf(number, sizeof(number), "%d", r->c->workers);
	argv[used++] = self;
	argv[used++] = run;
	if (r->c->workers) {
		argv[used++] = workers;
		argv[used++] = number;
	}
	argv[used++] = end;
	memcpy(argv + used, r->c->command, nr * sizeof(*argv));
	ret = wf_keeper_start(&r->keeper, argv, r->in, r->out, r->err);
	free(argv);
	return ret;
}

/* The program's own words about its end. */
static bool ended_early(struct run *r, const char *before_what)
{
	char line[200];

	last_line(r->err, line, sizeof(line));
	return fail(r->c, "%s the server ended before %s%s%s", side_name(r), before_what,
		    line[0] ? ": " : "", line);
}

static bool find_port(struct run *r, int *out)
{
	const double limit = fmin(START_S, r->c->limit_s), until = now_s() + limit;
	struct pollfd p = { .fd = r->keeper.report, .events = POLLIN };

	while (now_s() < until) {
		*out = r->c->port;
		if (!*out)
			*out = wf_port_of_session(r->keeper.program);
		if (*out && wf_port_is_taken(*out))
			return true;
		if (poll(&p, 1, 20) > 0)
			return ended_early(r, "it listened");
	}
	if (r->c->port)
		return fail(r->c, "%s the server does not listen at port %d after %g s",
			    side_name(r), r->c->port, limit);
	return fail(r->c, "%s the server listens at no TCP port after %g s", side_name(r), limit);
}

static bool run_load(struct run *r)
{
	char shell[] = "/bin/sh", option[] = "-c", number[16], line[200];
	char *argv[] = { shell, option, (char *)r->c->load, NULL };
	struct wf_keeper load;
	struct wf_keeper_report report;
	int port = 0;

	if (!find_port(r, &port))
		return false;
	snprintf(number, sizeof(number), "%d", port);
	(void)setenv("PORT", number, 1);
	r->load_out = memfd_create("load", MFD_CLOEXEC);
	if (r->load_out < 0 || wf_keeper_start(&load, argv, r->in, r->load_out, r->load_out) < 0)
		return fail(r->c, "the load cannot be started: %s", strerror(errno));
	if (!wait_and_look(r, load.report, now_s() + r->c->limit_s)) {
		wf_keeper_kill(&load);
		return fail(r->c, "%s the load has not ended after %g s; see --limit", side_name(r),
			    r->c->limit_s);
	}
	if (!wf_keeper_take(&load, &report))
		return fail(r->c, "the load was lost");
	r->load_s = (double)report.wall_ns / 1e9;
	if (report.status == 0)
		return true;
	last_line(r->load_out, line, sizeof(line));
	return fail(r->c, "%s the load failed (%s %d)%s%s", side_name(r),
		    WIFEXITED(report.status) ? "exit status" : "signal",
		    WIFEXITED(report.status) ? WEXITSTATUS(report.status) : WTERMSIG(report.status),
		    line[0] ? ": " : "", line);
}

/* The first number that the expression finds in what the load, or the program, has printed. */
static double find_score(const struct run *r)
{
	static char text[1 << 20];
	regmatch_t match[2];

	if (!r->c->score)
		return NAN;
	read_start(r->load_out >= 0 ? r->load_out : r->out, text, sizeof(text));
	if (regexec(&r->c->score_regex, text, 2, match, 0) != 0 || match[1].rm_so < 0)
		return NAN;
	return strtod(text + match[1].rm_so, NULL);
}

/* Under weft: does the program run on weft at all? */
static bool take_complaint(struct run *r, int status)
{
	static char text[65536];
	char *at;

	if (r->side != WF_COMPARE_WEFT)
		return true;
	read_start(r->err, text, sizeof(text));
	at = strstr(text, FALLBACK);
	if (at && !r->c->fallback[0]) {
		at += strlen(FALLBACK);
		at[strcspn(at, "\n")] = '\0';
		wf_text_clean(r->c->fallback, sizeof(r->c->fallback), at);
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == WF_EXIT_REFUSED &&
	    strncmp(text, "weft: ", 6) == 0) {
		text[strcspn(text, "\n")] = '\0';
		r->c->is_refused = true;
		return fail(r->c, "%s", text + 6);
	}
	return true;
}

static bool keep_result(struct run *r, const struct wf_keeper_report *report, bool counts,
			double wall_s)
{
	struct wf_compare_side *s = &r->c->sides[r->side];
	double score = find_score(r);
	int i = s->nr_rounds;

	if (!take_complaint(r, report->status))
		return false;
	if (r->c->score && isnan(score))
		return fail(r->c, "--score %s finds no number in what the %s prints %s",
			    r->c->score, r->c->load ? "load" : "program", side_name(r));
	if (first_output < 0 && r->side == WF_COMPARE_NATIVE)
		first_output = dup(r->out);
	if (!counts)
		return true;
	s->values[WF_COMPARE_WALL][i] = wall_s;
	s->values[WF_COMPARE_CPU][i] = (double)report->cpu_ns / 1e9;
	s->values[WF_COMPARE_SWITCHES][i] = (double)report->switches;
	s->values[WF_COMPARE_KTHREADS][i] = r->kthreads;
	s->values[WF_COMPARE_MEMORY][i] = (double)report->memory_bytes;
	s->values[WF_COMPARE_SCORE][i] = score;
	if (i == 0)
		s->status = report->status;
	s->nr_other_status += report->status != s->status;
	s->nr_other_output += !r->c->load && !is_same_output(first_output, r->out);
	s->nr_killed += r->c->load && WIFSIGNALED(report->status) &&
			WTERMSIG(report->status) == SIGKILL;
	s->nr_rounds++;
	return true;
}

static bool measure(struct run *r, bool counts)
{
	struct wf_keeper_report report;
	bool is_good = true;

	if (start(r) < 0)
		return fail(r->c, "no process can be started: %s", strerror(errno));
	r->kthreads = 1;
	r->step_all_s = 0.02;
	r->next_all_s = now_s() + r->step_all_s;
	if (r->c->load) {
		is_good = run_load(r);
		wf_keeper_stop(&r->keeper);
	} else if (!wait_and_look(r, r->keeper.report, now_s() + r->c->limit_s)) {
		is_good = fail(r->c, "%s the program has not ended after %g s; see --limit",
			       side_name(r), r->c->limit_s);
		wf_keeper_kill(&r->keeper);
		return false;
	}
	if (!wf_keeper_take(&r->keeper, &report))
		return fail(r->c, "%s the run was lost: somebody has killed its keeper",
			    side_name(r));
	if (!is_good) {
		/* A program that weft refuses has a better reason than its silence. */
		(void)take_complaint(r, report.status);
		return false;
	}
	return keep_result(r, &report, counts,
			   r->c->load ? r->load_s : (double)report.wall_ns / 1e9);
}

bool wf_compare_one_run(struct wf_compare *c, enum wf_compare_side_id side, bool counts)
{
	struct run r = { .c = c, .side = side, .load_out = -1 };
	bool is_good = false;

	r.in = open(c->input ? c->input : "/dev/null", O_RDONLY | O_CLOEXEC);
	r.out = memfd_create("stdout", MFD_CLOEXEC);
	r.err = memfd_create("stderr", MFD_CLOEXEC);
	if (r.in < 0)
		fail(c, "cannot read %s: %s", c->input ? c->input : "/dev/null", strerror(errno));
	else if (r.out < 0 || r.err < 0)
		fail(c, "no memory for the program's output: %s", strerror(errno));
	else
		is_good = measure(&r, counts);
	if (r.in >= 0)
		close(r.in);
	if (r.out >= 0)
		close(r.out);
	if (r.err >= 0)
		close(r.err);
	if (r.load_out >= 0)
		close(r.load_out);
	return is_good;
}

void wf_compare_one_run_done(void)
{
	if (first_output >= 0)
		close(first_output);
	first_output = -1;
}
