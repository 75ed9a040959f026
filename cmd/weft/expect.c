// SPDX-License-Identifier: Apache-2.0
/*
 * Expectations of a program, and of a process that runs already; see expect.h.
 *
 * Called by: report.c. Invariant: reads only; what a process shows of itself is bounded in number and never believed to be
 * well-formed. The process goes on meanwhile, so that a figure is of one moment.
 */
#include "expect.h"

#include <ctype.h>
#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "calls.h"
#include "checks.h"
#include "text.h"

#define MOST_THREADS 4096u
#define MOST_MAPPINGS 65536u
#define LOOKS 20
#define LOOK_NS 10000000
/* As weft dump --stacks: twice what was used, in steps. */
#define STEP_BYTES (16ull << 10)
#define LEAST_BYTES (64ull << 10)

static const struct {
	const char *prefix, *words;
} locks[] = {
	{ "pthread_mutex_lock", "mutexes" },
	{ "pthread_mutex_timedlock", "mutexes" },
	{ "pthread_cond_", "conditions" },
	{ "pthread_rwlock_", "read-write locks" },
	{ "pthread_barrier_", "barriers" },
	{ "sem_wait", "semaphores" },
	{ "sem_timedwait", "semaphores" },
	{ "pthread_spin_lock", "spin locks (who waits computes)" },
};

pid_t wf_expect_pid(const char *name)
{
	char path[64];
	long pid = 0;

	for (const char *c = name; *c; c++) {
		if (!isdigit((unsigned char)*c) || pid > INT_MAX / 16)
			return 0;
		pid = pid * 10 + (*c - '0');
	}
	snprintf(path, sizeof(path), "/proc/%ld/task", pid);
	return pid > 0 && access(path, F_OK) == 0 ? (pid_t)pid : 0;
}

static void append(char *out, size_t bytes, const char *separator, const char *words)
{
	size_t len = strlen(out);

	snprintf(out + len, bytes - len, "%s%s", len ? separator : "", words);
}

void wf_expect_import(struct wf_expect *e, const char *name)
{
	for (size_t i = 0; i < sizeof(locks) / sizeof(locks[0]); i++) {
		if (strncmp(name, locks[i].prefix, strlen(locks[i].prefix)) == 0 &&
		    !strstr(e->locks, locks[i].words))
			append(e->locks, sizeof(e->locks), ", ", locks[i].words);
	}
}

/* --- a process --- */

static size_t read_of(pid_t pid, const char *tid, const char *name, char *out, size_t bytes)
{
	const struct wf_machine m = { .root = "" };
	char path[128];
	int len;

	snprintf(path, sizeof(path), "/proc/%d/task/%.20s/%s", (int)pid, tid, name);
	len = wf_machine_read(&m, path, out, bytes);
	return len > 0 ? (size_t)len : 0;
}

struct mapping {
	uint64_t low, high, resident;
};

struct process {
	struct wf_expect *e;
	struct mapping *mappings;
	size_t nr_mappings;
	unsigned int waits[512]; /* by number of the system call */
	bool is_hidden;          /* where its threads are may not be seen */
};

static void read_mappings(struct process *p, pid_t pid)
{
	char path[64], *line = NULL;
	size_t room = 0;
	FILE *in;

	snprintf(path, sizeof(path), "/proc/%d/smaps", (int)pid);
	in = fopen(path, "re");
	p->mappings = calloc(MOST_MAPPINGS, sizeof(*p->mappings));
	while (in && p->mappings && getline(&line, &room, in) > 0) {
		unsigned long long low, high;

		if (sscanf(line, "%llx-%llx ", &low, &high) == 2 && low < high) {
			if (p->nr_mappings == MOST_MAPPINGS)
				break;
			p->mappings[p->nr_mappings++] = (struct mapping){ low, high, 0 };
			p->e->is_woven |= strstr(line, "/libweft.so") != NULL;
		} else if (p->nr_mappings && sscanf(line, "Rss: %llu kB", &low) == 1) {
			p->mappings[p->nr_mappings - 1].resident = (uint64_t)low << 10;
		}
	}
	free(line);
	if (in)
		(void)fclose(in);
}

static void take_stack(struct process *p, uint64_t sp)
{
	size_t low = 0, high = p->nr_mappings;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct mapping *m = &p->mappings[middle];

		if (sp < m->low) {
			high = middle;
		} else if (sp >= m->high) {
			low = middle + 1;
		} else {
			p->e->nr_stacks++;
			if (m->resident > p->e->used_bytes) {
				p->e->used_bytes = m->resident;
				p->e->stack_bytes = m->high - m->low;
			}
			return;
		}
	}
}

/* "202 0x7f.. ... SP PC", "-1 SP PC", or "running". */
static void take_call(struct process *p, const char *text)
{
	long long nr;
	const char *at = strrchr(text, ' ');
	char *end;

	if (strncmp(text, "running", 7) == 0)
		return;
	nr = strtoll(text, &end, 10);
	if (end == text || !at)
		return;
	if (nr >= 0 && nr < (long long)(sizeof(p->waits) / sizeof(p->waits[0])))
		p->waits[nr]++;
	while (at > text && at[-1] != ' ')
		at--;
	take_stack(p, strtoull(at, NULL, 16));
}

