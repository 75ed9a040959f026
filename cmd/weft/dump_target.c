// SPDX-License-Identifier: Apache-2.0
/* A live process: memory through /proc/PID/mem, registers through ptrace; see dump_target.h. */
#include "dump_target.h"

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
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "dump_core.h"

#define ENDING_LIMIT_MS 200
#define STOP_LIMIT_MS 2000 /* a thread in uninterruptible sleep does not stop: go on without it */
#define STOP_ROUNDS 20     /* new kernel threads may appear while the old ones are being stopped */

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
			"may not read process %d: it belongs to user %ld; run weft dump as "
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
			"dump as root, or set it to 0",
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
	size_t room = 0;
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
		int at = 0;

		line[strcspn(line, "\n")] = '\0';
		if (sscanf(line, "%lx-%lx %*s %lx %*s %*s %n", &start, &end, &offset, &at) < 3)
			continue;
		m = (struct wf_target_map){ start, end, offset, strdup(at ? line + at : "") };
		is_ok = m.path && add_map(t, &m);
		if (!is_ok)
			free(m.path);
	}
	free(line);
	fclose(f);
	return is_ok ? true : wf_target_fail(t, "out of memory");
}

bool wf_target_open_process(struct wf_target *t, int pid)
{
	char path[64];
	ssize_t len;

	*t = (struct wf_target){ .pid = pid, .memory_fd = -1 };
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
	free(t->segments);
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

static struct wf_target_lwp *find_lwp(struct wf_target *t, int tid)
{
	for (size_t i = 0; i < t->nr_lwps; i++) {
		if (t->lwps[i].tid == tid)
			return &t->lwps[i];
	}
	return NULL;
}

/* Seizes and interrupts what is new; returns how many, or -1 (errno of the first refusal in *out_error). */
static int seize_new(struct wf_target *t, int *out_error)
{
	char path[64];
	struct dirent *d;
	int nr = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", t->pid);
	dir = opendir(path);
	if (!dir)
		return 0;
	while ((d = readdir(dir))) {
		int tid = (int)strtol(d->d_name, NULL, 10);
		struct wf_target_lwp *l;
		void *p;

		if (tid <= 0 || find_lwp(t, tid))
			continue;
		p = realloc(t->lwps, (t->nr_lwps + 1) * sizeof(*t->lwps));
		if (!p)
			break;
		t->lwps = p;
		l = &t->lwps[t->nr_lwps++];
		*l = (struct wf_target_lwp){ .tid = tid, .call = -1 };
		nr++;
		/* Kernel helpers (io_uring) refuse, and threads that just ended: neither has a stack to show. */
		if (ptrace(PTRACE_SEIZE, tid, 0, 0) < 0) {
			if (errno != ESRCH && !*out_error)
				*out_error = errno;
			l->is_refused = errno == EPERM;
			continue;
		}
		l->is_held = true;
		(void)ptrace(PTRACE_INTERRUPT, tid, 0, 0);
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

	for (size_t i = 0; i < t->nr_maps; i++) {
		if (wf_target_read(t, t->maps[i].start, &c, 1))
			return false;
	}
	return !t->is_core;
}

const struct wf_target_map *wf_target_map_at(const struct wf_target *t, uint64_t address)
{
	for (size_t i = 0; i < t->nr_maps; i++) {
		if (address >= t->maps[i].start && address < t->maps[i].end)
			return &t->maps[i];
	}
	return NULL;
}

/* The hash table that the dynamic linker uses, read as it does; every number in it is the target's. */
static uint64_t lookup(const struct wf_target *t, uint64_t base, uint64_t hash, uint64_t symbols,
		       uint64_t strings, const char *name)
{
	uint32_t head[4], h = 5381, index, chain;
	size_t bytes = strlen(name) + 1;
	uint64_t buckets;
	char text[64];

	for (const char *c = name; *c; c++)
		h = h * 33 + (unsigned char)*c;
	if (bytes > sizeof(text) || !wf_target_read(t, hash, head, sizeof(head)) || !head[0])
		return 0;
	buckets = hash + sizeof(head) + (uint64_t)head[2] * 8;
	if (!wf_target_read(t, buckets + (uint64_t)(h % head[0]) * 4, &index, 4) || index < head[1])
		return 0;
	for (int steps = 0; steps < 10000; steps++, index++) {
		Elf64_Sym s;

		if (!wf_target_read(t, buckets + ((uint64_t)head[0] + index - head[1]) * 4, &chain,
				    4))
			return 0;
		if ((chain | 1) == (h | 1) &&
		    wf_target_read(t, symbols + (uint64_t)index * sizeof(s), &s, sizeof(s)) &&
		    s.st_shndx != SHN_UNDEF &&
		    wf_target_read(t, strings + s.st_name, text, bytes) &&
		    memcmp(text, name, bytes) == 0)
			return base + s.st_value;
		if (chain & 1)
			break;
	}
	return 0;
}

uint64_t wf_target_symbol(const struct wf_target *t, const struct wf_target_map *map,
			  const char *name)
{
	uint64_t base = map->start, dynamic = 0, hash = 0, symbols = 0, strings = 0;
	Elf64_Ehdr e;

	if (!wf_target_read(t, map->start, &e, sizeof(e)) ||
	    memcmp(e.e_ident, ELFMAG, SELFMAG) != 0 || e.e_ident[EI_CLASS] != ELFCLASS64 ||
	    e.e_phentsize != sizeof(Elf64_Phdr))
		return 0;
	for (int i = 0, seen = 0; i < e.e_phnum; i++) {
		Elf64_Phdr p;

		if (!wf_target_read(t, map->start + e.e_phoff + (uint64_t)i * sizeof(p), &p,
				    sizeof(p)))
			return 0;
		if (p.p_type == PT_LOAD && !seen++)
			base = map->start - (p.p_vaddr & -(uint64_t)4096);
		if (p.p_type == PT_DYNAMIC)
			dynamic = p.p_vaddr;
	}
	for (int i = 0; dynamic && i < 256; i++) {
		Elf64_Dyn d;
		uint64_t at;

		if (!wf_target_read(t, base + dynamic + (uint64_t)i * sizeof(d), &d, sizeof(d)) ||
		    d.d_tag == DT_NULL)
			break;
		/* The dynamic linker makes some of these absolute in place. */
		at = d.d_un.d_ptr < base ? base + d.d_un.d_ptr : d.d_un.d_ptr;
		if (d.d_tag == DT_GNU_HASH)
			hash = at;
		else if (d.d_tag == DT_SYMTAB)
			symbols = at;
		else if (d.d_tag == DT_STRTAB)
			strings = at;
	}
	return hash && symbols && strings ? lookup(t, base, hash, symbols, strings, name) : 0;
}
