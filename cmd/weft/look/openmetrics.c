// SPDX-License-Identifier: Apache-2.0
/* The text of `weft metrics`; see openmetrics.h. */
#include "look/openmetrics.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "look/counts.h"
#include "target/rings.h"
#include "text.h"

#define MAX_THREADS 100000 /* those beyond are counted, and their states not looked at */
#define MAX_VALUES 32      /* of an enum of the target */
#define LABEL_BYTES 512
#define READY_NS 2000000 /* less than a slice lasts */
#define READY_LOOKS 5

struct page {
	FILE *out;
	enum wf_openmetrics_format format;
};

/* The older format has the whole name of the series here, no units and no kind of its own for what never changes. */
static void family(const struct page *p, const char *name, const char *type, const char *help)
{
	bool is_old = p->format == WF_OPENMETRICS_TEXT, is_info = strcmp(type, "info") == 0;
	const char *suffix = !is_old                        ? ""
			     : is_info                      ? "_info"
			     : strcmp(type, "counter") == 0 ? "_total"
							    : "";

	fprintf(p->out, "# TYPE weft_%s%s %s\n", name, suffix, is_old && is_info ? "gauge" : type);
	if (!is_old && strcmp(name + (strlen(name) > 7 ? strlen(name) - 7 : 0), "seconds") == 0)
		fprintf(p->out, "# UNIT weft_%s seconds\n", name);
	fprintf(p->out, "# HELP weft_%s%s %s\n", name, suffix, help);
}

static void gauge(const struct page *p, const char *name, const char *help, double value)
{
	family(p, name, "gauge", help);
	fprintf(p->out, "weft_%s %.13g\n", name, value);
}

static const char *label(char out[LABEL_BYTES], const char *from)
{
	char text[LABEL_BYTES / 2];
	size_t len = 0;

	wf_text_clean(text, sizeof(text), from);
	for (const char *c = text; *c && len + 2 < LABEL_BYTES; c++) {
		if (*c == '"' || *c == '\\')
			out[len++] = '\\';
		out[len++] = *c;
	}
	out[len] = '\0';
	return out;
}

/* A wait says something of those that wait, and of those in a call: their state is running. */
static bool goes_together(const struct wf_layout *l, uint64_t state, uint64_t wait)
{
	const char *s = wf_layout_name(l, "state", state), *w = wf_layout_name(l, "wait", wait);

	if (strcmp(s, "free") == 0 || strcmp(s, "dead") == 0)
		return false;
	return strcmp(w, "none") == 0 || strcmp(s, "parked") == 0 ||
	       (strcmp(s, "running") == 0 && strcmp(w, "call") == 0);
}

static void write_threads(const struct page *p, const struct wf_layout *l,
			  const struct wf_threads *s)
{
	size_t nr[MAX_VALUES][MAX_VALUES] = { { 0 } };

	for (size_t i = 0; i < s->nr_threads; i++) {
		const struct wf_dump_thread *d = &s->threads[i];

		if (d->state < MAX_VALUES && d->wait_kind < MAX_VALUES)
			nr[d->state][goes_together(l, d->state, d->wait_kind) ? d->wait_kind : 0]++;
	}
	family(p, "threads", "gauge", "Threads of the program, by state and what they wait for.");
	for (unsigned i = 0; i < MAX_VALUES; i++) {
		for (unsigned j = 0; j < MAX_VALUES; j++) {
			const char *state = wf_layout_name(l, "state", i);
			const char *wait = wf_layout_name(l, "wait", j);

			if (strcmp(state, "?") != 0 && strcmp(wait, "?") != 0 &&
			    goes_together(l, i, j))
				fprintf(p->out, "weft_threads{state=\"%s\",wait=\"%s\"} %zu\n",
					state, wait, nr[i][j]);
		}
	}
	fprintf(p->out, "weft_threads{state=\"not read\",wait=\"none\"} %zu\n",
		s->nr_alive - s->nr_threads);
	gauge(p, "threads_not_begun", "Threads of weft_thread_spawn() that no pthread runs yet.",
	      (double)s->nr_not_begun);
}

static void write_kernel_threads(const struct page *p, const struct wf_threads *s)
{
	size_t nr[WF_NR_ROLES] = { 0 };

	for (size_t i = 0; i < s->nr_kthreads; i++)
		nr[wf_threads_role(&s->kthreads[i])]++;
	family(p, "kernel_threads", "gauge", "Kernel threads of the runtime, by what they do.");
	for (size_t i = 0; i < WF_NR_ROLES; i++)
		fprintf(p->out, "weft_kernel_threads{role=\"%s\"} %zu\n", wf_threads_roles[i],
			nr[i]);
	family(p, "worker_queue", "gauge", "Threads that are ready and wait for this worker.");
	for (size_t i = 0; i < s->nr_workers; i++)
		fprintf(p->out, "weft_worker_queue{worker=\"%u\"} %u\n", s->workers[i].index,
			s->workers[i].nr_queued + s->workers[i].nr_inbox);
}

