// SPDX-License-Identifier: Apache-2.0
/*
 * How many processors this process may use: affinity, and the tightest cgroup quota of all ancestors.
 *
 * Called once when the runtime starts. Reads /proc and /sys/fs/cgroup with raw calls; whatever cannot be
 * read does not limit.
 */
#include "base/fmt.h"
#include "sys/syscall.h"

#include <fcntl.h>

static long read_file(const char *path, char *buf, size_t cap)
{
	long fd = sys4(__NR_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	long n;

	if (fd < 0)
		return fd;
	n = sys3(__NR_read, fd, buf, cap - 1);
	(void)sys_close((int)fd);
	if (n >= 0)
		buf[n] = '\0';
	return n;
}

/* "MAX PERIOD" of cpu.max -> processors, rounded up; 0 when unlimited or unreadable. */
static int quota_of(const char *text)
{
	uint64_t quota = 0, period = 0;

	if (*text < '0' || *text > '9')
		return 0;
	for (; *text >= '0' && *text <= '9'; text++)
		quota = quota * 10 + (uint64_t)(*text - '0');
	while (*text == ' ')
		text++;
	for (; *text >= '0' && *text <= '9'; text++)
		period = period * 10 + (uint64_t)(*text - '0');
	if (!period || !quota)
		return 0;
	return (int)WF_MAX(1ul, (quota + period - 1) / period);
}

static int tightest_quota(void)
{
	char group[512], path[640], text[64];
	int best = 0;
	char *rel = NULL, *end;

	if (read_file("/proc/self/cgroup", group, sizeof(group)) <= 0)
		return 0;
	for (char *p = group; *p; p++)
		if ((p == group || p[-1] == '\n') && p[0] == '0' && p[1] == ':' && p[2] == ':')
			rel = p + 3;
	if (!rel)
		return 0;
	for (end = rel; *end && *end != '\n';)
		end++;
	for (;;) {
		struct wf_fmt f;
		int q;

		*end = '\0';
		wf_fmt_init(&f, path, sizeof(path));
		wf_fmt_str(&f, "/sys/fs/cgroup");
		wf_fmt_str(&f, rel);
		wf_fmt_str(&f, "/cpu.max");
		if (read_file(path, text, sizeof(text)) > 0) {
			q = quota_of(text);
			if (q && (!best || q < best))
				best = q;
		}
		if (end == rel)
			return best;
		while (end > rel && *--end != '/')
			;
	}
}

int sys_cpu_count(void)
{
	uint64_t mask[128] = { 0 };
	long bytes = sys3(__NR_sched_getaffinity, 0, sizeof(mask), mask);
	int n = 0, quota = tightest_quota();

	for (long i = 0; i < bytes / 8; i++)
		for (uint64_t m = mask[i]; m; m &= m - 1)
			n++;
	if (quota && quota < n)
		n = quota;
	return WF_MAX(n, 1);
}
