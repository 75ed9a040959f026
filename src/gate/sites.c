// SPDX-License-Identifier: Apache-2.0
/*
 * Finding system call instructions: see sites.h.
 *
 * Four passes over a segment of code, two over its bytes, the others over few functions only:
 *
 *   1. every `0f 05`. Most modules have none and are done here.
 *   2. each function with a match is decoded from its start (.eh_frame_hdr has a sorted table of
 *      starts). That tells real instructions from look-alikes, the system call number, short jumps
 *      and jump tables.
 *   3. every byte pair that would be a jump with a 32-bit displacement, decoded or not, if it leads
 *      near a match. So jumps from other functions, above all from the cold part of the same one,
 *      need no sweep of all text.
 *   4. the smallest window at each real site that nothing jumps into.
 *
 * Jump targets are kept as 128 bits per match, for the bytes around it, because nothing else is
 * ever asked.
 *
 * No libc: this also runs when a module appears later, on whatever stack loads it.
 */
#include "gate/sites.h"

#include "base/base.h"
#include "gate/bytes.h"
#include "gate/fde.h"
#include "gate/insn.h"
#include "sys/syscall.h"

#include <errno.h>
#include <sys/mman.h>

#define NR_RT_SIGRETURN 15
#define NR_LIMIT 1024 /* no system call number is as large */
#define JMP_LEN 5
#define MAX_LOOK_BACK 8 /* bytes before a match that are read without decoding */
#define SYSCALL_LEN 2
#define BEFORE 96 /* a match remembers targets in [addr - BEFORE, addr + AFTER) */
#define AFTER 32
#define LINE_SHIFT 7  /* targets are first looked up in a bitmap of lines of 128 bytes */
#define NEIGHBOUR 136 /* a short jump reaches 127 bytes and is 2 long, a window a few more */
#define MAX_TAIL 64   /* code that runs on behind the end its FDE tells */
#define MAX_TABLES 16 /* jump tables considered per function */
#define MAX_TABLE_LEN 1024
#define MAX_PRE 4
#define MAX_POST 4

struct match {
	uintptr_t addr;
	uintptr_t nr_at;     /* the instruction that set eax */
	uint64_t targets[2]; /* bit 0 is addr - BEFORE */
	uint32_t before;     /* lengths of the instructions before it, the nearest lowest */
	int32_t nr;
	bool is_real;
	bool is_unwanted;   /* seen before any decoding */
	bool is_alike;      /* the bytes lie inside another instruction */
	uintptr_t code_end; /* where the function ends */
};

/* The work on one executable segment. */
struct scan {
	const struct dl_phdr_info *module;
	const uint8_t *start;
	const uint8_t *end;
	struct match *matches;
	size_t nr_matches;
	size_t matches_bytes;
	uint64_t *lines;
	size_t lines_bytes;
	struct wf_fde_table fdes;
	uint64_t *swept; /* a bit per function */
	size_t swept_bytes;
};

static void *grow_pages(void *old, size_t old_bytes, size_t bytes)
{
	long ret = sys4(__NR_mremap, old, old_bytes, bytes, MREMAP_MAYMOVE);

	return (unsigned long)ret > -4096ul ? NULL : (void *)ret;
}

#define EACH_BYTE(x) (0x0101010101010101ull * (x))

/* Bit 7 of each zero byte; bytes above the lowest such may be wrong. */
static uint64_t zero_bytes(uint64_t v)
{
	return (v - EACH_BYTE(1)) & ~v & EACH_BYTE(0x80);
}

static int add_match(struct scan *s, const uint8_t *at)
{
	if ((s->nr_matches + 1) * sizeof(*s->matches) > s->matches_bytes) {
		size_t bytes = s->matches_bytes ? s->matches_bytes * 2 : 16 * WF_PAGE;
		void *p = s->matches ? grow_pages(s->matches, s->matches_bytes, bytes)
				     : sys_map(bytes);

		if (!p)
			return -ENOMEM;
		s->matches = p;
		s->matches_bytes = bytes;
	}
	s->matches[s->nr_matches++] = (struct match){ .addr = (uintptr_t)at, .nr = -1 };
	return 0;
}

