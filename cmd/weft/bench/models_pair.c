// SPDX-License-Identifier: Apache-2.0
/*
 * One server and its load: started, measured, ended.
 *
 * Called by: models.c. The load (bench/echo/load.c) is quiet whenever it has written a line, so what is read about the
 * server then belongs to the run between two lines, whole requests and nothing else.
 *
 * Invariant: neither process outlives the call, nor this process.
 */
#include <errno.h>
#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "machine.h"
#include "bench/models.h"
#include "text.h"

#define START_MS 60000   /* a server that does not say its port by then hangs */
#define ANSWER_MS 180000 /* longer than the load itself waits for anything */
#define COUNT_SECONDS 0.5
#define EXIT_UNAVAILABLE 3 /* bench/echo/echo.h */

struct pair {
	pid_t server, load, watcher;
	int port_fd, complaint_fd; /* the server's stdout and stderr */
	int to_load, from_load;
};

struct result {
	long long ns, cpu_ns, in_time, answers, p50, p99, p999;
	long long nr_errors;
	char first_error[160];
};

__attribute__((format(printf, 2, 3))) static bool wrong(struct wf_models_row *row,
							const char *format, ...)
{
	char text[sizeof(row->why_not)];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	wf_text_clean(row->why_not, sizeof(row->why_not), text);
	row->is_failure = true;
	return false;
}

/* The next line without its end, or false: the end, or nothing in time. */
static bool read_line(int fd, char *out, size_t bytes, int timeout_ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	size_t len = 0;

	while (len + 1 < bytes) {
		int ret = poll(&p, 1, timeout_ms);

		if (ret < 0 && errno == EINTR)
			continue;
		if (ret <= 0 || read(fd, out + len, 1) != 1)
			break;
		if (out[len] == '\n') {
			out[len] = '\0';
			return true;
		}
		len++;
	}
	out[len] = '\0';
	return false;
}

/* In the child: dies with us, sits on `cpu`, and becomes the program. */
static void become(pid_t parent, int cpu, char **argv)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(127);
	wf_models_pin(cpu);
	execv(argv[0], argv);
	dprintf(STDERR_FILENO, "cannot run %s: %s\n", argv[0], strerror(errno));
	_exit(127);
}

/* Pipes for the three standard streams; -1 leaves one as it is. */
static pid_t start(int cpu, char **argv, int in, int out, int err)
{
	pid_t parent = getpid(), pid = fork();

	if (pid != 0)
		return pid;
	if (in >= 0)
		(void)dup2(in, STDIN_FILENO);
	if (out >= 0)
		(void)dup2(out, STDOUT_FILENO);
	if (err >= 0)
		(void)dup2(err, STDERR_FILENO);
	become(parent, cpu, argv);
	return -1;
}

static bool start_server(const struct wf_models *m, struct wf_models_row *row, struct pair *p)
{
	char *native[] = { (char *)m->server, (char *)row->model->server_arg, NULL };
	char self[] = "/proc/self/exe", run[] = "run", end[] = "--";
	char *woven[] = { self, run, end, native[0], native[1], NULL };
	int out[2], err[2];

	if (pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0)
		return wrong(row, "pipe: %s", strerror(errno));
	p->server = start(m->server_cpu, row->model->is_woven ? woven : native, -1, out[1], err[1]);
	close(out[1]);
	close(err[1]);
	p->port_fd = out[0];
	p->complaint_fd = err[0];
	(void)fcntl(err[0], F_SETFL, O_NONBLOCK);
	return p->server > 0 || wrong(row, "fork: %s", strerror(errno));
}

static bool start_load(const struct wf_models *m, struct wf_models_row *row, struct pair *p,
		       const char *port)
{
	char nr[16], size[16], name[sizeof(m->load)], port_text[16];
	char *argv[] = { name, port_text, nr, size, NULL };
	int in[2], out[2];

	snprintf(name, sizeof(name), "%s", m->load);
	snprintf(port_text, sizeof(port_text), "%s", port);
	snprintf(nr, sizeof(nr), "%d", row->connections);
	snprintf(size, sizeof(size), "%d", m->size_bytes);
	if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
		return wrong(row, "pipe: %s", strerror(errno));
	p->load = start(m->load_cpu, argv, in[0], out[1], -1);
	close(in[0]);
	close(out[1]);
	p->to_load = in[1];
	p->from_load = out[0];
	return p->load > 0 || wrong(row, "fork: %s", strerror(errno));
}

