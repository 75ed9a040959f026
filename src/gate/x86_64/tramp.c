// SPDX-License-Identifier: Apache-2.0
/*
 * Trampolines and the memory that they lie in: see tramp.h; what one looks like is in pool.S.
 */
#include "gate/tramp.h"

#include "base/base.h"
#include "gate/x86_64/insn.h"
#include "gate/x86_64/jump.h"
#include "gate/table.h"
#include "sys/syscall.h"

#include <errno.h>
#include <sys/mman.h>

#define MIDDLE_LEN 24 /* lea, lea, lea, jmp: from entry to resume */
#define STUB_LEN 16   /* a pool far from us starts with an indirect jump to the entry */
#define NEAR_STEP (1ul << 20)
#define NEAR_GAP (1ul << 30) /* above a program lies its heap: leave it room to grow */

extern char wf_arch_gate_entry[] WF_HIDDEN;
extern char wf_arch_gate_entry_keeping[] WF_HIDDEN;
extern char wf_arch_gate_entry_clock[] WF_HIDDEN;
extern char wf_gate_pool_start[] WF_HIDDEN;
extern char wf_gate_pool_end[] WF_HIDDEN;

static uintptr_t own_used; /* bytes of our own pool in use, whole pages */

/* --- the trampolines --- */

static size_t tramp_len(const struct wf_site *site)
{
	return site->window_len - WF_SYSCALL_LEN + MIDDLE_LEN + WF_JUMP_BYTES;
}

size_t wf_pool_bytes(const struct wf_site_list *list)
{
	size_t bytes = STUB_LEN;

	for (size_t i = 0; i < list->nr; i++)
		bytes += tramp_len(&list->sites[i]);
	return WF_ALIGN_UP(bytes, WF_PAGE);
}

static uint8_t *put_byte(uint8_t *p, uint8_t byte)
{
	*p = byte;
	return p + 1;
}

/* A displacement to target, from the end of the instruction that it ends. */
static uint8_t *put_rel32(uint8_t *p, uintptr_t target)
{
	int32_t rel = (int32_t)(target - ((uintptr_t)p + 4));

	__builtin_memcpy(p, &rel, sizeof(rel));
	return p + 4;
}

static uint8_t *put_jmp(uint8_t *p, uintptr_t target)
{
	return put_rel32(put_byte(p, WF_JUMP_OPCODE), target);
}

/* lea target(%rip), %reg */
static uint8_t *put_lea(uint8_t *p, uint8_t rex, uint8_t modrm, uintptr_t target)
{
	return put_rel32(put_byte(put_byte(put_byte(p, rex), 0x8d), modrm), target);
}

/*
 * Copy whole instructions; lengths stay, rip-relative operands keep their target. False if one is
 * out of reach.
 */
static bool copy_code(uint8_t *to, const uint8_t *from, const uint8_t *end)
{
	struct wf_insn insn;

	for (; from < end; from += insn.len, to += insn.len) {
		if (!wf_insn_decode(from, end, &insn))
			return false;
		for (int i = 0; i < insn.len; i++)
			to[i] = from[i];
		if (insn.flags & WF_INSN_RIPREL) {
			int32_t disp;
			int64_t moved;

			__builtin_memcpy(&disp, from + insn.disp_at, sizeof(disp));
			moved = disp + (from - to);
			disp = (int32_t)moved;
			if (disp != moved)
				return false;
			__builtin_memcpy(to + insn.disp_at, &disp, sizeof(disp));
		}
	}
	return true;
}

static bool write_tramp(struct wf_site *site, uint8_t *p, uintptr_t gate)
{
	static const uint8_t spare_red_zone[] = { 0x48, 0x8d, 0x64, 0x24, 0x80 };
	const uint8_t *window = (const uint8_t *)site->window;
	const uint8_t *addr = (const uint8_t *)site->addr;

	site->tramp = (uintptr_t)p;
	if (!copy_code(p, window, addr))
		return false;
	p += addr - window;
	site->entry = (uintptr_t)p;
	site->resume = site->entry + MIDDLE_LEN;
	for (size_t i = 0; i < ARRAY_LEN(spare_red_zone); i++)
		p = put_byte(p, spare_red_zone[i]);
	p = put_lea(p, 0x4c, 0x1d, site->addr + WF_SYSCALL_LEN); /* r11 */
	p = put_lea(p, 0x48, 0x0d, site->resume);                /* rcx */
	p = put_jmp(p, gate);
	if (!copy_code(p, addr + WF_SYSCALL_LEN, window + site->window_len))
		return false;
	p += window + site->window_len - (addr + WF_SYSCALL_LEN);
	p = put_jmp(p, site->window + site->window_len);
	site->tramp_end = (uintptr_t)p;
	return true;
}