static int find_bytes(struct scan *s)
{
	const uint8_t *p = s->start + MAX_LOOK_BACK;

	while (p + 1 < s->end) {
		if (s->end - p > 9) {
			uint64_t v = (load64(p) ^ EACH_BYTE(0x0f)) |
				     (load64(p + 1) ^ EACH_BYTE(0x05));
			uint64_t hits = zero_bytes(v);

			if (!hits) {
				p += 8;
				continue;
			}
			p += __builtin_ctzll(hits) / 8;
		}
		if (p[0] == 0x0f && p[1] == 0x05 && add_match(s, p) != 0)
			return -ENOMEM;
		p++;
	}
	return 0;
}

/*
 * Half of the matches are `mov $number, %eax; syscall` with a number that nobody wants. That is
 * told from the bytes well enough to leave them alone, and with them the functions that hold
 * nothing else.
 */
static void drop_unwanted(struct scan *s, bool (*wanted)(int nr))
{
	for (size_t i = 0; i < s->nr_matches; i++) {
		struct match *m = &s->matches[i];
		const uint8_t *p = (const uint8_t *)m->addr;
		uint32_t nr;

		if (p - s->start < 6 || p[-5] != 0xb8 || (p[-6] & 0xf0) == 0x40)
			continue;
		nr = (uint32_t)load32(p - 4);
		if (nr >= NR_LIMIT || wanted((int)nr))
			continue;
		m->nr = (int32_t)nr;
		m->is_real = true;
		m->is_unwanted = true;
	}
}

static size_t line_of(const struct scan *s, uintptr_t addr)
{
	return (addr - (uintptr_t)s->start) >> LINE_SHIFT;
}

static int make_bitmaps(struct scan *s)
{
	size_t nr_lines = line_of(s, (uintptr_t)s->end) + 1;

	s->lines_bytes = WF_ALIGN_UP((nr_lines + 63) / 64 * 8, WF_PAGE);
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
			s->lines[line / 64] |= 1ull << (line % 64);
	}
	return 0;
}

static size_t first_match_from(const struct scan *s, uintptr_t addr)
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

static void mark_near(struct scan *s, uintptr_t target)
{
	for (size_t i = first_match_from(s, target - AFTER + 1);
	     i < s->nr_matches && s->matches[i].addr <= target + BEFORE; i++) {
		size_t bit = target + BEFORE - s->matches[i].addr;

		s->matches[i].targets[bit / 64] |= 1ull << (bit % 64);
	}
}

static void mark_target(struct scan *s, uintptr_t target)
{
	size_t line;

	if (target - (uintptr_t)s->start >= (uintptr_t)(s->end - s->start))
		return;
	line = line_of(s, target);
	if (s->lines[line / 64] >> (line % 64) & 1)
		mark_near(s, target);
}

static bool is_target(const struct match *m, uintptr_t addr)
{
	size_t bit = addr + BEFORE - m->addr;

	if (bit >= BEFORE + AFTER)
		return true; /* not remembered: assume the worst */
	return m->targets[bit / 64] >> (bit % 64) & 1;
}

/*
 * Every e9 and 0f 8x, decoded or not: a look-alike costs a window at worst, a missed one the
 * program.
 */
