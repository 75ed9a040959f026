// SPDX-License-Identifier: Apache-2.0
/*
 * The end of a process that is not our child: that it has ended, and with which status.
 *
 * Called by: foreign.c, names.c. Invariant: a status is that of the process that the descriptor stands for, whatever its
 * number means by now. A status that cannot be told for certain is not told.
 */
#include "watch/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STATUS_FIELD 52 /* of /proc/PID/stat; the state is the third */

/* As Linux 6.15 has it: the kernel keeps the status after the parent has fetched it. */
struct info {
	uint64_t mask, cgroup;
	uint32_t ids[11];
	int32_t exit_code;
};

#define INFO_EXIT 8
#define GET_INFO _IOWR(0xFF, 11, struct info)

bool wf_watch_ended(int pidfd)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

bool wf_watch_ended_is_there(int pidfd)
{
	return syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0) == 0 || errno == EPERM;
}

const char *wf_watch_ended_stat(pid_t pid, char text[WF_WATCH_STAT_BYTES])
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? 0 : read(fd, text, WF_WATCH_STAT_BYTES - 1);
	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	return strrchr(text, ')');
}

/* The kernel writes 0 there for readers that may not know it; so 0 says nothing. */
static int zombie_status(pid_t pid)
{
	char text[WF_WATCH_STAT_BYTES];
	const char *at = wf_watch_ended_stat(pid, text);

	for (int field = 2; at && field < STATUS_FIELD; field++)
		at = strchr(at + 1, ' ');
	return at ? (int)strtol(at, NULL, 10) : 0;
}

bool wf_watch_ended_status(int pidfd, pid_t pid, int *out)
{
	struct info info = { .mask = INFO_EXIT };
	int status = zombie_status(pid);

	_Static_assert(sizeof(info) == 64, "the first version of the kernel's structure");
	if (status && wf_watch_ended_is_there(pidfd)) {
		*out = status;
		return true;
	}
	if (ioctl(pidfd, GET_INFO, &info) < 0 || !(info.mask & INFO_EXIT))
		return false;
	*out = info.exit_code;
	return true;
}
