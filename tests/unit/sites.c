// SPDX-License-Identifier: Apache-2.0
/*
 * The site finder, on the libc that runs this test and on any files named in WEFT_TEST_MODULES (separated by
 * colons), which are mapped but never run.
 */
#include "gate/fde.c"
#include "gate/x86_64/insn.c"
#include "gate/x86_64/plain.c"
#include "gate/x86_64/scan.c"
#include "gate/x86_64/sites.c"

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
			if (!CHECK(wf_find_syscall(code + start, code + end) == p))
				return;
		}
	}
	for (size_t start = 0; start < 70; start++) {
		uint64_t masks[3];

		wf_find_jumps(code + start, 3, masks);
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

/* A module of our own, in which no table tells where functions are. */
#define MODULE_BYTES 16384u
#define AT                                                                                         \
	8192u /* of the piece with the system call; decoded is what lies within some 1,000 bytes of it */

static uint8_t module_code[MODULE_BYTES];

static bool all_but_exit(int nr)
{
	return nr != __NR_exit;
}

static void put_code(size_t at, const char *code, size_t len)
{
	memcpy(module_code + at, code, len);
}

/* The sites in piece, of len bytes, with other at from it, which nobody decodes. */
static void find_in(const char *piece, size_t len, struct wf_gate_counts *c, struct wf_site *out)
{
	ElfW(Phdr) ph = { .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = MODULE_BYTES };
	struct dl_phdr_info m = { .dlpi_addr = (uintptr_t)module_code,
				  .dlpi_phdr = &ph,
				  .dlpi_phnum = 1 };
	struct wf_site_list list;

	put_code(AT, piece, len);
	*out = (struct wf_site){ 0 };
	if (!CHECK_EQ(wf_sites_find(&m, &(struct wf_scan_wish){ .wanted = all_but_exit }, c, &list),
		      0))
		return;
	if (list.nr)
		*out = list.sites[0];
	wf_sites_free(&list);
	memset(module_code, 0x90, sizeof(module_code));
}

#define FIND(piece, c, out) find_in(piece, sizeof(piece) - 1, c, out)

TEST(a_number_is_one_that_is_moved_to_eax)
{
	static const struct {
		char code[16];
		int len, nr, is_wanted;
	} rows[] = {
		{ "\xb8\x27\0\0\0\x0f\x05\xc3", 8, 0x27, 1 },           /* mov $39,%eax */
		{ "\xb8\x3c\0\0\0\x0f\x05\xc3", 8, 60, 0 },             /* mov $60,%eax */
		{ "\x41\xb8\x3c\0\0\0\x0f\x05\xc3", 9, -1, 1 },         /* mov $60,%r8d */
		{ "\xb9\x3c\0\0\0\x0f\x05\xc3", 8, -1, 1 },             /* mov $60,%ecx */
		{ "\x48\xc7\xc0\x3c\0\0\0\x0f\x05\xc3", 10, 60, 0 },    /* mov $60,%rax */
		{ "\x31\xc0\x0f\x05\x48\x3d\0\xf0\xff\xff", 10, 0, 1 }, /* xor %eax,%eax */
		{ "\xb8\x3c\0\0\0\x89\xd8\x0f\x05\xc3", 10, -1, 1 },    /* then mov %ebx,%eax */
		{ "\xb8\x27\0\0\0\x89\xde\x0f\x05\xc3", 10, 0x27, 1 },  /* then mov %ebx,%esi */
	};

	memset(module_code, 0x90, sizeof(module_code));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct wf_gate_counts c = { 0 };
		struct wf_site site;

		find_in(rows[i].code, (size_t)rows[i].len, &c, &site);
		/* Code of which no table knows may be data: there only a number makes it likely. */
		CHECK_EQ(c.doubtful, rows[i].nr < 0);
		CHECK_EQ(c.found, rows[i].nr >= 0);
		CHECK_EQ(c.wanted, rows[i].nr >= 0 && rows[i].is_wanted);
		if (c.wanted && !c.left)
			CHECK_EQ(site.nr, rows[i].nr);
	}
}

/* `mov $39,%eax; syscall; ret`: only both together are long enough for a jump. */
#define SHORT_PIECE "\xb8\x27\0\0\0\x0f\x05\xc3"
#define SYSCALL_AT (AT + 5)