static void find_long_jumps(struct scan *s)
{
	const uint8_t *p = s->start;
	const uint8_t *last = s->end - 16;

	for (; p < last; p += 8) {
		uint64_t v = load64(p);
		uint64_t next = load64(p + 1);
		uint64_t jmp = v ^ EACH_BYTE(0xe9);
		uint64_t jcc = (v ^ EACH_BYTE(0x0f)) | ((next ^ EACH_BYTE(0x80)) & EACH_BYTE(0xf0));
		uint64_t hits = zero_bytes(jmp) | zero_bytes(jcc);

		/* Wrong bits above a right one only add look-alikes. */
		for (; hits; hits &= hits - 1) {
			const uint8_t *at = p + __builtin_ctzll(hits) / 8;

			at += *at == 0x0f ? 6 : 5;
			mark_target(s, (uintptr_t)at + (uintptr_t)(intptr_t)load32(at - 4));
		}
	}
	for (; p + 5 <= s->end; p++) {
		if (*p == 0xe9)
			mark_target(s, (uintptr_t)p + 5 + (uintptr_t)(intptr_t)load32(p + 1));
		if (*p == 0x0f && p + 6 <= s->end)
			mark_target(s, (uintptr_t)p + 6 + (uintptr_t)(intptr_t)load32(p + 2));
	}
}

static bool is_readable(const struct scan *s, uintptr_t addr, size_t len)
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
 * What looks like a jump table at addr: offsets from its own start, or plain addresses. Anything
 * that the function with an indirect jump refers to is tried, up to the first entry that does not
 * lead into the code.
 */
static void mark_table(struct scan *s, uintptr_t addr, bool is_absolute)
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

/*
 * Decode one function from its start: what of the matches in it is real, with which number, and all
 * jumps. The code behind the end that the FDE tells belongs to it as well, up to the next function:
 * clone() is written so.
 */
static void sweep(struct scan *s, size_t function)
{
	const uint8_t *end = wf_fde_start(&s->fdes, function + 1);
	const uint8_t *fde_end;
	const uint8_t *p;
	size_t next;
	struct tables tables = { .nr = 0 };
	struct wf_insn insn;
	uint32_t before = 0;
	uintptr_t nr_at = 0;
	int64_t nr = -1;

	wf_fde_bounds(&s->fdes, function, &p, &fde_end);
	end = end ? WF_MIN(end, s->end) : s->end;
	if (p < s->start)
		return; /* of another segment: this one begins before its first function */
	next = first_match_from(s, (uintptr_t)p);
	for (; p < end && wf_insn_decode(p, end, &insn); p += insn.len) {
		int64_t constant;

		while (next < s->nr_matches && s->matches[next].addr < (uintptr_t)p)
			s->matches[next++].is_alike = true;
		if ((insn.flags & WF_INSN_SYSCALL) && insn.len == SYSCALL_LEN &&
		    next < s->nr_matches && s->matches[next].addr == (uintptr_t)p) {
			struct match *m = &s->matches[next++];

			m->nr = nr >= 0 && nr < NR_LIMIT ? (int32_t)nr : -1;
			m->nr_at = nr_at;
			m->before = before;
			m->code_end = (uintptr_t)end;
			/*
			 * Behind the FDE there may be data: only a number makes it likely enough.
			 */
			m->is_real = p < fde_end || (m->nr >= 0 && p < fde_end + MAX_TAIL);
		}
		if (insn.flags & WF_INSN_JUMP)
			mark_target(s, (uintptr_t)p + insn.len + (uintptr_t)(intptr_t)insn.rel);
		note_table(&tables, p, &insn);
		before = before << 8 | insn.len;
		constant = wf_insn_eax_constant(p, &insn);
		if (constant >= 0) {
			nr = constant;
			nr_at = (uintptr_t)p;
		} else if (nr >= 0 && wf_insn_may_write_eax(&insn)) {
			nr = -1;
		}
		if (insn.flags & WF_INSN_ENDS) {
			before = 0;
			nr = -1;
		}
	}
	for (; tables.has_indirect_jump && tables.nr; tables.nr--)
		mark_table(s, tables.addr[tables.nr - 1], tables.is_absolute[tables.nr - 1]);
}

/* Do the bytes in [from, to) hold what could be a short jump to about the site? Most do not. */
static bool may_jump_near(const struct match *m, uintptr_t from, uintptr_t to)
{
	for (const uint8_t *p = (const uint8_t *)from; p < (const uint8_t *)to; p++) {
		uintptr_t target = (uintptr_t)p + 2 + (uintptr_t)(intptr_t)(int8_t)p[1];

		if (target - m->addr + WF_SITE_WINDOW_MAX >= 2 * WF_SITE_WINDOW_MAX)
			continue;
		if ((*p & 0xf0) == 0x70 || *p == 0xeb || (*p & 0xfc) == 0xe0)
			return true;
	}
	return false;
}

