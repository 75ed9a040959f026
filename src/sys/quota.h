// SPDX-License-Identifier: Apache-2.0
/*
 * The limits of control groups, of either version: CPU time, and the number of kernel threads.
 *
 * Used by: cpu.c, when the runtime starts, and by `weft doctor`, also for a copy of another machine's files. So both say
 * the same.
 *
 * Invariant: what cannot be read, or is odd, does not limit; no file is trusted.
 */
#ifndef WF_SYS_QUOTA_H
#define WF_SYS_QUOTA_H

#include <stddef.h>

#define SYS_QUOTA_PATH_BYTES 2048

/* Room to work in; too much for a thread's stack. */
struct sys_quota {
	/* Reads at most bytes - 1 of a file and ends them with NUL. The length, or -errno. */
	long (*read)(void *data, const char *path, char *out, size_t bytes);
	void *data;
	char where[SYS_QUOTA_PATH_BYTES + 32]; /* the file that sets the limit that was found */

	char mount[SYS_QUOTA_PATH_BYTES], root[SYS_QUOTA_PATH_BYTES];
	char group[SYS_QUOTA_PATH_BYTES], dir[2 * SYS_QUOTA_PATH_BYTES];
	char path[2 * SYS_QUOTA_PATH_BYTES + 32], number[64];
	char text[64 << 10];
};

/*
 * The least of the quotas of our group and of all above it, in thousandths of a CPU; -1: there is none. read and data are
 * the caller's to set.
 */
long long sys_quota_find(struct sys_quota *q);
/* In the same way: how many kernel threads they allow. */
long long sys_quota_tasks(struct sys_quota *q);

#endif
