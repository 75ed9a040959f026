// SPDX-License-Identifier: Apache-2.0
/* Memory that searching a module takes, and gives back; see resident.h. Freestanding: under the loader's lock. */
#include "gate/resident.h"

#include "sys/syscall.h"

#include <fcntl.h>
#include <linux/stat.h>
#include <sys/mman.h>

#define LEAST (2ul << 20)
#define AT_ONCE 512u /* entries of the kernel's list: a page of them */

/* Bits of an entry: Documentation/admin-guide/mm/pagemap.rst. */
#define IS_THERE (1ull << 63)
#define IS_SWAPPED (1ull << 62)
#define IS_OF_FILE (1ull << 61)

static bool is_read_only(const ElfW(Phdr) * ph)
{
	return ph->p_type == PT_LOAD && !(ph->p_flags & PF_W);
}

static size_t nr_pages(const struct wf_resident *r)
{
	return (r->hi - r->lo) / WF_PAGE;
}

static void mark(struct wf_resident *r, size_t page)
{
	r->here[page / 64] |= 1ull << (page % 64);
}

static bool is_marked(const struct wf_resident *r, size_t page)
{
	return r->here[page / 64] >> (page % 64) & 1;
}

/* The buffer lies behind the bits. */
static uint64_t *entries_of(const struct wf_resident *r)
{
	return (uint64_t *)((char *)r->here + r->bytes) - AT_ONCE;
}

/* Reads the entries of pages from first on, at most up to end. Returns how many, 0 where that fails. */
static size_t read_entries(const struct wf_resident *r, size_t first, size_t end)
{
	size_t nr = WF_MIN(end - first, (size_t)AT_ONCE);
	long got = sys4(__NR_pread64, r->fd, entries_of(r), nr * sizeof(uint64_t),
			(r->lo / WF_PAGE + first) * sizeof(uint64_t));

	return got > 0 ? (size_t)got / sizeof(uint64_t) : 0;
}

static uint64_t identity(long fd)
{
	struct statx st = { 0 };

	if (sys5(__NR_statx, fd, "", AT_EMPTY_PATH, STATX_INO, &st) < 0)
		return 0;
	return st.stx_ino ^ (uint64_t)st.stx_dev_minor << 44 ^ (uint64_t)st.stx_dev_major << 54;
}

/* A program that closes all of its descriptors closes ours, and may have opened another file in its place. */
static bool is_still_ours(const struct wf_resident *r)
{
	return r->identity && identity(r->fd) == r->identity;
}

static void done(struct wf_resident *r)
{
	if (r->here)
		sys_unmap(r->here, r->bytes);
	if (r->fd >= 0 && is_still_ours(r))
		(void)sys_close((int)r->fd);
	*r = (struct wf_resident){ .fd = -1 };
}

/* Only pages that lie in segments without the right to write. */
static void mark_all_but_read_only(struct wf_resident *r, const struct dl_phdr_info *m)
{
	for (size_t i = 0; i < (nr_pages(r) + 63) / 64; i++)
		r->here[i] = ~0ull;
	for (int i = 0; i < m->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &m->dlpi_phdr[i];
		uintptr_t from = WF_ALIGN_UP(m->dlpi_addr + ph->p_vaddr, WF_PAGE);
		uintptr_t to = WF_ALIGN_DOWN(m->dlpi_addr + ph->p_vaddr + ph->p_filesz, WF_PAGE);

		for (uintptr_t at = from; is_read_only(ph) && at < to; at += WF_PAGE)
			r->here[(at - r->lo) / WF_PAGE / 64] &= ~(1ull
								  << ((at - r->lo) / WF_PAGE % 64));
	}
}

/* These stay: what is there already, and later what is the process's own copy. */
static bool is_kept(uint64_t entry, bool is_later)
{
	if (!is_later)
		return entry & (IS_THERE | IS_SWAPPED);
	return entry & IS_THERE ? !(entry & IS_OF_FILE) : entry & IS_SWAPPED;
}

static bool mark_what_stays(struct wf_resident *r, bool is_later)
{
	size_t n;

	for (size_t page = 0; page < nr_pages(r); page += n) {
		n = read_entries(r, page, nr_pages(r));
		for (size_t i = 0; i < n; i++)
			if (is_kept(entries_of(r)[i], is_later))
				mark(r, page + i);
		if (!n)
			return false;
	}
	return is_still_ours(r);
}

void wf_resident_note(struct wf_resident *out, const struct dl_phdr_info *m)
{
	uintptr_t lo = UINTPTR_MAX, hi = 0;
	size_t bytes = 0;

	*out = (struct wf_resident){ .fd = -1 };
	for (int i = 0; i < m->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &m->dlpi_phdr[i];

		if (!is_read_only(ph))
			continue;
		lo = WF_MIN(lo, WF_ALIGN_DOWN(m->dlpi_addr + ph->p_vaddr, WF_PAGE));
		hi = WF_MAX(hi, WF_ALIGN_UP(m->dlpi_addr + ph->p_vaddr + ph->p_filesz, WF_PAGE));
		bytes += ph->p_filesz;
	}
	if (bytes < LEAST)
		return;
	out->lo = lo;
	out->hi = hi;
	out->bytes = WF_ALIGN_UP(nr_pages(out) / 8 + 8, WF_PAGE) + AT_ONCE * sizeof(uint64_t);
	out->fd = sys4(__NR_openat, AT_FDCWD, "/proc/self/pagemap", O_RDONLY | O_CLOEXEC, 0);
	out->identity = out->fd < 0 ? 0 : identity(out->fd);
	out->here = out->identity ? sys_map(out->bytes) : NULL;
	if (!out->here) {
		done(out);
		return;
	}
	mark_all_but_read_only(out, m);
	if (!mark_what_stays(out, false))
		done(out);
}

static void give_back(const struct wf_resident *r, size_t from, size_t to)
{
	if (from < to)
		(void)sys3(__NR_madvise, r->lo + from * WF_PAGE, (to - from) * WF_PAGE,
			   MADV_DONTNEED);
}

void wf_resident_restore(struct wf_resident *r)
{
	size_t from = 0; /* [from, page) may go */

	if (!r->hi)
		return;
	if (mark_what_stays(r, true)) {
		for (size_t page = 0; page < nr_pages(r); page++) {
			if (!is_marked(r, page))
				continue;
			give_back(r, from, page);
			from = page + 1;
		}
		give_back(r, from, nr_pages(r));
	}
	done(r);
}