static void sweep_once(struct scan *s, size_t function)
{
	if (s->swept[function / 64] >> (function % 64) & 1)
		return;
	s->swept[function / 64] |= 1ull << (function % 64);
	sweep(s, function);
}

/* Decode every function with a match, and the neighbours from where a short jump could reach it. */
static void sweep_functions(struct scan *s)
{
	for (size_t i = 0; i < s->nr_matches; i++) {
		const struct match *m = &s->matches[i];
		uintptr_t lo = WF_MAX(m->addr - NEIGHBOUR, (uintptr_t)s->start);
		uintptr_t hi = WF_MIN(m->addr + NEIGHBOUR, (uintptr_t)s->end - 1);
		size_t own = wf_fde_at(&s->fdes, m->addr);

		if (m->is_unwanted || own == s->fdes.nr)
			continue;
		sweep_once(s, own);
		if (!m->is_real)
			continue;
		for (size_t f = wf_fde_at(&s->fdes, hi); f < s->fdes.nr; f--) {
			uintptr_t start = (uintptr_t)wf_fde_start(&s->fdes, f);
			uintptr_t end = (uintptr_t)wf_fde_start(&s->fdes, f + 1);

			if (end <= lo)
				break;
			if (f != own && may_jump_near(m, WF_MAX(start, lo), WF_MIN(end, hi)))
				sweep_once(s, f);
		}
	}
}

/* A jump between the instruction that sets eax and the system call may bring another number. */
static void check_number(struct match *m)
{
	if (m->nr < 0)
		return;
	for (uintptr_t at = m->nr_at + 1; at <= m->addr; at++)
		if (is_target(m, at)) {
			m->nr = -1;
			return;
		}
}

/*
 * Can the instructions in [from, to) run elsewhere? None ends the flow, is relative, or is jumped
 * to but the first.
 */
static bool may_move(const struct match *m, uintptr_t from, uintptr_t to, uintptr_t window)
{
	struct wf_insn insn;

	for (; from < to; from += insn.len) {
		if (from != window && is_target(m, from))
			return false;
		if (!wf_insn_decode((const uint8_t *)from, (const uint8_t *)to, &insn))
			return false;
		if (insn.flags & WF_INSN_FIXED)
			return false;
	}
	return true;
}

/*
 * Ends of the windows that take 0, 1, ... whole instructions after the system call. Returns how
 * many there are.
 */
static int list_ends(const struct match *m, uintptr_t ends[MAX_POST + 1])
{
	uintptr_t end = m->addr + SYSCALL_LEN;
	struct wf_insn insn;
	int nr = 0;

	ends[nr++] = end;
	while (nr <= MAX_POST && end < m->code_end && !is_target(m, end)) {
		if (!wf_insn_decode((const uint8_t *)end, (const uint8_t *)m->code_end, &insn) ||
		    (insn.flags & WF_INSN_FIXED))
			break;
		end += insn.len;
		ends[nr++] = end;
	}
	return nr;
}

static bool choose_window(const struct match *m, uintptr_t floor, struct wf_site *out)
{
	uintptr_t ends[MAX_POST + 1];
	uintptr_t window = m->addr;
	uint32_t before = m->before;
	int nr_ends = list_ends(m, ends);

	for (int pre = 0; pre <= MAX_PRE; pre++) {
		for (int i = 0; i < nr_ends; i++) {
			if (ends[i] - window < JMP_LEN)
				continue;
			if (ends[i] - window > WF_SITE_WINDOW_MAX)
				break;
			out->window = window;
			out->window_len = (uint8_t)(ends[i] - window);
			return true;
		}
		/* One more instruction before: what was the start must not be jumped to. */
		if (!(before & 0xff) || is_target(m, window))
			return false;
		window -= before & 0xff;
		before >>= 8;
		if (window < floor || !may_move(m, window, m->addr, window))
			return false;
	}
	return false;
}

