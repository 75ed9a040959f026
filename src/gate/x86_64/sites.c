// SPDX-License-Identifier: Apache-2.0
/*
 * Choosing what a jump may replace: the smallest window at each real system call that nothing jumps
 * into. See sites.h; what is known about the code comes from scan.c.
 */
#include "gate/sites.h"

#include "base/base.h"
#include "gate/bytes.h"
#include "gate/x86_64/insn.h"
#include "gate/x86_64/jump.h"
#include "gate/scan.h"
#include "sys/syscall.h"

#include <errno.h>
#include <sys/mman.h>

#define NR_RT_SIGRETURN 15
#define MAX_PRE 4
#define MAX_POST 4

/* A jump between the instruction that sets eax and the system call may bring another number. */
static void check_number(struct wf_match *m)
{
	if (m->nr < 0)
		return;
	for (uintptr_t at = m->nr_at + 1; at <= m->addr; at++)
		if (wf_match_is_target(m, at)) {
			m->nr = -1;
			return;
		}
}

/*
 * Can the instructions in [from, to) run elsewhere? None ends the flow, is relative, or is jumped
 * to but the first.
 */
static bool may_move(const struct wf_match *m, uintptr_t from, uintptr_t to, uintptr_t window)
{
	struct wf_insn insn;

	for (; from < to; from += insn.len) {
		if (from != window && wf_match_is_target(m, from))
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
static int list_ends(const struct wf_match *m, uintptr_t ends[MAX_POST + 1])
{
	uintptr_t end = m->addr + WF_SYSCALL_LEN;
	struct wf_insn insn;
	int nr = 0;

	ends[nr++] = end;
	while (nr <= MAX_POST && end < m->code_end && !wf_match_is_target(m, end)) {
		if (!wf_insn_decode((const uint8_t *)end, (const uint8_t *)m->code_end, &insn) ||
		    (insn.flags & WF_INSN_FIXED))
			break;
		end += insn.len;
		ends[nr++] = end;
	}
	return nr;
}

/*
 * At a glance, only `mov $number, %eax; syscall` may go: it has one boundary inside, and what jumps
 * there without a number of its own is the function itself, which was decoded. A function written
 * by hand has no other parts.
 */
static bool choose_window(const struct wf_match *m, uintptr_t floor, bool is_glance,
			  struct wf_site *out)
{
	uintptr_t ends[MAX_POST + 1];
	uintptr_t window = m->addr;
	uint32_t before = m->before;
	int nr_ends = is_glance && m->nr >= 0 ? 1 : list_ends(m, ends);

	ends[0] = m->addr + WF_SYSCALL_LEN;

	for (int pre = 0; pre <= MAX_PRE; pre++) {
		for (int i = 0; i < nr_ends; i++) {
			if (ends[i] - window < WF_JUMP_BYTES)
				continue;
			if (ends[i] - window > WF_SITE_WINDOW_MAX)
				break;
			out->window = window;
			out->window_len = (uint8_t)(ends[i] - window);
			return true;
		}
		/* One more instruction before: what was the start must not be jumped to. */
		if (!(before & 0xff) || wf_match_is_target(m, window))
			return false;
		window -= before & 0xff;
		before >>= 8;
		if (window < floor || !may_move(m, window, m->addr, window))
			return false;
	}
	return false;
}

/* Asked of the bytes as well, because nothing is worse than to move a signal return. */
static bool is_sigreturn(const struct wf_match *m)
{
	return m->nr == NR_RT_SIGRETURN || load32((const uint8_t *)m->addr - 4) == NR_RT_SIGRETURN;
}

static int list_sites(struct wf_scan *s, const struct wf_scan_wish *wish,
		      struct wf_gate_counts *counts, struct wf_site_list *list)
{
	uintptr_t floor = 0;

	for (size_t i = 0; i < s->nr_matches; i++) {
		struct wf_match *m = &s->matches[i];
		struct wf_site site = { .addr = m->addr };

		counts->doubtful += !m->is_real && !m->is_alike;
		if (!m->is_real)
			continue;
		if (!m->is_unwanted)
			check_number(m);
		site.nr = m->nr;
		counts->found++;
		counts->unknown += m->nr < 0;
		if (m->is_unwanted || is_sigreturn(m) || (m->nr >= 0 && !wish->wanted(m->nr)))
			continue;
		counts->wanted++;
		if (!choose_window(m, floor, wish->glance != NULL, &site)) {
			counts->left++;
			continue;
		}
		floor = site.window + site.window_len;
		if ((list->nr + 1) * sizeof(site) > list->bytes) {
			size_t bytes = list->bytes ? list->bytes * 2 : 8 * WF_PAGE;
			void *p = list->sites ? wf_grow_pages(list->sites, list->bytes, bytes)
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

int wf_sites_find(const struct dl_phdr_info *module, const struct wf_scan_wish *wish,
		  struct wf_gate_counts *out_counts, struct wf_site_list *out_list)
{
	struct wf_gate_counts counts = { .found = 0 };
	struct wf_site_list list = { .sites = NULL };

	for (size_t i = 0; i < module->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &module->dlpi_phdr[i];
		struct wf_scan s = { .module = module };
		int ret;

		if (ph->p_type != PT_LOAD ||
		    (ph->p_flags & (PF_R | PF_W | PF_X)) != (PF_R | PF_X) || ph->p_filesz < 32)
			continue;
		s.start = (const uint8_t *)(module->dlpi_addr + ph->p_vaddr);
		s.end = s.start + ph->p_filesz;
		ret = wf_scan_segment(&s, wish);
		if (ret == 0)
			ret = list_sites(&s, wish, &counts, &list);
		wf_scan_done(&s);
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
