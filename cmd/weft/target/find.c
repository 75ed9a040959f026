// SPDX-License-Identifier: Apache-2.0
/* Which processes run under weft; see find.h. */
#include "target/find.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_PID (1 << 30)
#define NR_NAMED 8 /* process IDs in a message */

bool wf_find_is_library(const char *path)
{
	const char *base = strrchr(path, '/');

	return base && strncmp(base + 1, "libweft", 7) == 0;
}

/* Up to the first mapping of the library, which comes early. */
bool wf_find_has_library(int pid, bool *out)
{
	char path[64], *line = NULL;
	size_t room = 0;
	FILE *f;

	*out = false;
	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	errno = 0;
	while (!*out && getline(&line, &room, f) > 0) {
		line[strcspn(line, "\n")] = '\0';
		*out = wf_find_is_library(line);
	}
	free(line);
	fclose(f);
	return *out || errno == 0;
}

bool wf_find_read(struct wf_find_process *p)
{
	char path[64], file[PATH_MAX];
	const char *base;
	bool has_program;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/exe", p->pid);
	n = readlink(path, file, sizeof(file) - 1);
	has_program = n >= 0 || errno == EACCES || errno == EPERM;
	file[n > 0 ? n : 0] = '\0';
	base = strrchr(file, '/');
	snprintf(p->name, sizeof(p->name), "%.255s", base ? base + 1 : file);
	n = (ssize_t)strlen(p->name) - (ssize_t)strlen(" (deleted)");
	if (n > 0 && strcmp(p->name + n, " (deleted)") == 0)
		p->name[n] = '\0';
	snprintf(path, sizeof(path), "/proc/%d/comm", p->pid);
	p->comm[0] = '\0';
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, p->comm, sizeof(p->comm) - 1);
	close(fd);
	p->comm[n > 0 ? n : 0] = '\0';
	p->comm[strcspn(p->comm, "\n")] = '\0';
	return has_program;
}

static bool add(struct wf_find *f, int pid)
{
	if ((f->nr_processes & (f->nr_processes - 1)) == 0) {
		size_t room = f->nr_processes ? f->nr_processes * 2 : 1;
		void *p = realloc(f->processes, room * sizeof(*f->processes));

		if (!p)
			return false;
		f->processes = p;
	}
	f->processes[f->nr_processes] = (struct wf_find_process){ .pid = pid };
	(void)wf_find_read(&f->processes[f->nr_processes++]);
	return true;
}

static int by_pid(const void *a, const void *b)
{
	const struct wf_find_process *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

/* All of it a decimal number from 1 on; else 0. */
static int pid_of(const char *text)
{
	long value;
	char *end;

	if (*text < '0' || *text > '9')
		return 0;
	errno = 0;
	value = strtol(text, &end, 10);
	return errno || *end || value > MAX_PID ? 0 : (int)value;
}

bool wf_find_each(bool (*each)(int pid, void *arg), void *arg)
{
	DIR *dir = opendir("/proc");
	struct dirent *d;
	bool is_on = true;

	if (!dir)
		return false;
	while (is_on && (d = readdir(dir))) {
		int pid = pid_of(d->d_name);

		if (pid)
			is_on = each(pid, arg);
	}
	closedir(dir);
	return true;
}

struct finding {
	struct wf_find *out;
	bool has_memory;
};

static bool take(int pid, void *arg)
{
	struct finding *f = arg;
	bool is_one;

	if (!wf_find_has_library(pid, &is_one))
		f->out->nr_hidden += errno == EACCES || errno == EPERM;
	else if (is_one)
		f->has_memory = add(f->out, pid);
	return f->has_memory;
}

bool wf_find_all(struct wf_find *out)
{
	struct finding f = { .out = out, .has_memory = true };

	*out = (struct wf_find){ 0 };
	if (!wf_find_each(take, &f))
		return false;
	if (out->nr_processes)
		qsort(out->processes, out->nr_processes, sizeof(*out->processes), by_pid);
	return f.has_memory;
}

void wf_find_done(struct wf_find *f)
{
	free(f->processes);
	*f = (struct wf_find){ 0 };
}

bool wf_find_is_named(const struct wf_find_process *p, const char *name)
{
	return strcmp(p->name, name) == 0 || strcmp(p->comm, name) == 0;
}

static int fail(char *error, size_t bytes, const struct wf_find *f, const char *name, size_t nr)
{
	char list[NR_NAMED * 12] = "";
	size_t len = 0, named = 0;

	for (size_t i = 0; i < f->nr_processes && named < NR_NAMED; i++) {
		if (!wf_find_is_named(&f->processes[i], name))
			continue;
		len += (size_t)snprintf(list + len, sizeof(list) - len, named ? ", %d" : "%d",
					f->processes[i].pid);
		named++;
	}
	if (nr)
		snprintf(error, bytes,
			 "%zu processes under weft are named '%s': %s%s; say which by its ID", nr,
			 name, list, nr > named ? ", ..." : "");
	else
		snprintf(error, bytes, "no process under weft has the ID or name '%s'%s", name,
			 f->nr_hidden && geteuid() ? "; those of other users are seen by root only"
						   : "; 'weft ps' lists them");
	return 0;
}

int wf_find_pid(const char *text, char *error, size_t bytes)
{
	int pid = pid_of(text);
	struct wf_find f;
	size_t nr = 0;

	if (pid)
		return pid;
	if (!wf_find_all(&f)) {
		snprintf(error, bytes,
			 "cannot list the processes: /proc is not there, or no memory");
	} else {
		for (size_t i = 0; i < f.nr_processes; i++) {
			if (!wf_find_is_named(&f.processes[i], text))
				continue;
			pid = f.processes[i].pid;
			nr++;
		}
		if (nr != 1)
			pid = fail(error, bytes, &f, text, nr);
	}
	wf_find_done(&f);
	return pid;
}
