// SPDX-License-Identifier: Apache-2.0
/*
 * Checks the file of `weft run --trace`; see tracefile.h.
 *
 * Invariant: no link is followed and nobody else's file is touched, here as at the end of the program (src/obs/events.c):
 * the folder may be one that others write to.
 */
#include "tracefile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd.h"

static bool refuse(const char *file, const char *why)
{
	wf_cmd_error("run: cannot write %s: %s", file, why);
	return false;
}

/* A name of a file that is made in the end. */
static bool check_folder(const char *file)
{
	const char *last = strrchr(file, '/');
	char folder[PATH_MAX];

	snprintf(folder, sizeof(folder), "%.*s", last ? (int)(last - file) + 1 : 1,
		 last ? file : ".");
	return faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) == 0 ||
	       refuse(file, strerror(errno));
}

static bool check_opened(const char *file, int fd, bool begins)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return refuse(file, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return true;
	if (st.st_uid != geteuid())
		return refuse(file, "it belongs to another user; remove it or name another file");
	if (st.st_nlink != 1)
		return refuse(file, "it has another name as well (a hard link); name another file");
	return !begins || ftruncate(fd, 0) == 0 || refuse(file, strerror(errno));
}

static bool check_file(const char *file, bool begins)
{
	int fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW,
		      0600);
	bool is_good;

	if (fd < 0 && errno == ENXIO)
		return true; /* a FIFO that nobody reads yet */
	if (fd < 0)
		return refuse(file, errno == ELOOP ? "it is a symbolic link; name the file itself"
						   : strerror(errno));
	is_good = check_opened(file, fd, begins);
	(void)close(fd);
	return is_good;
}

static char *absolute(const char *file)
{
	char dir[PATH_MAX], *path = NULL;

	if (*file == '/')
		path = strdup(file);
	else if (!getcwd(dir, sizeof(dir)) || asprintf(&path, "%s/%s", dir, file) < 0)
		path = NULL;
	if (path && strlen(path) < PATH_MAX)
		return path;
	(void)refuse(file, path ? strerror(ENAMETOOLONG) : strerror(errno));
	free(path);
	return NULL;
}

char *wf_tracefile_prepare(const char *file, const char *outer)
{
	char *path = absolute(file);
	bool is_good;

	if (!path)
		return NULL;
	is_good = strstr(path, "%p") ? check_folder(path)
				     : check_file(file, !outer || strcmp(path, outer) != 0);
	if (is_good)
		return path;
	free(path);
	return NULL;
}