/* The server's words on stderr, if any: the best reason there is. */
static bool complaint(const struct pair *p, char *out, size_t bytes)
{
	ssize_t n = read(p->complaint_fd, out, bytes - 1);
	char *text;

	out[n > 0 ? n : 0] = '\0';
	out[strcspn(out, "\n")] = '\0';
	text = strncmp(out, "echo-server: ", 13) == 0 ? out + 13 : out;
	memmove(out, text, strlen(text) + 1);
	return out[0] != '\0';
}

/* The server did not start: it has ended, or closed its stdout, or hangs. */
static bool no_server(struct wf_models_row *row, struct pair *p)
{
	char why[160];
	int status;

	if (waitpid(p->server, &status, WNOHANG) == 0) {
		kill(p->server, SIGKILL);
		(void)waitpid(p->server, &status, 0);
	}
	p->server = 0;
	if (!complaint(p, why, sizeof(why)))
		snprintf(why, sizeof(why), "the server did not start");
	(void)wrong(row, "%s", why);
	row->is_failure = !(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_UNAVAILABLE);
	return false;
}

static bool load_is_content(struct wf_models_row *row, const struct pair *p, const char *line,
			    const char *errors)
{
	char why[160];

	if (errors && strtol(errors + strlen("errors="), NULL, 10) == 0)
		return true;
	if (complaint(p, why, sizeof(why)))
		return wrong(row, "%s", why);
	line = strstr(line, "first=");
	return wrong(row, "%s", line ? line + strlen("first=") : "the load ended");
}

static bool run_for(struct wf_models_row *row, const struct pair *p, double seconds,
		    struct result *out)
{
	char line[512] = "";
	int nr;

	dprintf(p->to_load, "%.3f\n", seconds);
	(void)read_line(p->from_load, line, sizeof(line), ANSWER_MS);
	if (!load_is_content(row, p, line, strstr(line, "errors=")))
		return false;
	nr = sscanf(line,
		    "result ns=%lld cpu_ns=%lld in_time=%lld answers=%lld p50=%lld p99=%lld "
		    "p999=%lld",
		    &out->ns, &out->cpu_ns, &out->in_time, &out->answers, &out->p50, &out->p99,
		    &out->p999);
	return (nr == 7 && out->ns > 0 && out->answers > 0) ||
	       wrong(row, "the load says '%s'", line);
}

static long long cpu_ns(pid_t pid)
{
	struct timespec ts = { 0 };
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) == 0)
		(void)clock_gettime(clock, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

/* The number in the line "name:\tnumber" of a status file. */
static long long field(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	return at ? strtoll(at + strlen(name) + 1, NULL, 10) : 0;
}

static long long memory_bytes(pid_t pid)
{
	const struct wf_machine live = { "" };
	char path[64], text[8192];

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	if (wf_machine_read(&live, path, text, sizeof(text)) <= 0)
		return 0;
	return (field(text, "\nVmRSS") + field(text, "\nVmPTE")) * 1024;
}

/* Context switches of all threads that there are; none of them ends while we measure. */
static long long switches(pid_t pid)
{
	const struct wf_machine live = { "" };
	char path[PATH_MAX], text[8192];
	struct dirent *entry;
	long long sum = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%s/status", (int)pid, entry->d_name);
		if (wf_machine_read(&live, path, text, sizeof(text)) > 0)
			sum += field(text, "\nvoluntary_ctxt_switches") +
			       field(text, "\nnonvoluntary_ctxt_switches");
	}
	if (dir)
		closedir(dir);
	return sum;
}

static void go(void *argument)
{
	struct pair *p = argument;

	dprintf(p->to_load, "%.3f\n", COUNT_SECONDS);
}

/* A child that ends when the load has said something: who counts waits for processes, and for nothing else. */
static pid_t watch(const struct pair *p)
{
	struct pollfd from_load = { .fd = p->from_load, .events = POLLIN };
	pid_t parent = getpid(), pid = fork();

	if (pid != 0)
		return pid;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() == parent)
		(void)poll(&from_load, 1, ANSWER_MS);
	_exit(0);
}

