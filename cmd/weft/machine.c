// SPDX-License-Identifier: Apache-2.0
/*
 * Reads what /proc and /sys say about a machine, or what a copy of them says.
 *
 * Called by: checks.c. Invariant: see machine.h; a file that is missing or odd is an answer, never a crash.
 */
#include "machine.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int wf_machine_read(const struct wf_machine *m, const char *path, char *out, size_t bytes)
{
	char full[PATH_MAX];
	size_t len = 0;
	int fd;

	if (snprintf(full, sizeof(full), "%s%s", m->root, path) >= (int)sizeof(full))
		return -ENAMETOOLONG;
	fd = open(full, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	while (len < bytes - 1) {
		ssize_t got = read(fd, out + len, bytes - 1 - len);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			int error = errno;

			(void)close(fd);
			return -error;
		}
		if (got == 0)
			break;
		len += (size_t)got;
	}
	(void)close(fd);
	out[len] = '\0';
	return (int)len;
}

bool wf_machine_line(const struct wf_machine *m, const char *path, char *out, size_t bytes)
{
	if (wf_machine_read(m, path, out, bytes) < 0)
		return false;
	out[strcspn(out, "\n")] = '\0';
	return out[0] != '\0';
}

bool wf_machine_number(const struct wf_machine *m, const char *path, long long *out)
{
	char line[64], *end;
	long long value;

	if (!wf_machine_line(m, path, line, sizeof(line)))
		return false;
	errno = 0;
	value = strtoll(line, &end, 10);
	if (errno || end == line)
		return false;
	*out = value;
	return true;
}

bool wf_machine_status(const struct wf_machine *m, const char *name, char *out, size_t bytes)
{
	char text[8192];
	size_t len = strlen(name);

	if (wf_machine_read(m, "/proc/self/status", text, sizeof(text)) < 0)
		return false;
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		if (strncmp(line, name, len) == 0 && line[len] == ':') {
			line += len + 1;
			snprintf(out, bytes, "%s", line + strspn(line, " \t"));
			return true;
		}
	}
	return false;
}

bool wf_machine_auxv(const struct wf_machine *m, uint64_t type, uint64_t *out)
{
	union {
		char bytes[2048];
		uint64_t pairs[256];
	} auxv;
	int len = wf_machine_read(m, "/proc/self/auxv", auxv.bytes, sizeof(auxv.bytes));

	for (int i = 0; i + 1 < len / 8; i += 2) {
		if (auxv.pairs[i] == type) {
			*out = auxv.pairs[i + 1];
			return true;
		}
	}
	return false;
}

static const char *take_limit(const char *text, long long *out)
{
	char *end;

	text += strspn(text, " ");
	if (strncmp(text, "unlimited", 9) == 0) {
		*out = -1;
		return text + 9;
	}
	*out = strtoll(text, &end, 10);
	return end == text ? NULL : end;
}

bool wf_machine_limit(const struct wf_machine *m, const char *name, long long *out_soft,
		      long long *out_hard)
{
	char text[4096];
	const char *at;
	long long soft, hard;

	if (wf_machine_read(m, "/proc/self/limits", text, sizeof(text)) < 0)
		return false;
	at = strstr(text, name);
	at = at ? take_limit(at + strlen(name), &soft) : NULL;
	at = at ? take_limit(at, &hard) : NULL;
	if (!at)
		return false;
	*out_soft = soft;
	*out_hard = hard;
	return true;
}

unsigned int wf_machine_cpus(const struct wf_machine *m)
{
	char list[4096];
	const char *at = list;
	unsigned int nr = 0;

	if (!wf_machine_status(m, "Cpus_allowed_list", list, sizeof(list)))
		return 0;
	while (*at >= '0' && *at <= '9') {
		char *end;
		unsigned long first = strtoul(at, &end, 10), last = first;

		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		if (last < first || last > 1 << 20)
			return 0;
		nr += (unsigned int)(last - first + 1);
		at = *end == ',' ? end + 1 : end;
	}
	return nr;
}

/* Where a hierarchy of control groups is mounted, and which group the root of that mount is. */
struct cgroup_mount {
	char dir[PATH_MAX];
	char group[PATH_MAX];
};

static bool has_option(const char *options, const char *name)
{
	size_t len = strlen(name);

	for (; *options; options += strcspn(options, ",\n"), options += *options == ',') {
		if (strncmp(options, name, len) == 0 && strchr(",\n", options[len]))
			return true;
		if (*options == '\n')
			break;
	}
	return false;
}

/* A line of mountinfo: ID PARENT DEV ROOT DIR OPTIONS [TAG...] - TYPE SOURCE SUPER_OPTIONS */
static bool find_cgroup_mount(const struct wf_machine *m, bool is_v2, const char *controller,
			      struct cgroup_mount *out)
{
	static char text[1 << 18];
	char *save = NULL;

