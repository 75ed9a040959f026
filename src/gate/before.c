// SPDX-License-Identifier: Apache-2.0
/* Reads /proc without libc, which may not be ready yet; see before.h. */
#include "gate/before.h"
#include "base/fmt.h"
#include "gate/env.h"
#include "sys/syscall.h"

#include <fcntl.h>
#include <sys/prctl.h>

#define NAME_AT 19 /* of a directory's entry, as the kernel writes it; before it the length */
#define LENGTH_AT 16

/* Calls `look` with each name until it says that it has seen enough. */
static void each_entry(const char *dir, bool (*look)(int dir, const char *name, void *arg),
		       void *arg)
{
	long fd = sys4(__NR_openat, AT_FDCWD, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	bool goes_on = fd >= 0;
	char buf[1024];
	long n;

	while (goes_on && (n = sys3(__NR_getdents64, fd, buf, sizeof(buf))) > 0)
		for (long at = 0; at < n && goes_on;
		     at += *(unsigned short *)(buf + at + LENGTH_AT))
			goes_on = look((int)fd, buf + at + NAME_AT, arg);
	if (fd >= 0)
		(void)sys_close((int)fd);
}

static bool count_entry(int dir, const char *name, void *arg)
{
	int *nr = arg;

	(void)dir;
	*nr += name[0] != '.';
	return *nr < 2;
}

bool wf_before_has_threads(void)
{
	int nr = 0;

	each_entry("/proc/self/task", count_entry, &nr);
	return nr > 1;
}

static bool look_for_userfaults(int dir, const char *name, void *arg)
{
	char to[32];
	long n = sys4(__NR_readlinkat, dir, name, to, sizeof(to) - 1);
	bool *is_found = arg;

	to[n > 0 ? n : 0] = '\0';
	*is_found = wf_env_is(to, "anon_inode:[userfaultfd]");
	return !*is_found;
}

bool wf_before_has_userfaults(void)
{
	bool is_found = false;

	each_entry("/proc/self/fd", look_for_userfaults, &is_found);
	return is_found;
}

/* The line that begins with `name`, what is behind it; NULL: none. */
static const char *line_of(const char *text, const char *name)
{
	while (*text) {
		const char *line = text;

		while (*name == *text && *text)
			name++, text++;
		if (!*name)
			return text;
		name -= text - line;
		while (*text && *text++ != '\n')
			;
	}
	return NULL;
}

uint64_t wf_before_nr_filters(void)
{
	char text[4096];
	const char *digits;
	uint64_t nr = 0;
	long fd, n;

	if (sys5(__NR_prctl, PR_GET_SECCOMP, 0, 0, 0, 0) <= 0)
		return 0;
	fd = sys4(__NR_openat, AT_FDCWD, "/proc/self/status", O_RDONLY | O_CLOEXEC, 0);
	n = fd < 0 ? 0 : sys3(__NR_read, fd, text, sizeof(text) - 1);
	if (fd >= 0)
		(void)sys_close((int)fd);
	text[n > 0 ? n : 0] = '\0';
	digits = line_of(text, "Seccomp_filters:\t"); /* Linux 5.9 */
	while (digits && *digits >= '0' && *digits <= '9')
		nr = nr * 10 + (uint64_t)(*digits++ - '0');
	return nr ? nr : 1;
}
