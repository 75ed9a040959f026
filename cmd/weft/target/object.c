// SPDX-License-Identifier: Apache-2.0
/*
 * The file behind a mapping; see object.h.
 *
 * After an upgrade the name leads to another file, or to none, and in a container it is a name in another tree.
 * /proc/PID/map_files leads to what is mapped, but only root; others try the name in the process's
 * own root, and take what is there when it begins as the mapping does, with headers and build-id. (Device and number in
 * /proc/PID/maps are no proof: an overlay tells those of another layer.) The last resort, for an object whose
 * file is gone, is its image in memory: it has no section headers, but what unwinding and exported
 * names need is in its segments.
 */
#include "target/object.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "target/file.h"
#include "target/symbol.h"

#define DELETED " (deleted)"
#define MAX_IMAGE (64u << 20)
#define PIECE (64u << 10)

static bool is_file(const struct wf_target_map *m)
{
	return m->path[0] == '/';
}

static bool is_vdso(const struct wf_target_map *m)
{
	return strcmp(m->path, "[vdso]") == 0;
}

bool wf_object_begins(const struct wf_target *t, const struct wf_target_map *m)
{
	if (is_vdso(m))
		return true;
	if (m->offset || !is_file(m))
		return false;
	for (const struct wf_target_map *at = m; at < t->maps + t->nr_maps; at++) {
		if (at != m && (!at->offset || strcmp(at->path, m->path) != 0))
			return false;
		if (at->has_code)
			return true;
	}
	return false;
}

void wf_object_name(const struct wf_target *t, const struct wf_target_map *m, char *out,
		    size_t bytes)
{
	size_t len = strlen(m->path), end = strlen(DELETED);

	if (!t->is_core && len > end && strcmp(m->path + len - end, DELETED) == 0)
		len -= end;
	if (t->has_own_root && is_file(m))
		snprintf(out, bytes, "/proc/%d/root%.*s", t->pid, (int)len, m->path);
	else
		snprintf(out, bytes, "%.*s", (int)len, m->path);
}

/* From memory at address into the file at offset. */
static bool copy_piece(const struct wf_target *t, int fd, uint64_t address, uint64_t bytes,
		       uint64_t offset)
{
	char buf[PIECE];

	while (bytes) {
		size_t n = bytes < sizeof(buf) ? bytes : sizeof(buf);

		if (!wf_target_read(t, address, buf, n) ||
		    pwrite(fd, buf, n, (off_t)offset) != (ssize_t)n)
			return false;
		address += n;
		offset += n;
		bytes -= n;
	}
	return true;
}

static bool copy_segments(const struct wf_target *t, int fd, uint64_t start)
{
	Elf64_Phdr p[WF_SYMBOL_HEADERS];
	uint64_t base = 0, left = MAX_IMAGE;
	bool has_base = false;
	Elf64_Ehdr e;

	if (!wf_symbol_read_headers(t, start, &e, p))
		return false;
	for (int i = 0; i < e.e_phnum; i++) {
		if (p[i].p_type != PT_LOAD)
			continue;
		if (!has_base)
			base = start - (p[i].p_vaddr & -(uint64_t)4096);
		has_base = true;
		if (p[i].p_filesz > left || p[i].p_offset > MAX_IMAGE)
			return false;
		left -= p[i].p_filesz;
		if (!copy_piece(t, fd, base + p[i].p_vaddr, p[i].p_filesz, p[i].p_offset))
			return false;
	}
	/* The table of sections lies outside of the segments. */
	e.e_shoff = 0;
	e.e_shnum = e.e_shstrndx = 0;
	return has_base && pwrite(fd, &e, sizeof(e), 0) == (ssize_t)sizeof(e);
}

static int image_of(const struct wf_target *t, const struct wf_target_map *m)
{
	int fd = memfd_create("weft-dump", MFD_CLOEXEC);
	bool is_good;

	if (fd < 0)
		return -1;
	/* All of it is in memory, its table of sections, too. */
	if (is_vdso(m))
		is_good = m->end - m->start <= MAX_IMAGE &&
			  copy_piece(t, fd, m->start, m->end - m->start, 0);
	else
		is_good = copy_segments(t, fd, m->start);
	if (is_good && wf_file_is_elf(fd))
		return fd;
	close(fd);
	return -1;
}

static bool begins_alike(const struct wf_target *t, const struct wf_target_map *m, int fd)
{
	char a[4096], b[4096];
	ssize_t n = pread(fd, a, sizeof(a), 0);

	return n > 0 && wf_target_read(t, m->start, b, (size_t)n) && memcmp(a, b, (size_t)n) == 0;
}

static int open_mapped(const struct wf_target *t, const struct wf_target_map *m)
{
	char path[PATH_MAX + 64];
	int fd;

	if (t->is_core)
		return wf_file_open(m->path);
	snprintf(path, sizeof(path), "/proc/%d/map_files/%llx-%llx", t->pid,
		 (unsigned long long)m->start, (unsigned long long)m->end);
	fd = wf_file_open(path);
	if (fd >= 0)
		return fd;
	wf_object_name(t, m, path, sizeof(path));
	fd = wf_file_open(path);
	if (fd < 0 || begins_alike(t, m, fd))
		return fd;
	close(fd);
	return -1;
}

int wf_object_open(const struct wf_target *t, const struct wf_target_map *m)
{
	int fd = is_file(m) ? open_mapped(t, m) : -1;

	if (fd >= 0 && wf_file_is_elf(fd))
		return fd;
	if (fd >= 0)
		close(fd);
	return t->is_core ? -1 : image_of(t, m);
}
