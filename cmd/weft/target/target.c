// SPDX-License-Identifier: Apache-2.0
/* A live process: memory through /proc/PID/mem, registers through ptrace; see target.h. */
#include "target/target.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "target/core.h"

#define ENDING_LIMIT_MS 200
#define STOP_LIMIT_MS 2000 /* a thread in uninterruptible sleep does not stop: go on without it */
#define GONE_LOOKS 1000    /* mappings; nearly every first one can be read */
#define MAX_MAPS (1u << 22)
#define MAX_MAP_BYTES (256u << 20) /* of their names */
#define STOP_ROUNDS 20 /* new kernel threads may appear while the old ones are being stopped */

bool wf_target_fail(struct wf_target *t, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(t->error, sizeof(t->error), format, args);
	va_end(args);
	return false;
}

static int64_t now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

/* The number after "NAME:" in /proc/PID/status, or -1. */
static long status_number(int pid, const char *name, int base)
{
	char path[64], line[256];
	long value = -1;
	size_t len = strlen(name);
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f)) {
		if (strncmp(line, name, len) == 0 && line[len] == ':')
			value = (long)strtoul(line + len + 1, NULL, base);
	}
	fclose(f);
	return value;
}

/* The number that a kernel thread has in its own PID namespace: the last of NSpid. */
static int inner_number(int pid, int tid)
{
	char path[64], line[256];
	int number = tid;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", pid, tid);
	f = fopen(path, "re");
	if (!f)
		return number;
	while (fgets(line, sizeof(line), f)) {
		const char *last = strrchr(line, '\t');

		if (strncmp(line, "NSpid:", 6) == 0 && last)
			number = (int)strtol(last + 1, NULL, 10);
	}
	fclose(f);
	return number;
}

/* One that ends has given up its memory a while before it is gone: the kernel then takes it for one of another user. */
static bool is_ending(int pid)
{
	struct pollfd end = { .fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN };
	bool has_ended;

	if (end.fd < 0)
		return errno == ESRCH;
	has_ended = poll(&end, 1, ENDING_LIMIT_MS) == 1;
	close(end.fd);
	return has_ended;
}

/* Why ptrace or /proc/PID/mem said no, and what to do. */
static bool fail_permission(struct wf_target *t)
{
	long tracer = status_number(t->pid, "TracerPid", 10);
	long owner = status_number(t->pid, "Uid", 10);
	char scope = '0';
	int fd;

	if (tracer > 0)
		return wf_target_fail(
			t,
			"process %d is being traced by process %ld; end that, or load "
			"weft-gdb.py into that debugger",
			t->pid, tracer);
	if (is_ending(t->pid))
		return wf_target_fail(t, "process %d has ended", t->pid);
	if (geteuid() != 0 && owner >= 0 && (uid_t)owner != geteuid())
		return wf_target_fail(
			t,
			"may not read process %d: it belongs to user %ld; run weft as "
			"that user or as root",
			t->pid, owner);
	fd = open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		if (read(fd, &scope, 1) != 1)
			scope = '0';
		close(fd);
	}
	if (scope != '0')
		return wf_target_fail(
			t,
			"may not read process %d: kernel.yama.ptrace_scope is %c; run weft "
			"as root, or set it to 0",
			t->pid, scope);
	return wf_target_fail(
		t,
		"may not read process %d: that takes root, and in a container the capability "
		"SYS_PTRACE",
		t->pid);
}

uint64_t wf_target_pending(const struct wf_target *t)
{
	long set = status_number(t->pid, "ShdPnd", 16);

	/* -1: there is no such line. No process has all 64 pending: two of them cannot be. */
	return set == -1 ? 0 : (uint64_t)set;
}