TEST(no_jump_lands_inside_a_window)
{
	static const struct {
		char code[4];
		int len, width; /* of the displacement */
	} jumps[] = {
		{ "\xe9", 1, 4 },     /* jmp */
		{ "\x0f\x84", 2, 4 }, /* je */
		{ "\x0f\x8f", 2, 4 }, /* jg */
		{ "\xeb", 1, 1 },     /* jmp, short */
		{ "\x75", 1, 1 },     /* jne, short */
		{ "\xe3", 1, 1 },     /* jrcxz */
	};
	/* From code that is decoded and from what is not, before and behind; at the ends of what is searched, too. */
	static const size_t from[] = { AT - 100, AT + 64, 64, AT + 5000, 8, MODULE_BYTES - 6 };
	/* And into the window, or to its ends, where a jump does no harm. */
	static const struct {
		size_t to;
		int forbids;
	} targets[] = { { SYSCALL_AT, 1 }, { AT, 0 }, { SYSCALL_AT + 2, 0 } };

	memset(module_code, 0x90, sizeof(module_code));
	for (size_t j = 0; j < sizeof(jumps) / sizeof(jumps[0]); j++)
		for (size_t f = 0; f < sizeof(from) / sizeof(from[0]); f++)
			for (size_t t = 0; t < sizeof(targets) / sizeof(targets[0]); t++) {
				struct wf_gate_counts c = { 0 };
				struct wf_site site;
				size_t len = (size_t)(jumps[j].len + jumps[j].width);
				int32_t rel = (int32_t)(targets[t].to - (from[f] + len));

				if (from[f] + len > MODULE_BYTES ||
				    (jumps[j].width == 1 && (rel < -128 || rel > 127)))
					continue;
				put_code(from[f], jumps[j].code, (size_t)jumps[j].len);
				memcpy(module_code + from[f] + jumps[j].len, &rel,
				       (size_t)jumps[j].width);
				FIND(SHORT_PIECE, &c, &site);
				if (!CHECK_EQ(c.left, targets[t].forbids))
					tap_note("jump %zu from %zu to %zu", j, from[f],
						 targets[t].to);
				/* who jumps there may bring another number */
				CHECK_EQ(c.unknown, targets[t].forbids);
				if (!targets[t].forbids)
					CHECK_EQ(site.window, (uintptr_t)module_code + AT);
			}
}

TEST(a_window_is_the_smallest_that_is_long_enough)
{
	static const struct {
		char code[24];
		int len, before, window_len; /* 0: there is none */
	} rows[] = {
		{ "\xb8\x27\0\0\0\x0f\x05\xc3", 8, 5, 7 },
		/* what follows can move, and nothing before is needed */
		{ "\xb8\x27\0\0\0\x0f\x05\x48\x3d\0\xf0\xff\xff\xc3", 14, 0, 8 },
		/* a jump, a call and a return cannot */
		{ "\x31\xc0\x0f\x05\x75\0\xc3", 7, -1, 0 },
		{ "\x31\xc0\x0f\x05\xe8\0\0\0\0\xc3", 10, -1, 0 },
		{ "\x31\xc0\x0f\x05\xc3\x90\x90", 7, -1, 0 },
		/* two small ones before */
		{ "\x89\xfe\x31\xc0\x0f\x05\xc3", 7, 4, 6 },
		/* what is relative to itself cannot move: lea 0(%rip),%rdi */
		{ "\x48\x8d\x3d\0\0\0\0\x31\xc0\x0f\x05\xc3", 12, 9, 11 },
	};

	memset(module_code, 0x90, sizeof(module_code));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct wf_gate_counts c = { 0 };
		struct wf_site site;

		/* alone: what comes before ends the flow */
		put_code(AT - 1, "\xc3", 1);
		find_in(rows[i].code, (size_t)rows[i].len, &c, &site);
		CHECK_EQ(c.found, 1);
		CHECK_EQ(c.left, !rows[i].window_len);
		if (!rows[i].window_len || c.left)
			continue;
		CHECK_EQ(site.addr - site.window, rows[i].before);
		CHECK_EQ(site.window_len, rows[i].window_len);
	}
}

/* The second cannot have what the first takes behind it. */
TEST(windows_lie_apart)
{
	struct wf_gate_counts c = { 0 };
	struct wf_site site;

	memset(module_code, 0x90, sizeof(module_code));
	FIND("\xb8\x27\0\0\0\x0f\x05\xb8\x27\0\0\0\x0f\x05\xc3", &c, &site);
	CHECK_EQ(c.found, 2);
	CHECK_EQ(c.wanted, 2);
	CHECK_EQ(c.left, 1);
	CHECK_EQ(site.addr, (uintptr_t)module_code + AT + 5);
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
