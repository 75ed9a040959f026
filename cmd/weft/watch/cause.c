// SPDX-License-Identifier: Apache-2.0
/*
 * The cause of a process's death, and the place of its core.
 *
 * Called by: supervise.c, save.c. A cause that cannot be told for certain is not said.
 */
#include "watch/watch.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static size_t read_file(const char *path, char *out, size_t bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, out, bytes - 1);

	if (fd >= 0)
		close(fd);
	out[n > 0 ? n : 0] = '\0';
	return n > 0 ? (size_t)n : 0;
}

long wf_watch_oom_kills(void)
{
	char groups[4096], path[4352], events[1024], *group, *at;

	if (!read_file("/proc/self/cgroup", groups, sizeof(groups)))
		return -1;
	group = strncmp(groups, "0::", 3) == 0 ? groups : strstr(groups, "\n0::");
	if (!group)
		return -1;
	group += strcspn(group, "/");
	group[strcspn(group, "\n")] = '\0';
	snprintf(path, sizeof(path), "/sys/fs/cgroup%s/memory.events", group);
	if (!read_file(path, events, sizeof(events)))
		return -1;
	at = strstr(events, "oom_kill ");
	return at ? strtol(at + strlen("oom_kill "), NULL, 10) : -1;
}

static const char *killed_by(const struct wf_watch *w)
{
	long now = wf_watch_oom_kills();

	if (w->was_killed)
		return ", by us: it did not end in time";
	if (w->oom_before < 0 || now < 0)
		return "";
	return now > w->oom_before ? ", out of memory: the kernel killed in this cgroup"
				   : ", sent by somebody: the cgroup was not out of memory";
}

void wf_watch_describe(const struct wf_watch *w, struct wf_watch_event *e)
{
	const char *name;
	int sig;

	if (WIFEXITED(e->status)) {
		snprintf(e->what, sizeof(e->what), "exit status %d", WEXITSTATUS(e->status));
		snprintf(e->suffix, sizeof(e->suffix), "exit%d", WEXITSTATUS(e->status));
		return;
	}
	sig = WTERMSIG(e->status);
	name = sigabbrev_np(sig);
	if (name)
		snprintf(e->suffix, sizeof(e->suffix), "%s", name);
	else
		snprintf(e->suffix, sizeof(e->suffix), "signal%d", sig);
	snprintf(e->what, sizeof(e->what), "%s%s%s%s", name ? "SIG" : "", e->suffix,
		 WCOREDUMP(e->status) ? ", core dumped" : "", sig == SIGKILL ? killed_by(w) : "");
}

/* The parts of a pattern that are known for certain. False: there is another one. */
static bool expand(const char *pattern, const struct wf_watch_event *e, char *out, size_t bytes)
{
	bool has_pid = false;
	char uses_pid[8];
	size_t n = 0;

	for (const char *p = pattern; *p && n + 16 < bytes; p++) {
		if (*p != '%') {
			out[n++] = *p;
			continue;
		}
		p++;
		if (*p == 'p' || *p == 'P')
			n += (size_t)snprintf(out + n, bytes - n, "%d", (int)e->pid);
		else if (*p == 's')
			n += (size_t)snprintf(out + n, bytes - n, "%d", WTERMSIG(e->status));
		else if (*p == 'u')
			n += (size_t)snprintf(out + n, bytes - n, "%u", (unsigned)getuid());
		else if (*p == '%')
			out[n++] = '%';
		else
			return false;
		has_pid |= *p == 'p';
	}
	out[n] = '\0';
	if (!has_pid && read_file("/proc/sys/kernel/core_uses_pid", uses_pid, sizeof(uses_pid)) &&
	    uses_pid[0] == '1')
		snprintf(out + n, bytes - n, ".%d", (int)e->pid);
	return true;
}

/* One that is older than the process is another one's. */
bool wf_watch_find_core(const struct wf_watch *w, const struct wf_watch_event *e, char *out,
			size_t bytes)
{
	char pattern[256];
	struct stat st;

	if (!WIFSIGNALED(e->status) || !WCOREDUMP(e->status) ||
	    !read_file("/proc/sys/kernel/core_pattern", pattern, sizeof(pattern)))
		return false;
	pattern[strcspn(pattern, "\n")] = '\0';
	return pattern[0] && pattern[0] != '|' && pattern[0] != '@' &&
	       expand(pattern, e, out, bytes) && stat(out, &st) == 0 && S_ISREG(st.st_mode) &&
	       st.st_mtim.tv_sec >= w->started_wall_s;
}
