// SPDX-License-Identifier: Apache-2.0
/*
 * A copy of the machine's files, of those that the checks and the list of knobs read: whoever unpacks it sees with --root what
 * was seen here. Called by: doctor.c.
 *
 * Invariant: the checks say what is copied, by reading it (machine.h); there is no second list of files to keep true. Names of
 * other people's processes stay here.
 */
#include "snapshot.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "checks.h"
#include "cmd.h"
#include "tune/tune.h"

#define BLOCK 512
#define MOST_BYTES (1u << 20) /* of a file */

struct header {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type;
	char link[100], magic[6], version[2], user[32], group[32], major[8], minor[8], prefix[155];
	char rest[12];
};
_Static_assert(sizeof(struct header) == BLOCK, "as POSIX has it: ustar");

struct snapshot {
	FILE *out;
	void *seen; /* a tree of paths */
	char *content;
	size_t nr;
};

static int compare(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* True: it was not there before. */
static bool add(struct snapshot *s, const char *path)
{
	char *own = strdup(path), **found = own ? tsearch(own, &s->seen, compare) : NULL;

	if (found && *found == own)
		return true;
	free(own);
	return false;
}

/* /proc/12/comm, but of those that the list of knobs looks for. */
static bool is_private(const char *path, const char *content, size_t len)
{
	if (strncmp(path, "/proc/", 6) != 0 || !isdigit((unsigned char)path[6]))
		return false;
	return !(len == 6 && memcmp(content, "tuned\n", 6) == 0) &&
	       !(len == 11 && memcmp(content, "irqbalance\n", 11) == 0);
}

/* A path of up to 100 bytes, or a folder of up to 155 and a name of up to 100. */
static bool put_name(struct header *h, const char *path)
{
	size_t len = strlen(path);
	const char *cut = path;

	if (len <= sizeof(h->name)) {
		memcpy(h->name, path, len);
		return true;
	}
	while ((cut = strchr(cut + 1, '/')) && len - (size_t)(cut + 1 - path) > sizeof(h->name))
		;
	if (!cut || (size_t)(cut - path) > sizeof(h->prefix))
		return false;
	memcpy(h->prefix, path, (size_t)(cut - path));
	memcpy(h->name, cut + 1, len - (size_t)(cut + 1 - path));
	return true;
}

static void put_octal(char out[12], unsigned long long value)
{
	for (int i = 11; i-- > 0; value /= 8)
		out[i] = (char)('0' + value % 8);
}

static void put_file(struct snapshot *s, const char *path, size_t len)
{
	static const char zeros[BLOCK];
	struct header h = { .mode = "0000444",
			    .uid = "0000000",
			    .gid = "0000000",
			    .type = '0',
			    .magic = "ustar",
			    .version = { '0', '0' } };
	unsigned int sum = 0;

	if (!put_name(&h, path + 1))
		return;
	put_octal(h.size, len);
	put_octal(h.mtime, (unsigned long long)time(NULL));
	memset(h.checksum, ' ', sizeof(h.checksum));
	for (size_t i = 0; i < sizeof(h); i++)
		sum += ((const unsigned char *)&h)[i];
	snprintf(h.checksum, sizeof(h.checksum), "%06o", sum);
	fwrite(&h, sizeof(h), 1, s->out);
	fwrite(s->content, 1, len, s->out);
	fwrite(zeros, 1, (BLOCK - len % BLOCK) % BLOCK, s->out);
	s->nr++;
}

/* A file that cannot be read from its beginning on, as registers of a CPU, is left out. */
static void copy(const char *path, const char *content, void *data)
{
	struct snapshot *s = data;
	size_t len = 0;
	ssize_t got;
	int fd;

	if (path[0] != '/' || !add(s, path))
		return;
	if (content) {
		len = (size_t)snprintf(s->content, MOST_BYTES, "%s\n", content);
		put_file(s, path, len);
		return;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return;
	while (len < MOST_BYTES && (got = read(fd, s->content + len, MOST_BYTES - len)) > 0)
		len += (size_t)got;
	(void)close(fd);
	if (len > 0 && !is_private(path, s->content, len))
		put_file(s, path, len);
}

int wf_snapshot_write(const char *file)
{
	static const char end[2 * BLOCK];
	struct snapshot s = { .out = fopen(file, "we"), .content = malloc(MOST_BYTES) };
	const struct wf_machine m = { .root = "", .visit = copy, .data = &s };
	struct wf_checks_finding f;
	bool is_good;

	if (!s.out || !s.content) {
		wf_cmd_error("doctor: cannot write %s: %s", file, strerror(errno));
		if (s.out)
			(void)fclose(s.out);
		free(s.content);
		return WF_EXIT_REFUSED;
	}
	for (size_t i = 0; i < wf_checks_nr; i++)
		wf_checks_run(&wf_checks[i], &m, &f);
	wf_tune_look(&m);
	fwrite(end, sizeof(end), 1, s.out);
	is_good = !ferror(s.out);
	is_good = fclose(s.out) == 0 && is_good;
	tdestroy(s.seen, free);
	free(s.content);
	if (!is_good) {
		wf_cmd_error("doctor: cannot write %s: %s", file, strerror(errno));
		return WF_EXIT_REFUSED;
	}
	printf("wrote %s: %zu files; look at them before you pass it on\n", file, s.nr);
	return 0;
}