static bool add_map(struct wf_target *t, const struct wf_target_map *m)
{
	if ((t->nr_maps & (t->nr_maps - 1)) == 0) {
		size_t room = t->nr_maps ? t->nr_maps * 2 : 1;
		void *p = realloc(t->maps, room * sizeof(*t->maps));

		if (!p)
			return false;
		t->maps = p;
	}
	t->maps[t->nr_maps++] = *m;
	return true;
}

static bool read_maps(struct wf_target *t)
{
	char path[64], *line = NULL;
	size_t room = 0, bytes = 0;
	bool is_ok = true;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", t->pid);
	f = fopen(path, "re");
	if (!f)
		return errno == ENOENT ? wf_target_fail(t, "no process %d", t->pid)
				       : fail_permission(t);
	while (is_ok && getline(&line, &room, f) > 0) {
		struct wf_target_map m = { 0 };
		unsigned long start, end, offset;
		char rights[5];
		int at = 0;

		line[strcspn(line, "\n")] = '\0';
		if (sscanf(line, "%lx-%lx %4s %lx %*s %*s %n", &start, &end, rights, &offset, &at) <
		    4)
			continue;
		bytes += at ? strlen(line + at) : 0;
		if (t->nr_maps == MAX_MAPS || bytes > MAX_MAP_BYTES) {
			is_ok = wf_target_fail(
				t, "process %d has more mappings than can be looked at", t->pid);
			break;
		}
		m = (struct wf_target_map){ .start = start,
					    .end = end,
					    .offset = offset,
					    .path = strdup(at ? line + at : ""),
					    .has_code = rights[2] == 'x' };
		is_ok = (m.path && add_map(t, &m)) || wf_target_fail(t, "out of memory");
		if (!is_ok)
			free(m.path);
	}
	free(line);
	fclose(f);
	return is_ok;
}

/* A container has a root of its own: other mounts, perhaps another file system. */
static bool has_own_root(int pid)
{
	char path[64], ours[64], theirs[64];
	struct stat a, b;
	ssize_t n, m;

	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", pid);
	n = readlink("/proc/self/ns/mnt", ours, sizeof(ours));
	m = readlink(path, theirs, sizeof(theirs));
	if (n > 0 && (n != m || memcmp(ours, theirs, (size_t)n) != 0))
		return true;
	snprintf(path, sizeof(path), "/proc/%d/root", pid);
	return stat("/", &a) == 0 && stat(path, &b) == 0 &&
	       (a.st_dev != b.st_dev || a.st_ino != b.st_ino);
}

bool wf_target_open_process(struct wf_target *t, int pid, struct wf_budget *budget)
{
	char path[64];
	ssize_t len;

	*t = (struct wf_target){ .pid = pid, .memory_fd = -1, .budget = budget };
	snprintf(path, sizeof(path), "/proc/%d", pid);
	if (access(path, F_OK) < 0)
		return wf_target_fail(t, "no process %d", pid);
	if (status_number(pid, "Tgid", 10) != pid)
		return wf_target_fail(t, "%d is a kernel thread of process %ld", pid,
				      status_number(pid, "Tgid", 10));
	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	len = readlink(path, t->program, sizeof(t->program) - 1);
	if (len < 0) {
		if (errno == EACCES || errno == EPERM)
			return fail_permission(t);
		return wf_target_fail(t, "process %d has ended, or is the kernel's own", pid);
	}
	t->program[len] = '\0';
	t->inner_pid = inner_number(pid, pid);
	t->has_own_root = has_own_root(pid);
	if (!read_maps(t))
		return false;
	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	t->memory_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (t->memory_fd < 0)
		return fail_permission(t);
	return true;
}

void wf_target_done(struct wf_target *t)
{
	wf_target_resume(t);
	if (t->memory_fd >= 0)
		close(t->memory_fd);
	for (size_t i = 0; i < t->nr_maps; i++)
		free(t->maps[i].path);
	free(t->maps);
	free(t->lwps);
	wf_core_done(t);
	*t = (struct wf_target){ .memory_fd = -1 };
}

