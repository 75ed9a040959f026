// SPDX-License-Identifier: Apache-2.0
/*
 * Which processes are below ours.
 *
 * Called by: notify.c. Invariant: the way up ends after DEPTH_MAX steps, whatever /proc says meanwhile.
 */
#include "watch/watch.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DEPTH_MAX 64 /* of processes below ours */

static pid_t parent_of(pid_t pid)
{
	char path[64], text[512], *end;
	ssize_t n;
	int fd, parent = 0;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	end = strrchr(text, ')');
	return end && sscanf(end, ") %*c %d", &parent) == 1 ? parent : 0;
}

bool wf_watch_is_ours(pid_t pid)
{
	for (int depth = 0; pid > 1 && depth < DEPTH_MAX; depth++) {
		pid = parent_of(pid);
		if (pid == getpid())
			return true;
	}
	return false;
}
