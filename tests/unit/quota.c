// SPDX-License-Identifier: Apache-2.0
/* src/sys/quota.c: the same limit for the runtime and for weft doctor, whatever the version of the control groups. */
#include "sys/quota.h"

#include "../tap.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define V1 "30 20 0:27 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
#define V2 "31 20 0:28 / /sys/fs/cgroup rw shared:9 - cgroup2 cgroup2 rw\n"

struct file {
	const char *path, *text;
};

static long read_one(void *data, const char *path, char *out, size_t bytes)
{
	for (const struct file *f = data; f->path; f++)
		if (strcmp(f->path, path) == 0)
			return snprintf(out, bytes, "%s", f->text);
	return -ENOENT;
}

static long long find(const struct file *files, const char **out_where)
{
	static struct sys_quota q;

	q.read = read_one;
	q.data = (void *)files;
	memset(q.text, 'x', sizeof(q.text));
	*out_where = q.where;
	return sys_quota_find(&q);
}

#define FIND(...) find((const struct file[]){ __VA_ARGS__, { NULL, NULL } }, &where)
#define GROUP(text)                                                                                \
	{                                                                                          \
		"/proc/self/cgroup", text                                                          \
	}
#define MOUNTS(text)                                                                               \
	{                                                                                          \
		"/proc/self/mountinfo", text                                                       \
	}

TEST(the_least_of_all_groups_above_counts)
{
	const char *where;

	CHECK_EQ(FIND(GROUP("0::/a/b\n"), MOUNTS(V2),
		      { "/sys/fs/cgroup/a/b/cpu.max", "400000 100000\n" },
		      { "/sys/fs/cgroup/a/cpu.max", "250000 100000\n" },
		      { "/sys/fs/cgroup/cpu.max", "max 100000\n" }),
		 2500);
	CHECK(strcmp(where, "/sys/fs/cgroup/a/cpu.max") == 0);
	CHECK_EQ(FIND(GROUP("0::/a/b\n"), MOUNTS(V2),
		      { "/sys/fs/cgroup/cpu.max", "50000 100000\n" }),
		 500);
}

TEST(version_1_counts_as_version_2_does)
{
	const char *where, *dir = "/sys/fs/cgroup/cpu,cpuacct";

	CHECK_EQ(FIND(GROUP("5:cpuset:/c\n4:cpu,cpuacct:/d\n0::/\n"),
		      MOUNTS("1 2 0:3 / /x rw - cgroup cgroup rw,cpuset\n" V1 V2),
		      { "/sys/fs/cgroup/cpu,cpuacct/d/cpu.cfs_quota_us", "150000\n" },
		      { "/sys/fs/cgroup/cpu,cpuacct/d/cpu.cfs_period_us", "100000\n" },
		      { "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n" },
		      { "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n" }),
		 1500);
	CHECK(strncmp(where, dir, strlen(dir)) == 0 && strstr(where, "/d/cpu.cfs_quota_us"));
	/* cpuacct and cpuset alone are other controllers. */
	CHECK_EQ(FIND(GROUP("5:cpuset:/\n4:cpuacct:/\n"), MOUNTS(V1),
		      { "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "1\n" },
		      { "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "1\n" }),
		 -1);
}

TEST(a_container_sees_its_group_as_the_root)
{
	const char *where;

	CHECK_EQ(FIND(GROUP("0::/docker/abc\n"),
		      MOUNTS("31 20 0:28 /docker/abc /mnt/cg rw - cgroup2 cgroup2 rw\n"),
		      { "/mnt/cg/cpu.max", "150000 100000\n" }, { "/mnt/cpu.max", "1 1\n" },
		      { "/cpu.max", "1 1\n" }),
		 1500);
	CHECK_EQ(FIND(GROUP("0::/docker/abcd\n"),
		      MOUNTS("31 20 0:28 /docker/abc /mnt/cg rw - cgroup2 cgroup2 rw\n"),
		      { "/mnt/cg/d/cpu.max", "1000 1000\n" }, { "/mnt/cg/cpu.max", "3000 1000\n" }),
		 3000);
}

TEST(without_a_list_of_mounts_it_is_the_usual_place)
{
	const char *where;

	CHECK_EQ(FIND(GROUP("0::/a\n"), { "/sys/fs/cgroup/a/cpu.max", "300000 100000\n" }), 3000);
	CHECK_EQ(FIND(GROUP("3:cpu:/a\n"), MOUNTS("31 20 0:28 / /x rw - cgroup2 cgroup2 rw\n"),
		      { "/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000\n" },
		      { "/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n" }),
		 2000);
}

TEST(what_cannot_be_read_does_not_limit)
{
	const char *where;

	CHECK_EQ(FIND(GROUP("0::/a\n"), MOUNTS(V2)), -1);
	CHECK_EQ(FIND(GROUP("0::/a\n")), -1);
	CHECK_EQ(FIND(MOUNTS(V2)), -1);
	CHECK_EQ(FIND(GROUP(""), MOUNTS("")), -1);
	CHECK_EQ(FIND(GROUP(":\n::\n0\n\n0:"), MOUNTS(" - \n - cgroup2 \n31 - cgroup2")), -1);
	CHECK_EQ(FIND(GROUP("0::/\n"), MOUNTS(V2), { "/sys/fs/cgroup/cpu.max", "100000 0\n" }), -1);
	CHECK_EQ(FIND(GROUP("0::/\n"), MOUNTS(V2), { "/sys/fs/cgroup/cpu.max", "0 100000\n" }), -1);
	CHECK_EQ(FIND(GROUP("0::/\n"), MOUNTS(V2), { "/sys/fs/cgroup/cpu.max", "100000\n" }), -1);
	CHECK_EQ(FIND(GROUP("0::/\n"), MOUNTS(V2),
		      { "/sys/fs/cgroup/cpu.max", "99999999999999999999999 1\n" }) > 0,
		 1);
}

TEST(a_quota_is_rounded_up)
{
	static const struct {
		const char *text;
		long long thousandths; /* -1: no limit */
	} rows[] = {
		{ "max 100000\n", -1 },
		{ "100000 100000\n", 1000 },
		{ "150000 100000\n", 1500 },
		{ "100001 100000\n", 1001 },
		{ "1 100000\n", 1 },
		{ "1000000 50000\n", 20000 },
		{ "", -1 },
		{ "100000\n", -1 },
		{ "100000 0\n", -1 },
		{ "0 100000\n", -1 },
		{ "-1 100000\n", -1 },
	};
	const char *where;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (!CHECK_EQ(FIND(GROUP("0::/a\n"), MOUNTS(V2),
				   { "/sys/fs/cgroup/a/cpu.max", rows[i].text }),
			      rows[i].thousandths))
			tap_note("\"%s\"", rows[i].text);
}
