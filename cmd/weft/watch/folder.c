// SPDX-License-Identifier: Apache-2.0
/*
 * The folders of events: made, counted, and the oldest removed.
 *
 * Called by: watch.c, save.c. Invariant: only a folder that is named as ours are is removed, and only files that we write in
 * it; a folder in which somebody put something else stays.
 */
#include "watch/watch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd.h"

#define BASE "weft-watch"
#define BYTES_MAX (256ll << 20)
#define SAME_MAX 100000 /* events of one process that look alike */

static const char *const files[] = { "report.txt", "dump.txt",      "dump.json",
				     "stderr.txt", "trace.pftrace", "status.json" };

#define NR_FILES (sizeof(files) / sizeof(files[0]))

struct folder {
	char name[256];
	struct timespec at;
	long long bytes;
};

static bool refuse(const struct wf_watch *w, const char *why)
{
	wf_cmd_error("watch: cannot keep folders in %s/" BASE ": %s", w->dir, why);
	return false;
}

bool wf_watch_folders_open(struct wf_watch *w)
{
	int dir = open(w->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	if (dir < 0)
		return refuse(w, strerror(errno));
	if (mkdirat(dir, BASE, 0700) < 0 && errno != EEXIST) {
		(void)refuse(w, strerror(errno));
		close(dir);
		return false;
	}
	w->base = openat(dir, BASE, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	close(dir);
	if (w->base < 0)
		return refuse(w, strerror(errno));
	/* Elsewhere somebody else could exchange what we write. */
	if (fstat(w->base, &st) < 0 || st.st_uid != geteuid() || (st.st_mode & 022))
		return refuse(w, "it belongs to somebody else, or others may write there");
	if (faccessat(w->base, ".", W_OK, AT_EACCESS) < 0)
		return refuse(w, strerror(errno));
	return true;
}

int wf_watch_folder_new(struct wf_watch *w, const struct wf_watch_event *e, char *out, size_t bytes)
{
	char name[128];
	int fd;

	for (int i = 1; i < SAME_MAX; i++) {
		if (i == 1)
			snprintf(name, sizeof(name), "%s-%d-%s", w->name, (int)e->pid, e->suffix);
		else
			snprintf(name, sizeof(name), "%s-%d-%s-%d", w->name, (int)e->pid, e->suffix,
				 i);
		if (mkdirat(w->base, name, 0700) < 0) {
			if (errno == EEXIST)
				continue;
			return -errno;
		}
		fd = openat(w->base, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0)
			return -errno;
		snprintf(out, bytes, "%s%s" BASE "/%s/", strcmp(w->dir, ".") ? w->dir : "",
			 strcmp(w->dir, ".") ? "/" : "", name);
		return fd;
	}
	return -EEXIST;
}

/* NAME-PID-..., of this name. */
static bool is_ours(const struct wf_watch *w, const char *name)
{
	size_t len = strlen(w->name), digits;

	if (strncmp(name, w->name, len) || name[len] != '-')
		return false;
	digits = strspn(name + len + 1, "0123456789");
	return digits && name[len + 1 + digits] == '-';
}

static bool look_at(const struct wf_watch *w, const char *name, struct folder *out)
{
	int fd = openat(w->base, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return false;
	*out = (struct folder){ 0 };
	snprintf(out->name, sizeof(out->name), "%s", name);
	if (fstat(fd, &st) == 0)
		out->at = st.st_mtim;
	for (size_t i = 0; i < NR_FILES; i++) {
		if (fstatat(fd, files[i], &st, AT_SYMLINK_NOFOLLOW) == 0)
			out->bytes += st.st_size;
	}
	close(fd);
	return true;
}

static void remove_folder(const struct wf_watch *w, const char *name)
{
	int fd = openat(w->base, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return;
	for (size_t i = 0; i < NR_FILES; i++)
		(void)unlinkat(fd, files[i], 0);
	close(fd);
	(void)unlinkat(w->base, name, AT_REMOVEDIR);
}

static int newest_first(const void *a, const void *b)
{
	const struct folder *x = a, *y = b;

	if (x->at.tv_sec != y->at.tv_sec)
		return x->at.tv_sec < y->at.tv_sec ? 1 : -1;
	return x->at.tv_nsec < y->at.tv_nsec ? 1 : -(x->at.tv_nsec > y->at.tv_nsec);
}

void wf_watch_folders_trim(const struct wf_watch *w)
{
	int fd = openat(w->base, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct folder *all = NULL, *more;
	long long bytes = 0;
	struct dirent *entry;
	size_t nr = 0;

	while (dir && (entry = readdir(dir))) {
		if (!is_ours(w, entry->d_name))
			continue;
		more = realloc(all, (nr + 1) * sizeof(*all));
		if (!more)
			break;
		all = more;
		nr += look_at(w, entry->d_name, &all[nr]);
	}
	if (nr)
		qsort(all, nr, sizeof(*all), newest_first);
	for (size_t i = 0; i < nr; i++) {
		bytes += all[i].bytes;
		if (i >= (size_t)w->keep || (i && bytes > BYTES_MAX))
			remove_folder(w, all[i].name);
	}
	free(all);
	if (dir)
		closedir(dir);
	else if (fd >= 0)
		close(fd);
}