static void read_name(int pid, struct wf_target_lwp *l)
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", pid, l->tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	n = read(fd, l->name, sizeof(l->name) - 1);
	close(fd);
	l->name[n > 0 ? n : 0] = '\0';
	l->name[strcspn(l->name, "\n")] = '\0';
}

static int by_tid(const void *a, const void *b)
{
	const struct wf_target_lwp *x = a, *y = b;

	return (x->tid > y->tid) - (x->tid < y->tid);
}

static int by_inner_tid(const void *a, const void *b)
{
	const struct wf_target_lwp *x = a, *y = b;

	return (x->inner_tid > y->inner_tid) - (x->inner_tid < y->inner_tid);
}

static void sort_lwps(struct wf_target *t, int (*compare)(const void *, const void *))
{
	if (t->nr_lwps)
		qsort(t->lwps, t->nr_lwps, sizeof(*t->lwps), compare);
}

struct wf_target_lwp *wf_target_add_lwp(struct wf_target *t)
{
	if ((t->nr_lwps & (t->nr_lwps - 1)) == 0) {
		size_t room = t->nr_lwps ? t->nr_lwps * 2 : 1;
		void *p = realloc(t->lwps, room * sizeof(*t->lwps));

		if (!p)
			return NULL;
		t->lwps = p;
	}
	return &t->lwps[t->nr_lwps++];
}

/* Seizes and interrupts what is new; returns how many. *out_error: errno of the first refusal. */
static int seize_new(struct wf_target *t, int *out_error)
{
	size_t nr_known = t->nr_lwps;
	char path[64];
	struct dirent *d;
	int nr = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", t->pid);
	dir = opendir(path);
	if (!dir)
		return 0;
	sort_lwps(t, by_tid);
	while ((d = readdir(dir))) {
		const struct wf_target_lwp key = { .tid = (int)strtol(d->d_name, NULL, 10) };
		struct wf_target_lwp *l;

		if (key.tid <= 0 ||
		    (nr_known && bsearch(&key, t->lwps, nr_known, sizeof(key), by_tid)))
			continue;
		l = wf_target_add_lwp(t);
		if (!l)
			break;
		*l = (struct wf_target_lwp){ .tid = key.tid, .inner_tid = key.tid, .call = -1 };
		if (t->inner_pid != t->pid)
			l->inner_tid = inner_number(t->pid, l->tid);
		nr++;
		/* Kernel helpers (io_uring) refuse, and threads that just ended: neither has a stack to show. */
		if (ptrace(PTRACE_SEIZE, l->tid, 0, 0) < 0) {
			if (errno != ESRCH && !*out_error)
				*out_error = errno;
			l->is_refused = errno == EPERM;
			continue;
		}
		l->is_held = true;
		(void)ptrace(PTRACE_INTERRUPT, l->tid, 0, 0);
	}
	closedir(dir);
	return nr;
}

static void read_registers(struct wf_target_lwp *l)
{
	struct user_regs_struct r;
	struct iovec v = { &r, sizeof(r) };

	if (ptrace(PTRACE_GETREGSET, l->tid, (void *)NT_PRSTATUS, &v) < 0)
		return;
	wf_core_convert_regs(&r, &l->regs);
	l->call = (long)r.orig_rax;
}

/* Waits until every held thread has stopped or ended, at most until limit. */
static void wait_stopped(struct wf_target *t, int64_t limit)
{
	for (;;) {
		const struct timespec pause = { .tv_nsec = 200000 };
		bool is_any = false;

		for (size_t i = 0; i < t->nr_lwps; i++) {
			struct wf_target_lwp *l = &t->lwps[i];
			int status;
			pid_t ret;

			if (!l->is_held || l->is_stopped)
				continue;
			ret = waitpid(l->tid, &status, __WALL | WNOHANG);
			if (ret == 0) {
				is_any = true;
				continue;
			}
			if (ret < 0 || !WIFSTOPPED(status)) {
				l->is_held = false; /* it ended */
				continue;
			}
			l->is_stopped = true;
			/* Without the event number it is a signal on its way to the program. */
			if (status >> 16 == 0)
				l->signal = WSTOPSIG(status);
			read_registers(l);
		}
		if (!is_any || now_us() >= limit)
			return;
		nanosleep(&pause, NULL);
	}
}

