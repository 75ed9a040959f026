// SPDX-License-Identifier: Apache-2.0
/*
 * The site finder, on the libc that runs this test and on any files named in WEFT_TEST_MODULES (separated by
 * colons), which are mapped but never run.
 */
#include "gate/fde.c"
#include "gate/insn.c"
#include "gate/scan.c"
#include "gate/sites.c"

#include "gate.h"
#include "tap.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define JMP_LEN 5 /* jmp rel32: what a window must have room for */

/* Load a shared object as bytes at the right distances, without running or relocating anything. */
static bool map_file(const char *path, struct dl_phdr_info *out)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	const uint8_t *file;
	const ElfW(Ehdr) * eh;
	const ElfW(Phdr) * ph;
	size_t span = 0;
	uint8_t *base;

	if (fd < 0 || fstat(fd, &st) != 0)
		return false;
	file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (file == MAP_FAILED)
		return false;
	eh = (const void *)file;
	if (memcmp(eh->e_ident, ELFMAG, SELFMAG) != 0)
		return false;
	ph = (const void *)(file + eh->e_phoff);
	for (size_t i = 0; i < eh->e_phnum; i++)
		if (ph[i].p_type == PT_LOAD && ph[i].p_vaddr + ph[i].p_memsz > span)
			span = ph[i].p_vaddr + ph[i].p_memsz;
	base = mmap(NULL, span, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		    -1, 0);
	if (base == MAP_FAILED)
		return false;
	for (size_t i = 0; i < eh->e_phnum; i++)
		if (ph[i].p_type == PT_LOAD)
			memcpy(base + ph[i].p_vaddr, file + ph[i].p_offset, ph[i].p_filesz);
	*out = (struct dl_phdr_info){ .dlpi_addr = (uintptr_t)base,
				      .dlpi_name = path,
				      .dlpi_phdr = ph,
				      .dlpi_phnum = eh->e_phnum };
	return true;
}

static bool every(int nr)
{
	(void)nr;
	return true;
}

static void report(const char *name, const struct dl_phdr_info *m)
{
	const struct wf_scan_wish wish = { .wanted = every };
	struct wf_gate_counts c;
	struct wf_site_list list;
	double best = 1e9;

	for (int round = 0; round < 5; round++) {
		double start = now_ms();

		if (!CHECK_EQ(wf_sites_find(m, &wish, &c, &list), 0))
			return;
		best = now_ms() - start < best ? now_ms() - start : best;
		wf_sites_free(&list);
	}
	tap_note("%s: found %u (unknown number %u), wanted %u, left %u, doubtful %u, %.2f ms", name,
		 c.found, c.unknown, c.wanted, c.left, c.doubtful, best);
}

/* Bytes with many of the interesting ones, at every distance from the end. */
TEST(bytes_are_found_as_one_by_one)
{
	static const uint8_t choice[] = { 0x0f, 0x05, 0x80, 0x8f, 0xe9, 0x90, 0x00, 0xff };
	uint8_t code[300];
	uint32_t random = 1;

	for (size_t i = 0; i < sizeof(code); i++) {
		random = random * 1664525u + 1013904223u;
		code[i] = choice[random >> 24 & 7];
	}
	for (size_t start = 0; start < 70; start++) {
		for (size_t end = start; end <= sizeof(code); end++) {
			const uint8_t *p = code + start;

			while (p + 1 < code + end && !(p[0] == 0x0f && p[1] == 0x05))
				p++;
			if (p + 1 >= code + end)
				p = code + end;
			if (!CHECK(wf_arch_find_syscall(code + start, code + end) == p))
				return;
		}
	}
	for (size_t start = 0; start < 70; start++) {
		uint64_t masks[3];

		wf_arch_mark_jumps(code + start, 3, masks);
		for (size_t i = 0; i < 192; i++) {
			const uint8_t *p = code + start + i;
			bool is_jump = *p == 0xe9 || (*p == 0x0f && (p[1] & 0xf0) == 0x80);

			if (!CHECK_EQ(masks[i / 64] >> (i % 64) & 1, is_jump))
				return;
		}
	}
}

TEST(every_site_of_libc_has_a_window)
{
	struct dl_phdr_info m = libc_module();
	struct wf_gate_counts c;
	struct wf_site_list list;

	report("libc", &m);
	if (!CHECK_EQ(wf_sites_find(&m, &(struct wf_scan_wish){ .wanted = every }, &c, &list), 0))
		return;
	CHECK(c.found > 300);
	CHECK_EQ(c.left, 0);
	CHECK_EQ(c.doubtful, 0);
	CHECK_EQ(list.nr, c.wanted);
	for (size_t i = 0; i < list.nr; i++) {
		const struct wf_site *s = &list.sites[i];

		CHECK(memcmp((const void *)s->addr, "\x0f\x05", 2) == 0);
		CHECK(s->window <= s->addr && s->addr + 2 <= s->window + s->window_len);
		CHECK(s->window_len >= JMP_LEN);
		CHECK(i == 0 ||
		      list.sites[i - 1].window + list.sites[i - 1].window_len <= s->window);
		CHECK(s->nr != __NR_rt_sigreturn);
	}
	wf_sites_free(&list);
}

TEST(modules_given_by_name_are_scanned)
{
	char *names = getenv("WEFT_TEST_MODULES");
	char *save = NULL;

	if (!names)
		SKIP("WEFT_TEST_MODULES names no files");
	names = strdup(names);
	for (char *path = strtok_r(names, ":", &save); path; path = strtok_r(NULL, ":", &save)) {
		struct dl_phdr_info m;

		if (!CHECK(map_file(path, &m)))
			continue;
		report(path, &m);
	}
	free(names);
}