	if (wf_machine_read(m, "/proc/self/mountinfo", text, sizeof(text)) < 0)
		return false;
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char group[PATH_MAX], dir[PATH_MAX], type[32], options[512];
		char *tail = strstr(line, " - ");

		if (!tail || sscanf(line, "%*s %*s %*s %4095s %4095s", group, dir) != 2 ||
		    sscanf(tail, " - %31s %*s %511s", type, options) != 2)
			continue;
		if (strcmp(type, is_v2 ? "cgroup2" : "cgroup") != 0 ||
		    (!is_v2 && !has_option(options, controller)))
			continue;
		snprintf(out->dir, sizeof(out->dir), "%s", dir);
		snprintf(out->group, sizeof(out->group), "%s",
			 strcmp(group, "/") == 0 ? "" : group);
		return true;
	}
	return false;
}

/* Our group in that hierarchy: the line "0::/path" (v2) or "N:cpu,cpuacct:/path" (v1). */
static bool find_own_group(const struct wf_machine *m, bool is_v2, const char *controller,
			   char *out, size_t bytes)
{
	char text[16384], *save = NULL;

	if (wf_machine_read(m, "/proc/self/cgroup", text, sizeof(text)) < 0)
		return false;
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *controllers = strchr(line, ':');
		char *path = controllers ? strchr(controllers + 1, ':') : NULL;

		if (!path)
			continue;
		*path++ = '\0';
		controllers++;
		if (is_v2 ? *controllers == '\0' : has_option(controllers, controller)) {
			snprintf(out, bytes, "%s", path);
			return true;
		}
	}
	return false;
}

/* The quota in one directory in thousandths of a CPU, or -1. */
static long long quota_of(const struct wf_machine *m, const char *dir, bool is_v2, char *out_file,
			  size_t bytes)
{
	char text[64];
	long long quota = -1, period = 0;

	snprintf(out_file, bytes, "%s/%s", dir, is_v2 ? "cpu.max" : "cpu.cfs_quota_us");
	if (is_v2) {
		if (!wf_machine_line(m, out_file, text, sizeof(text)) ||
		    sscanf(text, "%lld %lld", &quota, &period) != 2)
			return -1;
	} else {
		char file[PATH_MAX];

		snprintf(file, sizeof(file), "%.4000s/cpu.cfs_period_us", dir);
		if (!wf_machine_number(m, out_file, &quota) || !wf_machine_number(m, file, &period))
			return -1;
	}
	return quota > 0 && period > 0 ? quota * 1000 / period : -1;
}

/* How many kernel threads one directory allows, or -1. */
static long long tasks_of(const struct wf_machine *m, const char *dir, bool is_v2, char *out_file,
			  size_t bytes)
{
	long long nr;

	(void)is_v2;
	snprintf(out_file, bytes, "%s/pids.max", dir);
	return wf_machine_number(m, out_file, &nr) && nr >= 0 ? nr : -1; /* "max" */
}

typedef long long (*limit_of)(const struct wf_machine *m, const char *dir, bool is_v2,
			      char *out_file, size_t bytes);

/* The least that the group and those above it allow; least if they allow more. */
static long long least_of(const struct wf_machine *m, bool is_v2, const char *controller,
			  limit_of limit, long long least, char *out_where, size_t where_bytes)
{
	struct cgroup_mount mount;
	char own[PATH_MAX], dir[2 * PATH_MAX], file[2 * PATH_MAX + 32];
	const char *below = own;
	size_t len;

	if (!find_cgroup_mount(m, is_v2, controller, &mount) ||
	    !find_own_group(m, is_v2, controller, own, sizeof(own)))
		return least;
	/* A container often sees its own group as the root of the mount. */
	len = strlen(mount.group);
	if (strncmp(own, mount.group, len) == 0 && (own[len] == '/' || own[len] == '\0'))
		below += len;
	snprintf(dir, sizeof(dir), "%s%s", mount.dir, strcmp(below, "/") == 0 ? "" : below);
	for (;;) {
		long long here = limit(m, dir, is_v2, file, sizeof(file));
		char *slash = strrchr(dir, '/');

		if (here >= 0 && (least < 0 || here < least)) {
			least = here;
			snprintf(out_where, where_bytes, "%s", file);
		}
		if (!slash || (size_t)(slash - dir) < strlen(mount.dir))
			return least;
		*slash = '\0';
	}
}

long long wf_machine_quota(const struct wf_machine *m, char *out_where, size_t where_bytes)
{
	long long least = least_of(m, true, "cpu", quota_of, -1, out_where, where_bytes);

	return least_of(m, false, "cpu", quota_of, least, out_where, where_bytes);
}

long long wf_machine_tasks(const struct wf_machine *m, char *out_where, size_t where_bytes)
{
	long long least = least_of(m, true, "pids", tasks_of, -1, out_where, where_bytes);

	return least_of(m, false, "pids", tasks_of, least, out_where, where_bytes);
}