bool wf_target_stop(struct wf_target *t)
{
	int64_t limit = now_us() + STOP_LIMIT_MS * 1000;
	int error = 0;
	bool is_any = false, is_refused = false;

	if (t->is_core)
		return true;
	t->stopped_at = now_us();
	for (int round = 0; round < STOP_ROUNDS && seize_new(t, &error); round++)
		wait_stopped(t, limit);
	sort_lwps(t, by_inner_tid);
	for (size_t i = 0; i < t->nr_lwps; i++) {
		is_any |= t->lwps[i].is_held;
		/* A debugger that is just attaching has the first one before the others: leave them to it. */
		is_refused |= t->lwps[i].tid == t->pid && t->lwps[i].is_refused;
	}
	if (is_any && !is_refused)
		return true;
	if (error == EPERM || error == EACCES)
		return fail_permission(t);
	return error ? wf_target_fail(t, "cannot stop process %d: %s", t->pid, strerror(error))
		     : wf_target_fail(t, "process %d has ended", t->pid);
}

void wf_target_resume(struct wf_target *t)
{
	bool is_any = false;

	for (size_t i = 0; i < t->nr_lwps; i++) {
		struct wf_target_lwp *l = &t->lwps[i];

		/* One that has not stopped in time cannot be detached: it is let go when this process ends. */
		if (l->is_held && l->is_stopped)
			(void)ptrace(PTRACE_DETACH, l->tid, 0, (void *)(intptr_t)l->signal);
		is_any |= l->is_held;
	}
	if (is_any)
		t->stopped_us = now_us() - t->stopped_at;
	for (size_t i = 0; i < t->nr_lwps; i++) {
		if (t->lwps[i].is_held)
			read_name(t->pid, &t->lwps[i]);
		t->lwps[i].is_held = false;
	}
}

size_t wf_target_read_some(const struct wf_target *t, uint64_t address, void *out, size_t bytes)
{
	size_t done = 0;

	if (t->budget && !wf_budget_take(t->budget, bytes))
		return 0;
	if (t->is_core)
		return wf_core_read(t, address, out, bytes);
	while (done < bytes) {
		ssize_t n = pread(t->memory_fd, (char *)out + done, bytes - done,
				  (off_t)(address + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	return done;
}

bool wf_target_read(const struct wf_target *t, uint64_t address, void *out, size_t bytes)
{
	return wf_target_read_some(t, address, out, bytes) == bytes;
}

bool wf_target_is_gone(const struct wf_target *t)
{
	char c;

	/* Not through wf_target_read(): a budget that is used up is no end of the process. */
	for (size_t i = 0; i < t->nr_maps && i < GONE_LOOKS; i++) {
		if (pread(t->memory_fd, &c, 1, (off_t)t->maps[i].start) == 1)
			return false;
	}
	return !t->is_core;
}

const struct wf_target_map *wf_target_map_at(const struct wf_target *t, uint64_t address)
{
	size_t low = 0, high = t->nr_maps;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct wf_target_map *m = &t->maps[middle];

		if (address < m->start)
			high = middle;
		else if (address >= m->end)
			low = middle + 1;
		else
			return m;
	}
	return NULL;
}

const struct wf_target_lwp *wf_target_lwp(const struct wf_target *t, int inner_tid)
{
	size_t low = 0, high = t->nr_lwps;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct wf_target_lwp *l = &t->lwps[middle];

		if (l->inner_tid == inner_tid)
			return l;
		if (l->inner_tid < inner_tid)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}
