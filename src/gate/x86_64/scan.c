// SPDX-License-Identifier: Apache-2.0
/*
 * Finding system call instructions: see scan.h.
 *
 * Passes over a segment of code, two over its bytes, the others over few functions only:
 *
 *   1. every `0f 05`. Most modules have none and are done here.
 *   2. each function with a match is decoded from its start (.eh_frame_hdr has a sorted table of
 *      starts). That tells real instructions from look-alikes, the system call number, short jumps
 *      and jump tables. Code that no table knows is decoded from some way before the match.
 *   3. every byte pair that would be a jump with a 32-bit displacement, decoded or not, if it leads
 *      near a match. So jumps from other functions, above all from the cold part of the same one,
 *      need no sweep of all text.
 *
 * Jump targets are kept as 128 bits per match, for the bytes around it, because nothing else is
 * ever asked.
 *
 * No libc: this also runs when a module appears later, on whatever stack loads it.
 */
#include "gate/scan.h"

#include "base/base.h"
#include "gate/bytes.h"
#include "gate/x86_64/find.h"
#include "gate/x86_64/insn.h"
#include "gate/x86_64/plain.h"
#include "sys/syscall.h"

#include <errno.h>
#include <sys/mman.h>

#define MAX_LOOK_BACK 8 /* bytes before a match that are read without decoding */
#define BEFORE WF_TARGETS_BEFORE
#define AFTER WF_TARGETS_AFTER
#define LINE_SHIFT 7  /* targets are first looked up in a bitmap of lines of 128 bytes */
#define NEIGHBOUR 136 /* a short jump reaches 127 bytes and is 2 long, a window a few more */
#define MAX_TAIL 64   /* code that runs on behind the end its FDE tells */
#define MAX_TABLES 16 /* jump tables considered per function */
#define MAX_TABLE_LEN 1024
#define MASKS 16    /* blocks of 64 bytes that are looked through at once */
#define RUN_ON 1024 /* how far code is decoded that no table knows */
#define GLANCE_BYTES 64
#define SYNC_BYTES 64

void *wf_grow_pages(void *old, size_t old_bytes, size_t bytes)
{
	long ret = sys4(__NR_mremap, old, old_bytes, bytes, MREMAP_MAYMOVE);

	return (unsigned long)ret > -4096ul ? NULL : (void *)ret;
}

static int add_match(struct wf_scan *s, const uint8_t *at)
{
	if ((s->nr_matches + 1) * sizeof(*s->matches) > s->matches_bytes) {
		size_t bytes = s->matches_bytes ? s->matches_bytes * 2 : 16 * WF_PAGE;
		void *p = s->matches ? wf_grow_pages(s->matches, s->matches_bytes, bytes)
				     : sys_map(bytes);

		if (!p)
			return -ENOMEM;
		s->matches = p;
		s->matches_bytes = bytes;
	}
	s->matches[s->nr_matches++] = (struct wf_match){ .addr = (uintptr_t)at, .nr = -1 };
	return 0;
}

static int find_bytes(struct wf_scan *s)
{
	const uint8_t *p = s->start + MAX_LOOK_BACK;

	for (;; p++) {
		p = wf_find_syscall(p, s->end);
		if (p == s->end)
			return 0;
		if (add_match(s, p) != 0)
			return -ENOMEM;
	}
}

/* The number in `mov $number, %eax` right before the match, or -1. */
static int32_t obvious_number(const struct wf_scan *s, const struct wf_match *m)
{
	const uint8_t *p = (const uint8_t *)m->addr;
	uint32_t nr;

	if (p - s->start < 6 || p[-5] != 0xb8 || (p[-6] & 0xf0) == 0x40)
		return -1;
	nr = (uint32_t)load32(p - 4);
	return nr < WF_NR_LIMIT ? (int32_t)nr : -1;
}

/*
 * Half of the matches are `mov $number, %eax; syscall` with a number that nobody wants. That is
 * told from the bytes well enough to leave them alone, and with them the functions that hold
 * nothing else.
 */
static void drop_unwanted(struct wf_scan *s, const struct wf_scan_wish *wish)
{
	for (size_t i = 0; i < s->nr_matches; i++) {
		struct wf_match *m = &s->matches[i];
		int32_t nr = obvious_number(s, m);

		if (nr >= 0 && wish->wanted(nr))
			continue;
		if (nr < 0 && (!wish->glance || m->addr - (uintptr_t)wish->glance < GLANCE_BYTES))
			continue;
		m->nr = nr;
		m->is_real = true;
		m->is_unwanted = true;
	}
}

