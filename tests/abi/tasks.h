// SPDX-License-Identifier: Apache-2.0
/* Kernel threads in /proc, as the tests of credentials look at them. */
#ifndef WEFT_TESTS_ABI_TASKS_H
#define WEFT_TESTS_ABI_TASKS_H

#include "check.h"

#include <dirent.h>

#define NR_IDS 4 /* real, effective, saved, file system */

/*
 * A kernel thread that ends keeps the credentials that it has: it runs nothing of the program any more. On a busy machine it
 * is seen for a while. One that is there for long has had to change them in time.
 */
static inline int is_ending(const char *path)
{
	for (int i = 0; i < 20000; i++) {
		if (access(path, F_OK))
			return 1;
		sleep_ns(MS);
	}
	return 0;
}

/* The numbers behind "Uid:", "Gid:" or "Groups:" of one kernel thread; -1 where there are none. */
static inline int read_ids(const char *path, const char *field, int ids[NR_IDS])
{
	char line[256];
	FILE *f;
	int found = -1;

	f = fopen(path, "r");
	if (!f)
		return -1; /* it ended meanwhile */
	for (int i = 0; i < NR_IDS; i++)
		ids[i] = -1;
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, field, strlen(field))) {
			sscanf(line + strlen(field), "%d %d %d %d", &ids[0], &ids[1], &ids[2],
			       &ids[3]);
			found = 0;
		}
	fclose(f);
	return found;
}

/* How many kernel threads this process has: a child sees them all. */
static inline int nr_kernel_threads(void)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		char path[64];
		struct dirent *entry;
		int nr = 0;
		DIR *dir;

		snprintf(path, sizeof(path), "/proc/%d/task", getppid());
		dir = opendir(path);
		while (dir && (entry = readdir(dir)))
			nr += entry->d_name[0] != '.';
		_exit(nr < 255 ? nr : 255);
	}
	CHECK_SYS(pid);
	while (waitpid(pid, &status, 0) == -1 && errno == EINTR)
		;
	CHECK(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* Are all such waits to be made in a ring of io_uring, on a kernel that has what that takes? */
static inline int waits_in_ring(void)
{
	const char *mode = getenv("WEFT_IO_URING");
	char params[256] = { 0 };
	struct utsname name;
	int major = 0, minor = 0, fd;

	if (!is_under_weft() || !mode || strcmp(mode, "always") != 0 || uname(&name) != 0 ||
	    sscanf(name.release, "%d.%d", &major, &minor) != 2 || major < 6 ||
	    (major == 6 && minor < 7))
		return 0;
	fd = (int)syscall(SYS_io_uring_setup, 1, params);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static inline void check_tasks_of(int process, const char *field, const int want[NR_IDS])
{
	char path[300];
	struct dirent *entry;
	DIR *dir;
	int nr = 0;

	snprintf(path, sizeof(path), "/proc/%d/task", process);
	dir = opendir(path);
	CHECK(dir != NULL);
	while (dir && (entry = readdir(dir))) {
		int ids[NR_IDS];

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%s/status", process, entry->d_name);
		if (read_ids(path, field, ids) ||
		    (memcmp(ids, want, sizeof(ids)) && is_ending(path)))
			continue;
		for (int i = 0; i < NR_IDS; i++)
			CHECK_EQ(ids[i], want[i]);
		nr++;
	}
	CHECK(nr >= 1);
	if (dir)
		closedir(dir);
}

#endif
