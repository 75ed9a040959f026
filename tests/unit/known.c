// SPDX-License-Identifier: Apache-2.0
/* The list that the build has made of libc, against a search of the file of the libc that runs this test. */
#include "gate/fde.c"
#include "gate/known.c"
#include "gate/x86_64/insn.c"
#include "gate/x86_64/plain.c"
#include "gate/x86_64/scan.c"
#include "gate/x86_64/sites.c"

#include "gate.h"
#include "linux/dispatch.h"
#include "tap.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAX_PHDRS 32

/* The table of patches, with one. */
static uintptr_t replaced;

uintptr_t wf_gate_to_tramp(uintptr_t rip)
{
	return rip == replaced ? 1 : rip;
}

static ElfW(Phdr) headers[MAX_PHDRS];
static uintptr_t running_base;

/* A copy that may be written to. */
static bool map_copy(const struct dl_phdr_info *running, struct dl_phdr_info *out)
{
	int fd = open(running->dlpi_name, O_RDONLY | O_CLOEXEC);
	size_t span = 0;
	uint8_t *base;

	if (fd < 0 || running->dlpi_phnum > MAX_PHDRS)
		return false;
	memcpy(headers, running->dlpi_phdr, running->dlpi_phnum * sizeof(headers[0]));
	for (size_t i = 0; i < running->dlpi_phnum; i++)
		if (headers[i].p_type == PT_LOAD)
			span = headers[i].p_vaddr + headers[i].p_memsz;
	base = mmap(NULL, span, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (base == MAP_FAILED)
		return false;
	for (size_t i = 0; i < running->dlpi_phnum; i++)
		if (headers[i].p_type == PT_LOAD &&
		    pread(fd, base + headers[i].p_vaddr, headers[i].p_filesz,
			  (off_t)headers[i].p_offset) != (ssize_t)headers[i].p_filesz)
			return false;
	close(fd);
	*out = *running;
	out->dlpi_phdr = headers;
	out->dlpi_addr = (uintptr_t)base;
	return true;
}

static int take_loader(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	if (!info->dlpi_name || !strstr(info->dlpi_name, "/ld-linux-x86-64.so.2"))
		return 0;
	*(struct dl_phdr_info *)arg = *info;
	return 1;
}

/* The table is of the libc that was there at the build. */
static bool is_built_here(const struct dl_phdr_info *m)
{
	uint8_t id[WF_KNOWN_ID];

	if (!wf_known_id(m, id))
		return false;
	for (size_t i = 0; i < wf_known_table.nr; i++)
		if (memcmp(wf_known_table.entries[i].id, id, sizeof(id)) == 0)
			return true;
	return false;
}

/* A copy of libc that the table knows; otherwise the test is skipped. */
static bool take_copy(struct dl_phdr_info *out)
{
	struct dl_phdr_info running = libc_module();

	running_base = running.dlpi_addr;
	if (CHECK(map_copy(&running, out)) && is_built_here(out))
		return true;
	tap_skip("this is not the libc that weft was built beside");
	return false;
}

static const void *syscall_in(const struct dl_phdr_info *copy)
{
	return (const void *)((uintptr_t)dlsym(RTLD_DEFAULT, "syscall") - running_base +
			      copy->dlpi_addr);
}

static bool is_known_to(bool (*wanted)(int nr), const struct dl_phdr_info *m, const void *glance)
{
	const struct wf_scan_wish wish = { .wanted = wanted, .glance = glance };
	struct wf_gate_counts counts;
	struct wf_site_list list;

	if (!wf_known_find(&wf_known_table, m, &wish, &counts, &list))
		return false;
	wf_sites_free(&list);
	return true;
}

static bool is_known(const struct dl_phdr_info *m, const void *glance)
{
	return is_known_to(lx_wants, m, glance);
}

static void compare(const struct dl_phdr_info *m, const struct wf_scan_wish *wish, size_t at_least)
{
	struct wf_gate_counts found, known;
	struct wf_site_list a, b;

	if (!CHECK_EQ(wf_sites_find(m, wish, &found, &a), 0) ||
	    !CHECK(wf_known_find(&wf_known_table, m, wish, &known, &b)))
		return;
	CHECK(a.nr >= at_least);
	CHECK(memcmp(&found, &known, sizeof(found)) == 0);
	if (CHECK_EQ(b.nr, a.nr))
		CHECK(memcmp(a.sites, b.sites, a.nr * sizeof(a.sites[0])) == 0);
	wf_sites_free(&a);
	wf_sites_free(&b);
}

TEST(what_is_known_is_what_a_search_finds)
{
	struct dl_phdr_info loader, copy;

	if (!take_copy(&copy))
		return;
	CHECK_EQ(wf_known_table.nr, 3);
	compare(&copy, &(struct wf_scan_wish){ .wanted = lx_wants }, 200);
	compare(&copy,
		&(struct wf_scan_wish){ .wanted = lx_wants_at_start, .glance = syscall_in(&copy) },
		4);
	if (CHECK_EQ(dl_iterate_phdr(take_loader, &loader), 1) && CHECK(map_copy(&loader, &copy)))
		compare(&copy, &(struct wf_scan_wish){ .wanted = lx_wants }, 5);
}

static unsigned int nr_asked;

static bool note_one(int nr)
{
	nr_asked += nr == __NR_clone3;
	return true;
}

/* modules.c learns so that the calls are there. */
TEST(the_wish_is_asked_for_each_call)
{
	struct dl_phdr_info copy;

	if (!take_copy(&copy))
		return;
	CHECK(is_known_to(note_one, &copy, syscall_in(&copy)));
	CHECK(nr_asked > 0);
}

/* Each byte of it counts. */
TEST(a_window_that_somebody_wrote_to_is_not_known)
{
	struct dl_phdr_info copy;
	const struct wf_known *all = NULL;
	const struct wf_known_site *s;

	if (!take_copy(&copy))
		return;
	for (size_t i = 0; i < wf_known_table.nr && !all; i++)
		if (!wf_known_table.entries[i].glance)
			all = &wf_known_table.entries[i];
	if (!CHECK(all != NULL))
		return;
	s = wf_known_table.sites + all->first;
	for (size_t i = 0; i < all->nr; i += all->nr / 7) {
		uint8_t *window = (uint8_t *)copy.dlpi_addr + s[i].addr - s[i].before;

		for (size_t at = 0; at < s[i].len; at++) {
			window[at] ^= 0x40;
			CHECK(!is_known(&copy, NULL));
			window[at] ^= 0x40;
		}
	}
	CHECK(is_known(&copy, NULL));
}

TEST(a_site_that_is_replaced_already_is_left_out)
{
	const struct wf_scan_wish wish = { .wanted = lx_wants };
	struct wf_gate_counts before, after;
	struct wf_site_list all, list;
	struct dl_phdr_info copy;
	uintptr_t own;

	if (!take_copy(&copy) ||
	    !CHECK(wf_known_find(&wf_known_table, &copy, &wish, &before, &all)))
		return;
	own = all.sites[3].addr;
	*(uint8_t *)all.sites[3].window = 0xe9;
	CHECK(!is_known(&copy, NULL));
	replaced = own;
	if (CHECK(wf_known_find(&wf_known_table, &copy, &wish, &after, &list))) {
		CHECK_EQ(list.nr, all.nr - 1);
		CHECK(memcmp(list.sites, all.sites, 3 * sizeof(all.sites[0])) == 0);
		CHECK(memcmp(list.sites + 3, all.sites + 4, (list.nr - 3) * sizeof(all.sites[0])) ==
		      0);
		CHECK_EQ(after.found, before.found - 1);
		CHECK_EQ(after.wanted, before.wanted - 1);
		CHECK_EQ(after.unknown, before.unknown - (all.sites[3].nr < 0));
		wf_sites_free(&list);
	}
	replaced = 0;
	wf_sites_free(&all);
}

TEST(another_file_is_not_known)
{
	struct dl_phdr_info copy;

	if (!take_copy(&copy))
		return;
	CHECK(is_known(&copy, NULL));
	CHECK(is_known(&copy, syscall_in(&copy)));
	CHECK(!is_known(&copy, (const uint8_t *)syscall_in(&copy) + 1));
	for (size_t i = 0; i < copy.dlpi_phnum; i++) {
		ElfW(Phdr) *ph = &headers[i];
		ElfW(Phdr) was = *ph;

		if (ph->p_type == PT_NOTE && ph->p_align == 4) {
			uint8_t *note = (uint8_t *)copy.dlpi_addr + ph->p_vaddr;
			/* the build id's first and last byte, its name, and lengths that lead out of the notes */
			static const size_t places[] = { 16, 35, 12, 0, 4, 8 };

			for (size_t n = 0; n < ARRAY_LEN(places); n++) {
				note[places[n]] ^= 0xff;
				CHECK(!is_known(&copy, NULL));
				note[places[n]] ^= 0xff;
			}
			ph->p_filesz = 20;
			CHECK(!is_known(&copy, NULL));
		} else if (ph->p_type == PT_LOAD && ph->p_flags & PF_X) {
			ph->p_flags &= ~(ElfW(Word))PF_X;
			CHECK(!is_known(&copy, NULL));
			*ph = was;
			ph->p_filesz /= 2;
			CHECK(!is_known(&copy, NULL));
		}
		*ph = was;
	}
	CHECK(is_known(&copy, NULL));
}

TEST(nothing_is_known_without_a_table)
{
	struct dl_phdr_info copy = libc_module();
	struct wf_gate_counts counts;
	struct wf_site_list list;

	CHECK(!wf_known_find(&(struct wf_known_table){ .nr = 0 }, &copy,
			     &(struct wf_scan_wish){ .wanted = lx_wants }, &counts, &list));
}