/* Asked of the bytes as well, because nothing is worse than to move a signal return. */
static bool is_sigreturn(const struct match *m)
{
	return m->nr == NR_RT_SIGRETURN || load32((const uint8_t *)m->addr - 4) == NR_RT_SIGRETURN;
}

static int list_sites(struct scan *s, bool (*wanted)(int nr), struct wf_gate_counts *counts,
		      struct wf_site_list *list)
{
	uintptr_t floor = 0;

	for (size_t i = 0; i < s->nr_matches; i++) {
		struct match *m = &s->matches[i];
		struct wf_site site = { .addr = m->addr };

		counts->doubtful += !m->is_real && !m->is_alike;
		if (!m->is_real)
			continue;
		if (!m->is_unwanted)
			check_number(m);
		site.nr = m->nr;
		counts->found++;
		counts->unknown += m->nr < 0;
		if (m->is_unwanted || is_sigreturn(m) || (m->nr >= 0 && !wanted(m->nr)))
			continue;
		counts->wanted++;
		if (!choose_window(m, floor, &site)) {
			counts->left++;
			continue;
		}
		floor = site.window + site.window_len;
		if ((list->nr + 1) * sizeof(site) > list->bytes) {
			size_t bytes = list->bytes ? list->bytes * 2 : 8 * WF_PAGE;
			void *p = list->sites ? grow_pages(list->sites, list->bytes, bytes)
					      : sys_map(bytes);

			if (!p)
				return -ENOMEM;
			list->sites = p;
			list->bytes = bytes;
		}
		list->sites[list->nr++] = site;
	}
	return 0;
}

/* Most look-alikes are in large programs, where the bytes are worth no second look for nothing. */
static bool has_work(const struct scan *s)
{
	for (size_t i = 0; i < s->nr_matches; i++)
		if (s->matches[i].is_real && !s->matches[i].is_unwanted)
			return true;
	return false;
}

static int scan_segment(struct scan *s, bool (*wanted)(int nr), struct wf_gate_counts *counts,
			struct wf_site_list *list)
{
	int ret = find_bytes(s);

	if (ret != 0 || !s->nr_matches)
		goto out;
	drop_unwanted(s, wanted);
	wf_fde_find(s->module, &s->fdes);
	ret = make_bitmaps(s);
	if (ret != 0)
		goto out;
	sweep_functions(s);
	if (has_work(s))
		find_long_jumps(s);
	ret = list_sites(s, wanted, counts, list);
out:
	sys_unmap(s->swept, s->swept_bytes);
	sys_unmap(s->lines, s->lines_bytes);
	sys_unmap(s->matches, s->matches_bytes);
	return ret;
}

int wf_sites_find(const struct dl_phdr_info *module, bool (*wanted)(int nr),
		  struct wf_gate_counts *out_counts, struct wf_site_list *out_list)
{
	struct wf_gate_counts counts = { .found = 0 };
	struct wf_site_list list = { .sites = NULL };

	for (size_t i = 0; i < module->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &module->dlpi_phdr[i];
		struct scan s = { .module = module };
		int ret;

		if (ph->p_type != PT_LOAD ||
		    (ph->p_flags & (PF_R | PF_W | PF_X)) != (PF_R | PF_X) || ph->p_filesz < 32)
			continue;
		s.start = (const uint8_t *)(module->dlpi_addr + ph->p_vaddr);
		s.end = s.start + ph->p_filesz;
		ret = scan_segment(&s, wanted, &counts, &list);
		if (ret != 0) {
			wf_sites_free(&list);
			return ret;
		}
	}
	*out_counts = counts;
	*out_list = list;
	return 0;
}

void wf_sites_free(struct wf_site_list *list)
{
	sys_unmap(list->sites, list->bytes);
	*list = (struct wf_site_list){ .sites = NULL };
}
