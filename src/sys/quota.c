// SPDX-License-Identifier: Apache-2.0
/*
 * The limits of control groups; see quota.h.
 *
 * A controller is in one hierarchy only: that of version 1 whose line of /proc/self/cgroup names it, or else that
 * of version 2. Where it is mounted says mountinfo: in a container mostly with our own group, or one above it, as root.
 */
#include "sys/quota.h"
#include "base/fmt.h"

static size_t length(const char *s)
{
	size_t n = 0;

	while (s[n])
		n++;
	return n;
}

static bool begins(const char *s, const char *with)
{
	while (*with && *s == *with)
		s++, with++;
	return !*with;
}

static bool is_same(const char *a, const char *b)
{
	return begins(a, b) && length(a) == length(b);
}

/* Up to a space or the end, cut to what there is room for. */
static void copy_word(char *out, size_t bytes, const char *from)
{
	size_t n = 0;

	for (; n + 1 < bytes && from[n] && from[n] != ' '; n++)
		out[n] = from[n];
	out[n] = '\0';
}

static void join(char *out, size_t bytes, const char *a, const char *b)
{
	struct wf_fmt f;

	wf_fmt_init(&f, out, bytes);
	wf_fmt_str(&f, a);
	wf_fmt_str(&f, b);
}

/* The line, ended with NUL, and the one after it; NULL at the end of the text. */
static char *take_line(char **next)
{
	char *line = *next, *end = line;

	if (!*line)
		return NULL;
	while (*end && *end != '\n')
		end++;
	*next = *end ? end + 1 : end;
	*end = '\0';
	return line;
}

static const char *skip_words(const char *s, int nr)
{
	for (; nr; nr--) {
		while (*s && *s != ' ')
			s++;
		while (*s == ' ')
			s++;
	}
	return s;
}

/* The name in a list with commas that ends at end. */
static bool has_controller(const char *list, const char *name, char end)
{
	const size_t n = length(name);

	while (*list && *list != end) {
		if (begins(list, name) &&
		    (list[n] == ',' || list[n] == end || list[n] == ' ' || !list[n]))
			return true;
		while (*list && *list != end && *list != ',')
			list++;
		list += *list == ',';
	}
	return false;
}

/* Our group: "N:cpu,cpuacct:/path" of version 1, or "0::/path". */
static bool find_group(struct sys_quota *q, const char *controller, bool *out_is_v1)
{
	char *next = q->text, *line;
	bool found = false;

	if (q->read(q->data, "/proc/self/cgroup", q->text, sizeof(q->text)) < 0)
		return false;
	while ((line = take_line(&next))) {
		char *list = line, *path;

		while (*list && *list++ != ':')
			;
		for (path = list; *path && *path != ':';)
			path++;
		if (!*path || (path > list && !has_controller(list, controller, ':')))
			continue;
		*out_is_v1 = path > list;
		join(q->group, sizeof(q->group), path + 1, "");
		found = true;
		if (*out_is_v1)
			break;
	}
	return found;
}

/* A line of mountinfo: ID PARENT DEV ROOT DIR OPTIONS [TAG...] - TYPE SOURCE SUPER_OPTIONS */
static bool find_mount(struct sys_quota *q, const char *controller, bool is_v1)
{
	char *next = q->text, *line;

	if (q->read(q->data, "/proc/self/mountinfo", q->text, sizeof(q->text)) < 0)
		return false;
	while ((line = take_line(&next))) {
		const char *tail = line;

		while (*tail && !begins(tail, " - "))
			tail++;
		if (!*tail)
			continue;
		tail += 3;
		if (!begins(tail, is_v1 ? "cgroup " : "cgroup2 ") ||
		    (is_v1 && !has_controller(skip_words(tail, 2), controller, '\0')))
			continue;
		copy_word(q->root, sizeof(q->root), skip_words(line, 3));
		copy_word(q->mount, sizeof(q->mount), skip_words(line, 4));
		if (is_same(q->root, "/"))
			q->root[0] = '\0';
		return true;
	}
	return false;
}

/* -1: none there. */
static long long take_number(const char **at)
{
	unsigned long long v = 0;

	while (**at == ' ')
		(*at)++;
	if (**at < '0' || **at > '9')
		return -1;
	for (; **at >= '0' && **at <= '9'; (*at)++)
		v = v < 1ull << 46 ? v * 10 + (unsigned long long)(**at - '0') : v;
	return (long long)v;
}

static long long read_number(struct sys_quota *q, const char *file)
{
	const char *at = q->number;

	join(q->path, sizeof(q->path), q->dir, file);
	if (q->read(q->data, q->path, q->number, sizeof(q->number)) < 0)
		return -1;
	return take_number(&at);
}

/* The quota in q->dir, and the file that sets it in q->path; -1: none. */
static long long quota_here(struct sys_quota *q, bool is_v1)
{
	const char *at = q->number;
	long long quota, period;

	if (is_v1) {
		period = read_number(q, "/cpu.cfs_period_us");
		quota = read_number(q, "/cpu.cfs_quota_us");
	} else {
		quota = read_number(q, "/cpu.max");
		(void)take_number(&at);
		period = quota < 0 ? -1 : take_number(&at);
	}
	return quota > 0 && period > 0 ? (quota * 1000 + period - 1) / period : -1;
}

/* The same of the number of kernel threads; "max" is none. */
static long long tasks_here(struct sys_quota *q, bool is_v1)
{
	(void)is_v1;
	return read_number(q, "/pids.max");
}

static long long find_least(struct sys_quota *q, const char *controller,
			    long long (*here)(struct sys_quota *q, bool is_v1))
{
	long long least = -1;
	const char *below;
	bool is_v1 = false;
	size_t top, end;

	if (!find_group(q, controller, &is_v1))
		return -1;
	if (!find_mount(q, controller, is_v1)) {
		/* The usual place: the list of mounts may be longer than our room. */
		join(q->mount, sizeof(q->mount), "/sys/fs/cgroup", "");
		if (is_v1) {
			join(q->text, sizeof(q->text), "/", controller);
			join(q->mount, sizeof(q->mount), "/sys/fs/cgroup", q->text);
		}
		q->root[0] = '\0';
	}
	below = q->group;
	top = length(q->root);
	if (begins(below, q->root) && (below[top] == '/' || !below[top]))
		below += top;
	join(q->dir, sizeof(q->dir), q->mount, is_same(below, "/") ? "" : below);
	top = length(q->mount);
	for (end = length(q->dir);; q->dir[end] = '\0') {
		long long limit = here(q, is_v1);

		if (limit >= 0 && (least < 0 || limit < least)) {
			least = limit;
			join(q->where, sizeof(q->where), q->path, "");
		}
		while (end > top && q->dir[--end] != '/')
			;
		if (!q->dir[end])
			return least;
	}
}

long long sys_quota_find(struct sys_quota *q)
{
	return find_least(q, "cpu", quota_here);
}

long long sys_quota_tasks(struct sys_quota *q)
{
	return find_least(q, "pids", tasks_here);
}
