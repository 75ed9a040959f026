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

#include "../../src/sys/quota.h"

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
	if (m->visit)
		m->visit(path, NULL, m->data);
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

bool wf_machine_cpu_says(const struct wf_machine *m, const char *name, char *out, size_t bytes)
{
	const size_t len = strlen(name);
	char text[16384];
	const char *end;

	if (wf_machine_read(m, "/proc/cpuinfo", text, sizeof(text)) < 0)
		return false;
	end = strstr(text, "\n\n");
	for (const char *line = text; line && (!end || line < end); line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, name, len) != 0 || !strchr("\t:", line[len]))
			continue;
		line += len + strspn(line + len, "\t: ");
		snprintf(out, bytes, "%.*s", (int)strcspn(line, "\n"), line);
		return true;
	}
	return false;
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

static long read_for_quota(void *data, const char *path, char *out, size_t bytes)
{
	return wf_machine_read(data, path, out, bytes);
}

typedef long long (*find_limit)(struct sys_quota *q);

static long long limit_of_group(const struct wf_machine *m, find_limit find, char *out_where,
				size_t where_bytes)
{
	static struct sys_quota q; /* static for its size */
	struct wf_machine machine = *m;
	long long limit;

	q.read = read_for_quota;
	q.data = &machine;
	limit = find(&q);
	if (limit >= 0)
		snprintf(out_where, where_bytes, "%s", q.where);
	return limit;
}

long long wf_machine_quota(const struct wf_machine *m, char *out_where, size_t where_bytes)
{
	return limit_of_group(m, sys_quota_find, out_where, where_bytes);
}

long long wf_machine_tasks(const struct wf_machine *m, char *out_where, size_t where_bytes)
{
	return limit_of_group(m, sys_quota_tasks, out_where, where_bytes);
}
