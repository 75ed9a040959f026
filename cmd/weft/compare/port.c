// SPDX-License-Identifier: Apache-2.0
/*
 * Where a server listens, by /proc: to try by connecting would be a client that the server did not expect.
 *
 * Used by: one_run.c.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compare/compare.h"
#include "machine.h"

#define STATE_LISTEN 0x0a
#define LISTENERS_MAX 256

struct listener {
	int port;
	unsigned long inode;
};

static size_t read_table(const char *path, struct listener *out, size_t nr)
{
	FILE *in = fopen(path, "re");
	char line[512];

	while (in && nr < LISTENERS_MAX && fgets(line, sizeof(line), in)) {
		unsigned int port, state;
		unsigned long inode;

		if (sscanf(line,
			   " %*d: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x %*s %*s %*s %*d %*d %lu",
			   &port, &state, &inode) == 3 &&
		    state == STATE_LISTEN)
			out[nr++] = (struct listener){ (int)port, inode };
	}
	if (in)
		fclose(in);
	return nr;
}

static size_t find_listeners(struct listener *out)
{
	size_t nr = read_table("/proc/net/tcp", out, 0);

	return read_table("/proc/net/tcp6", out, nr);
}

bool wf_port_is_taken(int port)
{
	struct listener all[LISTENERS_MAX];
	size_t nr = find_listeners(all);

	for (size_t i = 0; i < nr; i++) {
		if (all[i].port == port)
			return true;
	}
	return false;
}

/* The lowest port among the sockets that the process has open, or `best` if that is lower. */
static int lowest_of_process(pid_t pid, const struct listener *all, size_t nr, int best)
{
	char path[300], target[64];
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		unsigned long inode;
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/%d/fd/%.200s", (int)pid, entry->d_name);
		n = readlink(path, target, sizeof(target) - 1);
		target[n > 0 ? n : 0] = '\0';
		if (sscanf(target, "socket:[%lu]", &inode) != 1)
			continue;
		for (size_t i = 0; i < nr; i++) {
			if (all[i].inode == inode && (!best || all[i].port < best))
				best = all[i].port;
		}
	}
	if (dir)
		closedir(dir);
	return best;
}

int wf_port_of_session(pid_t sid)
{
	struct listener all[LISTENERS_MAX];
	size_t nr = find_listeners(all);
	struct dirent *entry;
	int best = 0;
	DIR *dir;

	if (nr == 0)
		return 0;
	dir = opendir("/proc");
	while (dir && (entry = readdir(dir))) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (pid > 0 && getsid(pid) == sid)
			best = lowest_of_process(pid, all, nr, best);
	}
	if (dir)
		closedir(dir);
	return best;
}
