// SPDX-License-Identifier: Apache-2.0
/*
 * Follows DT_NEEDED through the file system.
 *
 * Called by: report.c. Invariant: like binary.c, no byte of a file or of the loader's cache is trusted.
 *
 * Left out, because the answer is a report and not a link map: $LIB and $PLATFORM in search paths, the
 * glibc-hwcaps variants (they import the same names), DF_1_NODEFLIB, and RPATH of indirect requesters.
 */
#include "libraries.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_LIBRARIES 4096 /* a bound against loops that name themselves anew */

#define CACHE_PATH "/etc/ld.so.cache"
#define CACHE_MAGIC "glibc-ld.so.cache1.1"
#define CACHE_X86_64 0x303 /* a libc.so.6 library for x86-64 */

/* The file /etc/ld.so.cache of glibc 2.2 and later; offsets of strings count from its beginning. */
struct cache_header {
	char magic[20];
	uint32_t nr;
	uint32_t strings_bytes;
	uint32_t unused[5];
};

struct cache_entry {
	int32_t flags;
	uint32_t name, path;
	uint32_t os_version;
	uint64_t hwcap;
};

_Static_assert(sizeof(struct cache_header) == 48 && sizeof(struct cache_entry) == 24,
	       "the layout is glibc's");

static const char *const default_dirs[] = {
	"/lib/x86_64-linux-gnu",
	"/usr/lib/x86_64-linux-gnu",
	"/lib64",
	"/usr/lib64",
	"/lib",
	"/usr/lib",
};

static void load_cache(struct wf_libraries *l)
{
	struct stat st;
	int fd = open(CACHE_PATH, O_RDONLY | O_CLOEXEC);
	char *mem = NULL, *magic;
	ssize_t len = -1;

	if (fd < 0)
		return;
	if (fstat(fd, &st) == 0 && st.st_size > 0 && st.st_size < 64 << 20) {
		mem = malloc((size_t)st.st_size + 1);
		if (mem)
			len = read(fd, mem, (size_t)st.st_size);
	}
	(void)close(fd);
	if (len <= 0) {
		free(mem);
		return;
	}
	mem[len] = '\0'; /* ends the last string, whatever the file says */
	/* Up to glibc 2.31 an older table may stand before the one that we read. */
	magic = memmem(mem, (size_t)len, CACHE_MAGIC, sizeof(CACHE_MAGIC) - 1);
	if (!magic) {
		free(mem);
		return;
	}
	l->cache_bytes = (size_t)(mem + len - magic);
	memmove(mem, magic, l->cache_bytes + 1);
	l->cache = mem;
}

static const char *find_in_cache(const struct wf_libraries *l, const char *name)
{
	struct cache_header header;
	struct cache_entry entry;

	if (l->cache_bytes < sizeof(header))
		return NULL;
	memcpy(&header, l->cache, sizeof(header));
	for (uint32_t i = 0; i < header.nr; i++) {
		uint64_t at = sizeof(header) + (uint64_t)i * sizeof(entry);

		if (at + sizeof(entry) > l->cache_bytes)
			break;
		memcpy(&entry, l->cache + at, sizeof(entry));
		if (entry.flags == CACHE_X86_64 && entry.hwcap == 0 &&
		    entry.name < l->cache_bytes && entry.path < l->cache_bytes &&
		    strcmp(l->cache + entry.name, name) == 0)
			return l->cache + entry.path;
	}
	return NULL;
}

/* Opens path if it is a library for us. Returns 0 or -errno; the fd is closed again. */
static int open_library(const char *path, struct wf_binary *out, unsigned int *out_traits)
{
	const char *damage;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	int ret;

	if (fd < 0)
		return -errno;
	ret = wf_binary_open(out, fd, &damage);
	if (ret < 0 || !out->is_64bit || out->machine != EM_X86_64 || out->type != ET_DYN) {
		wf_binary_close(out);
		return ret < 0 ? ret : -ENOEXEC;
	}
	(void)wf_binary_traits(out, out_traits);
	(void)close(out->fd);
	out->fd = -1;
	return 0;
}

static bool try_path(struct wf_libraries_item *item, const char *path)
{
	if (open_library(path, &item->binary, &item->traits) < 0)
		return false;
	item->path = strdup(path);
	if (!item->path)
		wf_binary_close(&item->binary);
	return item->path != NULL;
}