static unsigned int look_at_threads(struct process *p, pid_t pid, bool is_first)
{
	unsigned int running = 0, nr = 0;
	char path[64], text[512];
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir)) && nr < MOST_THREADS) {
		const char *state;

		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		nr++;
		/* A name may have spaces and brackets: the state is behind the last one. */
		if (read_of(pid, entry->d_name, "stat", text, sizeof(text)) > 0 &&
		    (state = strrchr(text, ')')) && state[1] && state[2] == 'R')
			running++;
		if (!is_first)
			continue;
		if (read_of(pid, entry->d_name, "syscall", text, sizeof(text)) > 0)
			take_call(p, text);
		else
			p->is_hidden = true;
	}
	if (dir)
		(void)closedir(dir);
	if (is_first)
		p->e->nr_threads = nr;
	return running;
}

static const struct wf_calls_row *row_of(int nr)
{
	for (size_t i = 0; i < wf_calls_nr_system; i++) {
		if (wf_calls_system[i].nr == nr)
			return &wf_calls_system[i];
	}
	return NULL;
}

static void describe_waits(struct process *p)
{
	struct wf_expect *e = p->e;
	char part[96];

	snprintf(e->now, sizeof(e->now), "%zu%s kernel thread%s", e->nr_threads,
		 e->nr_threads == MOST_THREADS ? " or more" : "", e->nr_threads == 1 ? "" : "s");
	for (int shown = 0; shown < 6; shown++) {
		const struct wf_calls_row *row;
		int most = 0;

		for (int i = 0; i < (int)(sizeof(p->waits) / sizeof(p->waits[0])); i++)
			most = p->waits[i] > p->waits[most] ? i : most;
		if (!p->waits[most])
			break;
		row = row_of(most);
		if (row)
			snprintf(part, sizeof(part), "%u in %s (%s)", p->waits[most], row->name,
				 wf_calls_fate_names[row->fate]);
		else
			snprintf(part, sizeof(part), "%u in call %d", p->waits[most], most);
		append(e->now, sizeof(e->now), shown ? ", " : ": ", part);
		p->waits[most] = 0;
	}
	if (p->is_hidden)
		append(e->now, sizeof(e->now), "; ",
		       "where they wait only their user and root see");
}

static void look_at_process(struct wf_expect *e, pid_t pid)
{
	const struct timespec pause = { .tv_nsec = LOOK_NS };
	static struct process p; /* static for its size */
	cpu_set_t set;

	p = (struct process){ .e = e };
	e->cpus = sched_getaffinity(pid, sizeof(set), &set) < 0 ? 0 : (unsigned int)CPU_COUNT(&set);
	read_mappings(&p, pid);
	for (int i = 0; i < LOOKS; i++) {
		unsigned int running = look_at_threads(&p, pid, i == 0);

		e->running = running > e->running ? running : e->running;
		(void)nanosleep(&pause, NULL);
	}
	free(p.mappings);
	describe_waits(&p);
}

/* --- proposals --- */

static void propose_for_process(struct wf_expect *e)
{
	uint64_t bytes = (e->used_bytes * 2 + STEP_BYTES - 1) / STEP_BYTES * STEP_BYTES;

	if (e->is_woven) {
		snprintf(
			e->stack, sizeof(e->stack),
			"weft dump --stacks %d: it runs under weft already, and that measures each",
			(int)e->pid);
		return;
	}
	if (e->nr_stacks == 0) {
		snprintf(e->stack, sizeof(e->stack), "%s",
			 "as it is: its stacks may not be seen by this user");
	} else {
		e->proposed_bytes = bytes < LEAST_BYTES ? LEAST_BYTES : bytes;
		snprintf(e->stack, sizeof(e->stack),
			 "weft run --stack-size %lluK: of %zu stacks the fullest has %llu KiB in "
			 "use; twice that, if the deepest call has been made",
			 (unsigned long long)e->proposed_bytes >> 10, e->nr_stacks,
			 (unsigned long long)e->used_bytes >> 10);
	}
	if (!e->cpus)
		return;
	e->proposed_workers = e->running < 1 ? 1 : e->running < e->cpus ? e->running : e->cpus;
	snprintf(
		e->workers, sizeof(e->workers),
		"weft run --workers %u: it may use %u CPU%s; at most %u of its threads ran at once "
		"in %d looks within 0.2 s",
		e->proposed_workers, e->cpus, e->cpus == 1 ? "" : "s", e->running, LOOKS);
}

static void propose_for_file(struct wf_expect *e)
{
	const struct wf_machine m = { .root = "" };
	struct rlimit stack = { RLIM_INFINITY, RLIM_INFINITY }, addresses = stack;
	struct wf_checks_finding f = { .value = "" };

	(void)getrlimit(RLIMIT_STACK, &stack);
	(void)getrlimit(RLIMIT_AS, &addresses);
	if (addresses.rlim_cur != RLIM_INFINITY) {
		e->proposed_bytes = 256 << 10;
		snprintf(e->stack, sizeof(e->stack),
			 "weft run --stack-size 256K: the address space is limited to %llu MiB",
			 (unsigned long long)addresses.rlim_cur >> 20);
	} else {
		snprintf(e->stack, sizeof(e->stack), "%s",
			 "as it is: a stack takes the memory that was touched; of a process that "
			 "runs, --program PID says how much");
	}
	for (size_t i = 0; i < wf_checks_nr; i++) {
		if (strcmp(wf_checks[i].id, "workers") == 0)
			wf_checks_run(&wf_checks[i], &m, &f);
	}
	snprintf(e->workers, sizeof(e->workers), "as it is: %.150s", f.value);
}

void wf_expect_look(struct wf_expect *e, pid_t pid)
{
	e->pid = pid;
	if (pid) {
		look_at_process(e, pid);
		propose_for_process(e);
	} else {
		propose_for_file(e);
	}
}