static size_t line_of(const struct wf_scan *s, uintptr_t addr)
{
	return (addr - (uintptr_t)s->start) >> LINE_SHIFT;
}

static size_t first_match_from(const struct wf_scan *s, uintptr_t addr)
{
	size_t lo = 0;
	size_t hi = s->nr_matches;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (s->matches[mid].addr < addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static int make_bitmaps(struct wf_scan *s)
{
	size_t nr_words = line_of(s, (uintptr_t)s->end) / 64 + 1;
	size_t next = 0;

	s->lines_bytes = WF_ALIGN_UP(nr_words * sizeof(*s->lines), WF_PAGE);
	s->lines = sys_map(s->lines_bytes);
	s->swept_bytes = WF_ALIGN_UP((s->fdes.nr + 64) / 64 * 8, WF_PAGE);
	s->swept = sys_map(s->swept_bytes);
	if (!s->lines || !s->swept)
		return -ENOMEM;
	for (size_t i = 0; i < s->nr_matches; i++) {
		uintptr_t lo = s->matches[i].addr - BEFORE;
		uintptr_t hi = s->matches[i].addr + AFTER - 1;

		if (s->matches[i].is_unwanted)
			continue;
		lo = WF_MAX(lo, (uintptr_t)s->start);
		hi = WF_MIN(hi, (uintptr_t)s->end - 1);
		for (size_t line = line_of(s, lo); line <= line_of(s, hi); line++)
			s->lines[line / 64].bits |= 1ull << (line % 64);
	}
	for (size_t word = 0; word < nr_words; word++) {
		uintptr_t start = (uintptr_t)s->start + (word << (6 + LINE_SHIFT));

		while (next < s->nr_matches && s->matches[next].addr + AFTER <= start)
			next++;
		s->lines[word].first = next;
	}
	return 0;
}

static WF_NOINLINE void mark_near(struct wf_scan *s, uintptr_t target)
{
	size_t i = s->lines[line_of(s, target) / 64].first;

	while (i < s->nr_matches && s->matches[i].addr + AFTER <= target)
		i++;
	for (; i < s->nr_matches && s->matches[i].addr <= target + BEFORE; i++) {
		size_t bit = target + BEFORE - s->matches[i].addr;

		s->matches[i].targets[bit / 64] |= 1ull << (bit % 64);
	}
}

/* Of tens of thousands of jumps in a libc, few get beyond the line. */
WF_INLINE void mark_target(struct wf_scan *s, uintptr_t target)
{
	size_t line;

	if (target - (uintptr_t)s->start >= (uintptr_t)(s->end - s->start))
		return;
	line = line_of(s, target);
	if (s->lines[line / 64].bits >> (line % 64) & 1)
		mark_near(s, target);
}

bool wf_match_is_target(const struct wf_match *m, uintptr_t addr)
{
	size_t bit = addr + BEFORE - m->addr;

	if (bit >= BEFORE + AFTER)
		return true; /* not remembered: assume the worst */
	return m->targets[bit / 64] >> (bit % 64) & 1;
}

/* The jump with a 32-bit displacement that may begin at p, and ends in the segment. */
WF_INLINE void mark_long_jump(struct wf_scan *s, const uint8_t *p)
{
	const uint8_t *next = p + 5 + (*p == 0x0f);

	mark_target(s, (uintptr_t)next + (uintptr_t)(intptr_t)load32(next - 4));
}

/*
 * Every e9 and 0f 8x, decoded or not: a look-alike costs a window at worst, a missed one the
 * program.
 */
static void find_long_jumps(struct wf_scan *s)
{
	const uint8_t *p = s->start;
	uint64_t masks[MASKS];

	while (s->end - p > 64 + 6) {
		size_t nr = WF_MIN((size_t)(s->end - p - 6) / 64, (size_t)MASKS);

		wf_find_jumps(p, nr, masks);
		for (size_t i = 0; i < nr; i++, p += 64)
			for (uint64_t hits = masks[i]; hits; hits &= hits - 1)
				mark_long_jump(s, p + __builtin_ctzll(hits));
	}
	for (; p + 5 <= s->end; p++)
		if (*p == 0xe9 || (*p == 0x0f && p + 6 <= s->end))
			mark_long_jump(s, p);
}

static bool is_readable(const struct wf_scan *s, uintptr_t addr, size_t len)
{
	const struct dl_phdr_info *m = s->module;

	for (size_t i = 0; i < m->dlpi_phnum; i++) {
		uintptr_t start = m->dlpi_addr + m->dlpi_phdr[i].p_vaddr;

		if (m->dlpi_phdr[i].p_type == PT_LOAD && (m->dlpi_phdr[i].p_flags & PF_R) &&
		    addr >= start && addr + len <= start + m->dlpi_phdr[i].p_filesz)
			return true;
	}
	return false;
}

/*
 * A jump table at addr, by its looks: offsets from its own start, or plain addresses. Anything
 * that the function with an indirect jump refers to is tried, up to the first entry that does not
 * lead into the code.
 */
static void mark_table(struct wf_scan *s, uintptr_t addr, bool is_absolute)
{
	size_t size = is_absolute ? 8 : 4;

	for (size_t i = 0; i < MAX_TABLE_LEN && is_readable(s, addr + i * size, size); i++) {
		const uint8_t *entry = (const uint8_t *)addr + i * size;
		uintptr_t target = is_absolute ? load64(entry)
					       : addr + (uintptr_t)(intptr_t)load32(entry);

		if (target - (uintptr_t)s->start >= (uintptr_t)(s->end - s->start))
			return;
		mark_target(s, target);
	}
}

struct tables {
	uintptr_t addr[MAX_TABLES];
	bool is_absolute[MAX_TABLES];
	size_t nr;
	bool has_indirect_jump;
};

static void note_table(struct tables *t, const uint8_t *p, const struct wf_insn *insn)
{
	uintptr_t addr = 0;
	bool is_absolute = false;

	if (insn->flags & WF_INSN_INDIRECT) {
		t->has_indirect_jump = true;
		/* jmp *table(,%reg,8) */
		if ((insn->modrm & 0xc7) == 0x04 && (p[insn->len - 5] & 0xc7) == 0xc5) {
			addr = (uintptr_t)(intptr_t)load32(p + insn->len - 4);
			is_absolute = true;
		}
	} else if (insn->map == WF_MAP_ONE && insn->opcode == 0x8d &&
		   (insn->flags & WF_INSN_RIPREL)) {
		addr = (uintptr_t)p + insn->len + (uintptr_t)(intptr_t)load32(p + insn->disp_at);
	}
	if (!addr || t->nr == MAX_TABLES)
		return;
	t->addr[t->nr] = addr;
	t->is_absolute[t->nr++] = is_absolute;
}

/* The instructions that lead to the one that is looked at, since the flow last ended: the last few. */
#define PATH_LEN 64

struct path {
	const uint8_t *at[PATH_LEN];
	size_t nr;
};

/* The number in eax at the end of the path, and what was before. */
static void find_number(const struct path *path, struct wf_match *m)
{
	struct wf_insn insn;

	m->nr = -1;
	for (size_t i = 1; i < WF_MIN(path->nr, (size_t)PATH_LEN); i++) {
		const uint8_t *p = path->at[(path->nr - 1 - i) % PATH_LEN];
		int64_t constant;

		if (!wf_insn_decode(p, p + WF_INSN_MAX, &insn))
			return;
		constant = wf_insn_eax_constant(p, &insn);
		if (constant >= 0) {
			m->nr = constant < WF_NR_LIMIT ? (int32_t)constant : -1;
			m->nr_at = (uintptr_t)p;
		}
		if (constant >= 0 || wf_insn_may_write_eax(&insn))
			return;
	}
}

static uint32_t lengths_before(const struct path *path)
{
	size_t nr = WF_MIN(path->nr - 1, (size_t)4);
	uint32_t before = 0;

	for (size_t i = nr; i; i--) {
		size_t n = path->nr - 1 - i;

		before = before << 8 |
			 (uint32_t)(path->at[(n + 1) % PATH_LEN] - path->at[n % PATH_LEN]);
	}
	return before;
}

/* From p on, which is the last of the path, to the next instruction that is to be looked at. */
static const uint8_t *skip_plain(struct wf_scan *s, const uint8_t *p, const uint8_t *end,
				 struct path *path)
{
	unsigned int form, len;

	while (end - p >= WF_INSN_MAX) {
		len = wf_plain_len(p, &form);
		if (!len)
			break;
		p += len;
		if (form & WF_PLAIN_JUMP)
			mark_target(s,
				    (uintptr_t)p + (uintptr_t)(intptr_t)((form & WF_PLAIN_IMM) == 1
										 ? (int8_t)p[-1]
										 : load32(p - 4)));
		if (form & WF_PLAIN_ENDS)
			path->nr = 0;
		path->at[path->nr++ % PATH_LEN] = p;
	}
	return p;
}

/*
 * Decode [p, end): what of the matches in it is real, with which number, and all jumps. Up to
 * surely it is code; behind that it may be data, and only a number makes a match likely enough.
 */
static void sweep(struct wf_scan *s, const uint8_t *p, const uint8_t *surely, const uint8_t *end)
{
	size_t next = first_match_from(s, (uintptr_t)p);
	struct tables tables = { .nr = 0 };
	struct path path = { .nr = 0 };
	struct wf_insn insn;

	for (; p < end; p += insn.len) {
		path.at[path.nr++ % PATH_LEN] = p;
		p = skip_plain(s, p, end, &path);
		while (next < s->nr_matches && s->matches[next].addr < (uintptr_t)p)
			s->matches[next++].is_alike = true;
		if (!wf_insn_decode(p, end, &insn))
			break;
		if ((insn.flags & WF_INSN_SYSCALL) && insn.len == WF_SYSCALL_LEN &&
		    next < s->nr_matches && s->matches[next].addr == (uintptr_t)p) {
			struct wf_match *m = &s->matches[next++];

			find_number(&path, m);
			m->before = lengths_before(&path);
			m->code_end = (uintptr_t)end;
			m->is_real = p < surely || (m->nr >= 0 && m->addr - m->nr_at < MAX_TAIL);
		}
		if (insn.flags & WF_INSN_JUMP)
			mark_target(s, (uintptr_t)p + insn.len + (uintptr_t)(intptr_t)insn.rel);
		note_table(&tables, p, &insn);
		if (insn.flags & WF_INSN_ENDS)
			path.nr = 0;
	}
	for (; tables.has_indirect_jump && tables.nr; tables.nr--)
		mark_table(s, tables.addr[tables.nr - 1], tables.is_absolute[tables.nr - 1]);
}

static bool is_swept(const struct wf_scan *s, size_t function)
{
	return s->swept[function / 64] >> (function % 64) & 1;
}

/*
 * The code right behind the end that the FDE tells belongs to the function as well: clone() is
 * written so.
 */
static void sweep_function(struct wf_scan *s, size_t function)
{
	const uint8_t *end = WF_MIN(wf_fde_start(&s->fdes, function + 1), s->end);
	const uint8_t *start;
	const uint8_t *fde_end;

	if (is_swept(s, function))
		return;
	s->swept[function / 64] |= 1ull << (function % 64);
	wf_fde_bounds(&s->fdes, function, &start, &fde_end);
	/* Of another segment: this one begins before its first function. */
	if (start < s->start)
		return;
	if (end - fde_end > RUN_ON)
		end = fde_end + RUN_ON;
	sweep(s, start, fde_end, end);
}

/* Code in [start, end) that no table knows, about the match: assembly without call frame information. */
static void sweep_gap(struct wf_scan *s, const struct wf_match *m, const uint8_t *start,
		      const uint8_t *end)
{
	const uint8_t *addr = (const uint8_t *)m->addr;

	if (m->addr + RUN_ON / 2 < s->gap_end)
		return; /* with the one before */
	if (addr - start > RUN_ON)
		start = addr - RUN_ON; /* decoding falls into step long before the match */
	if (end - addr > RUN_ON)
		end = addr + RUN_ON;
	s->gap_end = (uintptr_t)end;
	sweep(s, start, start, end);
}

/* Do the bytes in [from, to) hold what could be a short jump to about the site? Most do not. */
static bool may_jump_near(const struct wf_scan *s, const struct wf_match *m, uintptr_t from,
			  uintptr_t to)
{
	for (const uint8_t *p = (const uint8_t *)from; p < (const uint8_t *)to; p += 64) {
		/* Finds of the last block beyond the end are no loss. */
		const uint8_t *block = s->end - p > 64 ? p : WF_MAX(s->end - 65, s->start);
		uint64_t hits = s->end - block > 64 ? wf_find_short_jumps(block) : ~0ull;

		for (; hits; hits &= hits - 1) {
			const uint8_t *jump = block + __builtin_ctzll(hits);
			uintptr_t target;

			if (jump + 1 >= s->end)
				break;
			target = (uintptr_t)jump + 2 + (uintptr_t)(intptr_t)(int8_t)jump[1];
			if (target - m->addr + WF_SITE_WINDOW_MAX < 2 * WF_SITE_WINDOW_MAX)
				return true;
		}
	}
	return false;
}

static unsigned int insn_len(const uint8_t *p, const uint8_t *end)
{
	unsigned int form, len = 0;
	struct wf_insn insn;

	if (end - p >= WF_INSN_MAX)
		len = wf_plain_len(p, &form);
	return len ? len : (unsigned int)wf_insn_decode(p, end, &insn);
}

/*
 * Can an instruction begin at the match at all? One does within any 15 bytes, so whoever decodes from
 * each of them hits upon the true ones. That spares the decoding of most functions of a large
 * program, where the bytes lie in displacements and constants.
 */
static bool may_begin(const struct wf_scan *s, const uint8_t *function, const struct wf_match *m)
{
	const uint8_t *addr = (const uint8_t *)m->addr;
	const uint8_t *p = addr - function > SYNC_BYTES ? addr - SYNC_BYTES : function;
	const uint8_t *end = s->end - addr > WF_INSN_MAX ? addr + WF_INSN_MAX : s->end;
	uint64_t begins = p == function ? 1 : (1ull << WF_INSN_MAX) - 1; /* from p on */

	for (; p < addr; p++, begins >>= 1)
		if (begins & 1)
			begins |= 1ull << insn_len(p, end);
	return begins & 1;
}

/* Decode what the match lies in: a function, or the code between two. */
static void sweep_own(struct wf_scan *s, struct wf_match *m)
{
	const uint8_t *addr = (const uint8_t *)m->addr;
	const uint8_t *gap = s->start;
	size_t own = wf_fde_at(&s->fdes, m->addr);
	const uint8_t *next = wf_fde_start(&s->fdes, own == s->fdes.nr ? 0 : own + 1);
	const uint8_t *start;
	const uint8_t *fde_end;

	if (own != s->fdes.nr) {
		wf_fde_bounds(&s->fdes, own, &start, &fde_end);
		gap = WF_MAX(gap, fde_end);
	}
	if (own == s->fdes.nr || start < s->start || addr - gap >= RUN_ON)
		sweep_gap(s, m, gap, WF_MIN(next, s->end));
	else if (obvious_number(s, m) >= 0 || may_begin(s, start, m))
		sweep_function(s, own);
	else
		m->is_alike = true;
}

/* And the neighbours of each real one, from where a short jump could reach it. */
static void sweep_functions(struct wf_scan *s)
{
	for (size_t i = 0; i < s->nr_matches; i++) {
		struct wf_match *m = &s->matches[i];
		uintptr_t lo = WF_MAX(m->addr - NEIGHBOUR, (uintptr_t)s->start);
		uintptr_t hi = WF_MIN(m->addr + NEIGHBOUR, (uintptr_t)s->end - 1);

		if (m->is_unwanted)
			continue;
		sweep_own(s, m);
		if (!m->is_real)
			continue;
		for (size_t f = wf_fde_at(&s->fdes, hi); f < s->fdes.nr; f--) {
			uintptr_t start = (uintptr_t)wf_fde_start(&s->fdes, f);
			uintptr_t end = (uintptr_t)wf_fde_start(&s->fdes, f + 1);

			if (end <= lo)
				break;
			if (!is_swept(s, f) &&
			    may_jump_near(s, m, WF_MAX(start, lo), WF_MIN(end, hi)))
				sweep_function(s, f);
		}
	}
}

/* Most look-alikes are in large programs, where the bytes are worth no second look for nothing. */
static bool has_work(const struct wf_scan *s)
{
	for (size_t i = 0; i < s->nr_matches; i++)
		if (s->matches[i].is_real && !s->matches[i].is_unwanted)
			return true;
	return false;
}

int wf_scan_segment(struct wf_scan *s, const struct wf_scan_wish *wish)
{
	int ret = find_bytes(s);

	if (ret != 0 || !s->nr_matches)
		return ret;
	drop_unwanted(s, wish);
	wf_fde_find(s->module, &s->fdes);
	ret = make_bitmaps(s);
	if (ret != 0)
		return ret;
	sweep_functions(s);
	if (!wish->glance && has_work(s))
		find_long_jumps(s);
	return 0;
}

void wf_scan_done(struct wf_scan *s)
{
	sys_unmap(s->swept, s->swept_bytes);
	sys_unmap(s->lines, s->lines_bytes);
	sys_unmap(s->matches, s->matches_bytes);
}
