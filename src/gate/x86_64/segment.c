// SPDX-License-Identifier: Apache-2.0
/* Finding a few instructions in a module's code: see segment.h. No libc, as in scan.c. */
#include "gate/segment.h"

#include "base/base.h"
#include "gate/fde.h"
#include "gate/x86_64/find.h"
#include "gate/x86_64/insn.h"
#include "sys/syscall.h"

#define RUN_UP                                                                                     \
	1024 /* code that no table knows is decoded from here: it falls into step long before */

/* f3, maybe a REX prefix, 0f ae and an operand: a register, and 1 (read) or 3 (write). p: at the 0f. NULL: another one. */
static const uint8_t *base_insn(const uint8_t *p, const uint8_t *start, const uint8_t *end)
{
	if (end - p < 3 || (p[2] & 0xe8) != 0xc8)
		return NULL;
	if (p - start >= 1 && p[-1] == 0xf3)
		return p - 1;
	return p - start >= 2 && (p[-1] & 0xf0) == 0x40 && p[-2] == 0xf3 ? p - 2 : NULL;
}

/* mov $317, %edi or %eax: libc has no function for seccomp() but syscall(). p: at the number. */
static const uint8_t *filter_insn(const uint8_t *p, const uint8_t *start, const uint8_t *end)
{
	if (p == start || end - p < 4 || p[2] || p[3] || (p[-1] != 0xbf && p[-1] != 0xb8))
		return NULL;
	return p - 1;
}

_Static_assert(__NR_seccomp == 0x13d, "what is looked for");

/* Does decoding arrive at the bytes, or do they lie in another instruction? Yes where it cannot be told. */
static bool is_reached(const struct wf_fde_table *fdes, const uint8_t *addr, const uint8_t *start,
		       const uint8_t *end)
{
	size_t own = wf_fde_at(fdes, (uintptr_t)addr);
	const uint8_t *p = addr - start > RUN_UP ? addr - RUN_UP : start;
	const uint8_t *function, *function_end;
	struct wf_insn insn;

	if (own != fdes->nr) {
		wf_fde_bounds(fdes, own, &function, &function_end);
		if (addr < function_end)
			p = WF_MAX(function, start);
		else
			p = WF_MAX(function_end, p);
	}
	for (; p < addr; p += insn.len)
		if (!wf_insn_decode(p, end, &insn))
			return true;
	return p == addr;
}

/* The start of what is looked for, from where its bytes were found, or NULL. */
struct pattern {
	const uint8_t *(*find)(const uint8_t *p, const uint8_t *end);
	const uint8_t *(*start_of)(const uint8_t *p, const uint8_t *start, const uint8_t *end);
};

static bool is_in(const uint8_t *start, const uint8_t *end, const struct wf_fde_table *fdes,
		  const struct pattern *pattern)
{
	for (const uint8_t *p = start;; p++) {
		const uint8_t *insn;

		p = pattern->find(p, end);
		if (p == end)
			return false;
		insn = pattern->start_of(p, start, end);
		if (insn && is_reached(fdes, insn, start, end))
			return true;
	}
}

static bool has(const struct dl_phdr_info *module, const struct pattern *pattern)
{
	struct wf_fde_table fdes;

	wf_fde_find(module, &fdes);
	for (size_t i = 0; i < module->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &module->dlpi_phdr[i];
		const uint8_t *start = (const uint8_t *)(module->dlpi_addr + ph->p_vaddr);

		if (ph->p_type == PT_LOAD &&
		    (ph->p_flags & (PF_R | PF_W | PF_X)) == (PF_R | PF_X) &&
		    is_in(start, start + ph->p_filesz, &fdes, pattern))
			return true;
	}
	return false;
}

bool wf_segment_has_base_insns(const struct dl_phdr_info *module)
{
	const struct pattern pattern = { wf_find_0fae, base_insn };

	return has(module, &pattern);
}

bool wf_segment_has_filters(const struct dl_phdr_info *module)
{
	const struct pattern pattern = { wf_find_3d01, filter_insn };

	return has(module, &pattern);
}