/* --- where the trampolines go --- */

static bool own_pool(uintptr_t lo, uintptr_t hi, size_t bytes, struct wf_pool *out)
{
	uintptr_t start = (uintptr_t)wf_gate_pool_start + own_used;

	if (bytes > (uintptr_t)wf_gate_pool_end - start ||
	    !wf_gate_reaches(lo, hi, start, start + bytes))
		return false;
	*out = (struct wf_pool){ .start = start, .end = start + bytes, .is_own = true };
	return true;
}

static bool map_at(uintptr_t addr, size_t bytes, struct wf_pool *out)
{
	long ret = sys6(__NR_mmap, addr, bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (sys_failed(ret))
		return false;
	if ((uintptr_t)ret != addr) { /* a kernel that takes it for a hint */
		(void)sys2(__NR_munmap, ret, bytes);
		return false;
	}
	*out = (struct wf_pool){ .start = addr, .end = addr + bytes };
	return true;
}

/* Below the module first: what is above it grows. */
static bool near_pool(uintptr_t lo, uintptr_t hi, size_t bytes, struct wf_pool *out)
{
	uintptr_t addr = WF_ALIGN_DOWN(lo - bytes, WF_PAGE);

	/* Older kernels put the vDSO right above the stack, which grows down: there only what is above is free. */
	if (lo > (uintptr_t)&addr) {
		for (addr = WF_ALIGN_UP(hi, WF_PAGE); addr + bytes < WF_USER_END; addr += WF_PAGE)
			if (map_at(addr, bytes, out))
				return true;
		return false;
	}
	for (; addr < lo && wf_gate_reaches(lo, hi, addr, addr + bytes); addr -= NEAR_STEP)
		if (map_at(addr, bytes, out))
			return true;
	addr = WF_ALIGN_UP(hi, WF_PAGE) + NEAR_GAP;
	for (; wf_gate_reaches(lo, hi, addr, addr + bytes); addr += NEAR_STEP)
		if (map_at(addr, bytes, out))
			return true;
	return false;
}

bool wf_pool_find(uintptr_t lo, uintptr_t hi, size_t bytes, struct wf_pool *out)
{
	return own_pool(lo, hi, bytes, out) || near_pool(lo, hi, bytes, out);
}

void wf_pool_keep(const struct wf_pool *pool)
{
	if (pool->is_own)
		own_used = pool->end - (uintptr_t)wf_gate_pool_start;
}

/* The address that the trampolines of this pool jump to. */
static uintptr_t write_stub(const struct wf_pool *pool, int entry)
{
	static const uint8_t jmp_literal[] = { 0xff, 0x25, 0x02, 0, 0, 0, 0xcc, 0xcc };
	uint8_t *p = (uint8_t *)pool->start;
	const char *const entries[] = { [WF_ENTRY_LIBC] = wf_arch_gate_entry,
					[WF_ENTRY_KEEPING] = wf_arch_gate_entry_keeping,
					[WF_ENTRY_CLOCK] = wf_arch_gate_entry_clock };
	uintptr_t target = (uintptr_t)entries[entry];

	if (pool->is_own)
		return target;
	for (size_t i = 0; i < ARRAY_LEN(jmp_literal); i++)
		p = put_byte(p, jmp_literal[i]);
	__builtin_memcpy(p, &target, sizeof(target));
	return pool->start;
}

void wf_pool_drop(const struct wf_pool *pool)
{
	if (!pool->is_own)
		(void)sys2(__NR_munmap, pool->start, pool->end - pool->start);
}

long wf_pool_fill(const struct wf_pool *pool, struct wf_site_list *list)
{
	uint8_t *p = (uint8_t *)pool->start + (pool->is_own ? 0 : STUB_LEN);
	long ret = sys_protect(pool->start, pool->end, PROT_READ | PROT_WRITE);
	bool is_good = true;
	uintptr_t gate;

	if (sys_failed(ret))
		return ret;
	gate = write_stub(pool, list->entry);
	for (size_t i = 0; i < list->nr && is_good; i++) {
		is_good = write_tramp(&list->sites[i], p, gate);
		p += tramp_len(&list->sites[i]);
	}
	ret = sys_protect(pool->start, pool->end, PROT_READ | PROT_EXEC);
	if (sys_failed(ret))
		return ret;
	return is_good ? 0 : -ERANGE;
}