/* One directory of a search path; $ORIGIN is the directory of the requester. */
static bool try_dir(struct wf_libraries_item *item, const char *dir, size_t len, const char *origin)
{
	char path[2 * PATH_MAX];
	size_t origin_len = strrchr(origin, '/') ? (size_t)(strrchr(origin, '/') - origin) : 0;
	size_t token = len >= 7 && memcmp(dir, "$ORIGIN", 7) == 0     ? 7
		       : len >= 9 && memcmp(dir, "${ORIGIN}", 9) == 0 ? 9
								      : 0;

	if (len == 0 || len > PATH_MAX || origin_len > PATH_MAX || strlen(item->name) > NAME_MAX)
		return false;
	if (token)
		snprintf(path, sizeof(path), "%.*s%.*s/%s", (int)origin_len, origin,
			 (int)(len - token), dir + token, item->name);
	else
		snprintf(path, sizeof(path), "%.*s/%s", (int)len, dir, item->name);
	return try_path(item, path);
}

static bool try_dirs(struct wf_libraries_item *item, const char *dirs, const char *origin)
{
	while (dirs && *dirs) {
		size_t len = strcspn(dirs, ":;");

		if (try_dir(item, dirs, len, origin))
			return true;
		dirs += len + (dirs[len] != '\0');
	}
	return false;
}

static void find_library(const struct wf_libraries *l, struct wf_libraries_item *item,
			 const struct wf_binary *program, const struct wf_binary *requester,
			 const char *program_path, const char *requester_path)
{
	const char *cached;

	if (strchr(item->name, '/')) {
		(void)try_path(item, item->name);
		return;
	}
	if (!requester->runpath &&
	    (try_dirs(item, requester->rpath, requester_path) ||
	     (!program->runpath && try_dirs(item, program->rpath, program_path))))
		return;
	if (try_dirs(item, getenv("LD_LIBRARY_PATH"), "") ||
	    try_dirs(item, requester->runpath, requester_path))
		return;
	cached = find_in_cache(l, item->name);
	if (cached && try_path(item, cached))
		return;
	for (size_t i = 0; i < sizeof(default_dirs) / sizeof(default_dirs[0]); i++) {
		if (try_dir(item, default_dirs[i], strlen(default_dirs[i]), ""))
			return;
	}
}

static bool is_known(const struct wf_libraries *l, const char *name)
{
	for (size_t i = 0; i < l->nr; i++) {
		if (strcmp(l->items[i].name, name) == 0)
			return true;
	}
	return false;
}

/* Adds what b needs. May move l->items, so nobody keeps a pointer into it across this call. */
static int add_needed(struct wf_libraries *l, const struct wf_binary *program, const char *path,
		      size_t from)
{
	bool is_program = from == SIZE_MAX;
	size_t nr = is_program ? program->nr_needed : l->items[from].binary.nr_needed;

	for (size_t i = 0; i < nr && l->nr < MAX_LIBRARIES; i++) {
		const struct wf_binary *b = is_program ? program : &l->items[from].binary;
		struct wf_libraries_item *grown, item = { 0 };

		if (is_known(l, b->needed[i]))
			continue;
		item.name = strdup(b->needed[i]);
		if (!item.name)
			return -ENOMEM;
		find_library(l, &item, program, b, path, is_program ? path : l->items[from].path);
		grown = reallocarray(l->items, l->nr + 1, sizeof(*grown));
		if (!grown) {
			wf_binary_close(&item.binary);
			free(item.name);
			free(item.path);
			return -ENOMEM;
		}
		l->items = grown;
		l->items[l->nr++] = item;
	}
	return 0;
}

int wf_libraries_collect(struct wf_libraries *out, const struct wf_binary *program,
			 const char *path)
{
	int ret;

	*out = (struct wf_libraries){ 0 };
	load_cache(out);
	ret = add_needed(out, program, path, SIZE_MAX);
	for (size_t i = 0; ret == 0 && i < out->nr; i++) {
		if (out->items[i].path)
			ret = add_needed(out, program, path, i);
	}
	if (ret < 0)
		wf_libraries_free(out);
	return ret;
}

void wf_libraries_free(struct wf_libraries *l)
{
	for (size_t i = 0; i < l->nr; i++) {
		if (l->items[i].path)
			wf_binary_close(&l->items[i].binary);
		free(l->items[i].name);
		free(l->items[i].path);
	}
	free(l->items);
	free(l->cache);
	*l = (struct wf_libraries){ 0 };
}