static double calls_per_answer(const struct wf_models *m, struct pair *p)
{
	char line[512];
	long long nr, answers = 0;
	const char *at;

	p->watcher = watch(p);
	if (p->watcher < 0)
		return NAN;
	nr = wf_models_calls_count(p->server, m->server_cpu, p->watcher, go, p);
	wf_models_pin(m->load_cpu);
	if (nr == WF_MODELS_CALLS_DEAD)
		p->server = 0;
	if (nr < 0)
		return NAN;
	p->watcher = 0;
	if (read_line(p->from_load, line, sizeof(line), ANSWER_MS) &&
	    (at = strstr(line, "answers=")) && strstr(line, "errors=0 "))
		answers = strtoll(at + strlen("answers="), NULL, 10);
	return answers > 0 ? (double)nr / (double)answers : NAN;
}

static bool measure(const struct wf_models *m, struct wf_models_row *row, bool counts_calls,
		    struct pair *p, struct wf_models_sample *out)
{
	long long memory, cpu, nr_switches;
	struct result r = { 0 };
	char line[512] = "";

	if (!start_server(m, row, p))
		return false;
	if (!read_line(p->port_fd, line, sizeof(line), START_MS))
		return no_server(row, p);
	/* Whatever it says before it serves is that it does not run as it should. */
	if (row->model->is_woven && complaint(p, line + 16, sizeof(line) - 16))
		return wrong(row, "%s", line + 16);
	memory = memory_bytes(p->server);
	if (!start_load(m, row, p, line))
		return false;
	(void)read_line(p->from_load, line, sizeof(line), ANSWER_MS);
	if (!load_is_content(row, p, line, strstr(line, "errors=")))
		return false;
	/* Warm: caches, what the server learns about its threads, the processor's clock. */
	if (!run_for(row, p, m->seconds / 4, &r))
		return false;
	nr_switches = switches(p->server);
	cpu = cpu_ns(p->server);
	if (!run_for(row, p, m->seconds, &r))
		return false;
	cpu = cpu_ns(p->server) - cpu;
	nr_switches = switches(p->server) - nr_switches;

	for (int i = 0; i < WF_MODELS_NR_METRICS; i++)
		out->value[i] = NAN;
	out->value[WF_MODELS_RATE] = (double)r.in_time / ((double)r.ns / 1e9);
	if (cpu > 0)
		out->value[WF_MODELS_PER_CPU_S] = (double)r.answers / ((double)cpu / 1e9);
	out->value[WF_MODELS_P50] = (double)r.p50 / 1e3;
	out->value[WF_MODELS_P99] = (double)r.p99 / 1e3;
	out->value[WF_MODELS_P999] = (double)r.p999 / 1e3;
	out->value[WF_MODELS_SWITCHES] = (double)nr_switches / (double)r.answers;
	out->value[WF_MODELS_MEMORY] = (double)(memory_bytes(p->server) - memory) /
				       (double)row->connections;
	out->value[WF_MODELS_LOAD_CPU] = (double)r.cpu_ns / (double)r.ns;
	if (counts_calls)
		out->value[WF_MODELS_CALLS] = calls_per_answer(m, p);
	return true;
}

/* A traced process ends when each of its threads has been waited for, so: all that there is. */
static void end_both(const struct pair *p)
{
	if (p->server > 0)
		kill(p->server, SIGKILL);
	if (p->load > 0)
		kill(p->load, SIGKILL);
	if (p->watcher > 0)
		kill(p->watcher, SIGKILL);
	while (waitpid(-1, NULL, __WALL) > 0 || errno == EINTR)
		;
}

static void close_one(int fd)
{
	if (fd >= 0)
		close(fd);
}

bool wf_models_pair_measure(const struct wf_models *m, struct wf_models_row *row, bool counts_calls,
			    struct wf_models_sample *out)
{
	struct pair p = { .port_fd = -1, .complaint_fd = -1, .to_load = -1, .from_load = -1 };
	bool is_good;

	wf_models_pin(m->load_cpu);
	is_good = measure(m, row, counts_calls, &p, out);
	end_both(&p);
	close_one(p.port_fd);
	close_one(p.complaint_fd);
	close_one(p.to_load);
	close_one(p.from_load);
	return is_good;
}
