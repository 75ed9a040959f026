// SPDX-License-Identifier: Apache-2.0
/*
 * The journal: one line for each place, with the value that was there and the one that is going to be.
 *
 * Called by: apply.c. Invariant: a line is whole and on the disk before its place is written. A line that a crash cut has
 * no line end; its place was not written, so it does not count.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tune/tune.h"

#define FIRST_LINE "weft doctor journal 1\n"
#define SUFFIX ".journal"
#define TRIES 100 /* journals of one second */

static const char *const kind_names[] = { "set", "took", "not" };

int wf_journal_boot(const struct wf_machine *m, char out[64])
{
	int ret = wf_place_text(m, "/proc/sys/kernel/random/boot_id", out, 64);

	return ret == 0 && !*out ? -ENODATA : ret;
}

/* Makes what is missing of WF_JOURNAL_DIR; links of a copy are not followed. Returns a descriptor or -errno. */
static int open_directory(const struct wf_machine *m)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
	int at = open(wf_machine_is_live(m) ? "/" : m->root, flags);
	char path[] = WF_JOURNAL_DIR;

	for (char *name = strtok(path, "/"); name && at >= 0; name = strtok(NULL, "/")) {
		int next, error;

		(void)mkdirat(at, name, 0755);
		next = openat(at, name, flags | (wf_machine_is_live(m) ? 0 : O_NOFOLLOW));
		error = errno;
		(void)fsync(at);
		(void)close(at);
		at = next;
		errno = error;
	}
	return at < 0 ? -errno : at;
}

static int write_line(int fd, const char *line)
{
	size_t len = strlen(line);
	ssize_t done = write(fd, line, len);

	if (done < 0)
		return -errno;
	if ((size_t)done != len)
		return -ENOSPC;
	return fsync(fd) < 0 ? -errno : 0;
}

int wf_journal_create(const struct wf_machine *m, struct wf_journal *out)
{
	char stamp[32];
	time_t now = time(NULL);
	struct tm tm;
	int ret;

	*out = (struct wf_journal){ .fd = -1 };
	out->dir = open_directory(m);
	if (out->dir < 0)
		return out->dir;
	strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", gmtime_r(&now, &tm));
	for (int i = 0; out->fd < 0 && i < TRIES; i++) {
		snprintf(out->name, sizeof(out->name), "%s-%02d" SUFFIX, stamp, i);
		out->fd = openat(out->dir, out->name,
				 O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC | O_NOFOLLOW,
				 0644);
		if (out->fd < 0 && errno != EEXIST)
			break;
	}
	ret = out->fd < 0 ? -errno : write_line(out->fd, FIRST_LINE);
	if (ret == 0 && fsync(out->dir) < 0)
		ret = -errno;
	if (ret < 0) {
		wf_journal_close(out);
		return ret;
	}
	snprintf(out->path, sizeof(out->path), "%s" WF_JOURNAL_DIR "/%s", m->root, out->name);
	return 0;
}

int wf_journal_add(struct wf_journal *j, const struct wf_entry *e)
{
	char line[2048];

	snprintf(line, sizeof(line), "%s\t%s\t%s\t%s\t%s\n", kind_names[e->kind], e->place, e->old,
		 e->value, e->boot);
	j->nr++;
	return write_line(j->fd, line);
}

void wf_journal_close(struct wf_journal *j)
{
	if (j->fd >= 0 && j->nr == 0)
		(void)unlinkat(j->dir, j->name, 0);
	if (j->fd >= 0)
		(void)close(j->fd);
	(void)close(j->dir);
}

static bool is_journal(const char *name)
{
	size_t len = strlen(name), end = strlen(SUFFIX);

	return len > end && strcmp(name + len - end, SUFFIX) == 0;
}

int wf_journal_latest(const struct wf_machine *m, char *out, size_t bytes)
{
	char dir_path[4096], best[256] = "";
	const struct dirent *entry;
	DIR *dir;

	snprintf(dir_path, sizeof(dir_path), "%s" WF_JOURNAL_DIR, m->root);
	dir = opendir(dir_path);
	if (!dir)
		return -errno;
	while ((entry = readdir(dir))) {
		if (is_journal(entry->d_name) && strcmp(entry->d_name, best) > 0)
			snprintf(best, sizeof(best), "%s", entry->d_name);
	}
	(void)closedir(dir);
	if (!*best || snprintf(out, bytes, "%s/%s", dir_path, best) >= (int)bytes)
		return -ENOENT;
	return 0;
}

static bool take(char **line, char *out, size_t bytes)
{
	const char *word = strsep(line, "\t");

	return word && snprintf(out, bytes, "%s", word) < (int)bytes;
}

static bool take_entry(char *line, struct wf_entry *out)
{
	char kind[8];

	if (!take(&line, kind, sizeof(kind)) || !take(&line, out->place, sizeof(out->place)) ||
	    !take(&line, out->old, sizeof(out->old)) ||
	    !take(&line, out->value, sizeof(out->value)) ||
	    !take(&line, out->boot, sizeof(out->boot)) || line)
		return false;
	for (int i = WF_ENTRY_SET; i <= WF_ENTRY_NOT; i++) {
		if (strcmp(kind, kind_names[i]) == 0) {
			out->kind = (enum wf_entry_kind)i;
			return true;
		}
	}
	return false;
}

int wf_journal_read(const char *path, struct wf_entry **out)
{
	FILE *file = fopen(path, "re");
	struct wf_entry *entries = NULL, *more;
	char *line = NULL;
	size_t room = 0;
	ssize_t len;
	int nr = 0, ret = 0;

	if (!file)
		return -errno;
	errno = 0;
	len = getline(&line, &room, file);
	if (len < 0 && errno)
		ret = -errno;
	else if (len < 0 || strcmp(line, FIRST_LINE) != 0)
		ret = -EBADMSG;
	while (ret == 0 && (len = getline(&line, &room, file)) > 0 && line[len - 1] == '\n') {
		line[len - 1] = '\0';
		more = realloc(entries, (size_t)(nr + 1) * sizeof(*entries));
		if (!more) {
			ret = -ENOMEM;
			break;
		}
		entries = more;
		if (!take_entry(line, &entries[nr++]))
			ret = -EBADMSG;
	}
	free(line);
	(void)fclose(file);
	if (ret < 0) {
		free(entries);
		return ret;
	}
	*out = entries;
	return nr;
}

int wf_journal_retire(const char *path)
{
	char to[4300];

	snprintf(to, sizeof(to), "%s.undone", path);
	return rename(path, to) < 0 ? -errno : 0;
}