static void write_workers(const struct page *p, const struct wf_threads *s)
{
	family(p, "worker_run_seconds", "counter",
	       "Time in which the worker ran threads, or looked for some.");
	for (size_t i = 0; i < s->nr_workers; i++)
		fprintf(p->out, "weft_worker_run_seconds_total{worker=\"%u\"} %.10g\n",
			s->workers[i].index, (double)s->workers[i].awake_ns / 1e9);
}

static double longest_call(const struct wf_layout *l, const struct wf_threads *s)
{
	double longest = 0;

	for (size_t i = 0; i < s->nr_threads; i++) {
		const struct wf_dump_thread *d = &s->threads[i];
		double age = ((double)s->now - (double)d->wait_since) / 1e9;

		if (d->wait_since && age > longest &&
		    strcmp(wf_layout_name(l, "wait", d->wait_kind), "call") == 0)
			longest = age;
	}
	return longest;
}

static void write_counters(const struct page *p, const struct wf_threads *s)
{
	for (int i = 0; i < WF_NR_COUNTS; i++) {
		family(p, wf_counts[i].name, "counter", wf_counts[i].help);
		fprintf(p->out, "weft_%s_total %llu\n", wf_counts[i].name,
			(unsigned long long)s->count[i]);
	}
}

static void write_process(const struct page *p, const struct wf_look *l,
			  const struct wf_look_kernel *kernel)
{
	char text[LABEL_BYTES];

	family(p, "process", "info", "The process that is looked at.");
	fprintf(p->out, "weft_process_info{program=\"%s\",pid=\"%d\",weft=\"%s\"} 1\n",
		label(text, l->target.program), l->target.pid, WEFT_VERSION);
	gauge(p, "process_start_time_seconds", "When the process began, since the epoch.",
	      kernel->began_s);
	family(p, "cpu_seconds", "counter", "CPU time of the process.");
	fprintf(p->out, "weft_cpu_seconds_total %.10g\n", kernel->cpu_s);
}

/* A thread that is ready at one moment says nothing: those that still are a little later are behind. */
static double oldest_ready(struct wf_look *l, struct wf_shares *shares, const struct wf_threads *s)
{
	const struct timespec pause = { .tv_nsec = READY_NS };
	int64_t oldest;

	wf_shares_look(shares, &l->layout, s, 0);
	oldest = shares->oldest_ready_ns;
	for (int i = 0; shares->oldest_ready_tid && i < READY_LOOKS; i++) {
		(void)nanosleep(&pause, NULL);
		wf_shares_sample(shares, l);
		if (shares->oldest_ready_ns > oldest)
			oldest = shares->oldest_ready_ns;
	}
	return (double)oldest / 1e9;
}

static void write_rings(const struct page *p, const struct wf_look *l)
{
	uint64_t written, lost;

	wf_rings_count(&l->layout, &l->target, &written, &lost);
	family(p, "trace_events", "counter", "Events that the program has recorded.");
	fprintf(p->out, "weft_trace_events_total %" PRIu64 "\n", written);
	family(p, "trace_lost", "counter", "Those that newer ones have overwritten.");
	fprintf(p->out, "weft_trace_lost_total %" PRIu64 "\n", lost);
}

bool wf_openmetrics_write(struct wf_look *l, struct wf_shares *shares, FILE *out,
			  enum wf_openmetrics_format format)
{
	const struct page p = { out, format };
	struct wf_look_kernel kernel;
	unsigned nr_opened = l->nr_opened;
	struct wf_threads s;
	bool is_ok = wf_look_at(l, &s, &kernel, MAX_THREADS, NULL);

	if (is_ok) {
		if (l->nr_opened != nr_opened)
			wf_shares_done(shares);
		write_process(&p, l, &kernel);
		gauge(&p, "started", "1 when the threads are weft's: the program has made one.",
		      s.is_started);
		gauge(&p, "workers", "Workers.", (double)s.nr_workers);
		write_threads(&p, &l->layout, &s);
		write_kernel_threads(&p, &s);
		write_workers(&p, &s);
		gauge(&p, "oldest_ready_seconds",
		      "How long, at least, a thread has been ready and found no worker.",
		      oldest_ready(l, shares, &s));
		gauge(&p, "longest_call_seconds",
		      "How long the longest system call lasts that holds a kernel thread.",
		      longest_call(&l->layout, &s));
		gauge(&p, "deadlocked_threads",
		      "Threads that wait for one another in a circle, over mutexes and joins.",
		      (double)wf_look_deadlocked(l, &s));
		write_counters(&p, &s);
		write_rings(&p, l);
		gauge(&p, "incomplete", "1 when the look took too long, and something is missing.",
		      l->budget.spent != NULL);
		if (format == WF_OPENMETRICS)
			fputs("# EOF\n", out);
	}
	wf_threads_done(&s);
	return is_ok;
}
