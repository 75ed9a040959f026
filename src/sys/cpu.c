// SPDX-License-Identifier: Apache-2.0
/*
 * How many processors this process may use: affinity, and the tightest cgroup quota of all ancestors.
 *
 * Called once when the runtime starts. Reads /proc and the control groups with raw calls; whatever cannot be read does not
 * limit.
 */
#include "sys/cpu.h"
#include "sys/quota.h"
#include "sys/syscall.h"

#include <fcntl.h>

static long read_file(void *data, const char *path, char *out, size_t bytes)
{
	long fd = sys4(__NR_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	size_t len = 0;
	long n = 1;

	(void)data;
	if (fd < 0)
		return fd;
	while (n > 0 && len + 1 < bytes) { /* /proc gives a page at a time */
		n = sys3(__NR_read, fd, out + len, bytes - 1 - len);
		len += n > 0 ? (size_t)n : 0;
	}
	(void)sys_close((int)fd);
	out[len] = '\0';
	return n < 0 ? n : (long)len;
}

/* Processors, rounded up; 0: no quota. */
static int tightest_quota(void)
{
	struct sys_quota *q = sys_map(sizeof(*q));
	long long thousandths;

	if (!q)
		return 0;
	q->read = read_file;
	thousandths = sys_quota_find(q);
	sys_unmap(q, sizeof(*q));
	return thousandths < 0 ? 0 : (int)WF_MAX(1ll, (thousandths + 999) / 1000);
}

uint32_t sys_cpu_allowed(void)
{
	uint64_t mask[128] = { 0 };
	long bytes = sys3(__NR_sched_getaffinity, 0, sizeof(mask), mask);
	uint32_t n = 0;

	for (long i = 0; i < bytes / 8; i++)
		for (uint64_t m = mask[i]; m; m &= m - 1)
			n++;
	return WF_MAX(n, 1u);
}

int sys_cpu_count(void)
{
	int n = (int)sys_cpu_allowed(), quota = tightest_quota();

	return quota && quota < n ? quota : n;
}
