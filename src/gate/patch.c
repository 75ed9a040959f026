// SPDX-License-Identifier: Apache-2.0
/*
 * Trampolines and the jumps to them: see patch.h; what a trampoline looks like is in pool.S.
 *
 * The order of things makes failing safe. The pool goes through writable and back to executable
 * first, so that whatever forbids that (PR_SET_MDWE, seccomp, SELinux) does so before the module's
 * text is touched. A page of the module's own file goes through it next, because SELinux judges by
 * file. Only then the text itself does.
 *
 * The text of libc is not executable while it is written: that stretch, poke(), calls nothing and
 * has all signals blocked.
 *
 * Considered and dropped: RWX for a moment (systems that care forbid it); one mprotect per page (66
 * calls instead of 2); /proc/self/mem (gets around what an administrator has forbidden).
 */
#include "gate/patch.h"

#include "base/atomic.h"
#include "base/base.h"
#include "base/san.h"
#include "gate/insn.h"
#include "sys/syscall.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>

#define JMP_LEN 5
#define SYSCALL_LEN 2
#define MIDDLE_LEN 24 /* lea, lea, lea, jmp: from entry to resume */
#define STUB_LEN 16   /* a pool far from us starts with an indirect jump to the entry */
#define REACH ((1l << 31) - (1l << 20)) /* of a rel32, less than any module part matters */
#define USER_END ((1ul << 47) - WF_PAGE)
#define NEAR_STEP (1ul << 20)
#define NEAR_GAP (1ul << 30) /* above a program lies its heap: leave it room to grow */

extern char wf_arch_gate_entry[] WF_HIDDEN;
extern char wf_gate_pool_start[] WF_HIDDEN;
extern char wf_gate_pool_end[] WF_HIDDEN;

/*
 * What was patched in one module. Never freed, never changed but for is_gone: signal handlers read
 * it without locks.
 */
struct batch {
	struct batch *next;      /* (p) */
	uintptr_t lo, hi;        /* (p) windows lie in [lo, hi) */
	uintptr_t pool, pool_hi; /* (p) trampolines, in the order of the sites */
	size_t nr;               /* (p) */
	bool is_gone; /* (a) module unmapped: windows no longer count, trampolines still do */
	struct wf_site *sites; /* (p) sorted by window and by trampoline */
	size_t bytes;          /* (p) of the mapping of this structure with its sites */
};

static struct batch *batches; /* (a) newest first; stored by the one who patches */
static uintptr_t pool_used;   /* bytes of our own pool in use, whole pages */

static long failed(long ret)
{
	return (unsigned long)ret > -4096ul ? ret : 0;
}

static long protect(uintptr_t start, uintptr_t end, int prot)
{
	return sys3(__NR_mprotect, start, end - start, prot);
}

/* --- the trampolines --- */

static size_t tramp_len(const struct wf_site *site)
{
	return site->window_len - SYSCALL_LEN + MIDDLE_LEN + JMP_LEN;
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
	return put_rel32(put_byte(p, 0xe9), target);
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
	p = put_lea(p, 0x4c, 0x1d, site->addr + SYSCALL_LEN); /* r11 */
	p = put_lea(p, 0x48, 0x0d, site->resume);             /* rcx */
	p = put_jmp(p, gate);
	if (!copy_code(p, addr + SYSCALL_LEN, window + site->window_len))
		return false;
	p += window + site->window_len - (addr + SYSCALL_LEN);
	p = put_jmp(p, site->window + site->window_len);
	site->tramp_end = (uintptr_t)p;
	return true;
}

/* --- where the trampolines go --- */

struct pool {
	uintptr_t start;
	uintptr_t end; /* page-aligned, like start */
	bool is_own;
};

static bool reaches(uintptr_t lo, uintptr_t hi, uintptr_t pool_lo, uintptr_t pool_hi)
{
	return (intptr_t)(WF_MAX(hi, pool_hi) - WF_MIN(lo, pool_lo)) < REACH;
}

static bool own_pool(uintptr_t lo, uintptr_t hi, size_t bytes, struct pool *out)
{
	uintptr_t start = (uintptr_t)wf_gate_pool_start + pool_used;

	if (bytes > (uintptr_t)wf_gate_pool_end - start || !reaches(lo, hi, start, start + bytes))
		return false;
	*out = (struct pool){ start, start + bytes, true };
	return true;
}

static bool map_at(uintptr_t addr, size_t bytes, struct pool *out)
{
	long ret = sys6(__NR_mmap, addr, bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (failed(ret))
		return false;
	if ((uintptr_t)ret != addr) { /* a kernel that takes it for a hint */
		(void)sys2(__NR_munmap, ret, bytes);
		return false;
	}
	*out = (struct pool){ addr, addr + bytes, false };
	return true;
}

/* Below the module first: what is above it grows. */
static bool near_pool(uintptr_t lo, uintptr_t hi, size_t bytes, struct pool *out)
{
	uintptr_t addr = WF_ALIGN_DOWN(lo - bytes, WF_PAGE);

	/* Older kernels put the vDSO right above the stack, which grows down: there only what is above is free. */
	if (lo > (uintptr_t)&addr) {
		for (addr = WF_ALIGN_UP(hi, WF_PAGE); addr + bytes < USER_END; addr += WF_PAGE)
			if (map_at(addr, bytes, out))
				return true;
		return false;
	}
	for (; addr < lo && reaches(lo, hi, addr, addr + bytes); addr -= NEAR_STEP)
		if (map_at(addr, bytes, out))
			return true;
	addr = WF_ALIGN_UP(hi, WF_PAGE) + NEAR_GAP;
	for (; reaches(lo, hi, addr, addr + bytes); addr += NEAR_STEP)
		if (map_at(addr, bytes, out))
			return true;
	return false;
}

/* The address that the trampolines of this pool jump to. */
static uintptr_t write_stub(const struct pool *pool)
{
	static const uint8_t jmp_literal[] = { 0xff, 0x25, 0x02, 0, 0, 0, 0xcc, 0xcc };
	uint8_t *p = (uint8_t *)pool->start;
	uintptr_t target = (uintptr_t)wf_arch_gate_entry;

	if (pool->is_own)
		return target;
	for (size_t i = 0; i < ARRAY_LEN(jmp_literal); i++)
		p = put_byte(p, jmp_literal[i]);
	__builtin_memcpy(p, &target, sizeof(target));
	return pool->start;
}

static void drop_pool(const struct pool *pool)
{
	if (!pool->is_own)
		(void)sys2(__NR_munmap, pool->start, pool->end - pool->start);
}

static long fill_pool(const struct pool *pool, struct wf_site_list *list)
{
	uint8_t *p = (uint8_t *)pool->start + (pool->is_own ? 0 : STUB_LEN);
	long ret = protect(pool->start, pool->end, PROT_READ | PROT_WRITE);
	bool is_good = true;
	uintptr_t gate;

	if (failed(ret))
		return ret;
	gate = write_stub(pool);
	for (size_t i = 0; i < list->nr && is_good; i++) {
		is_good = write_tramp(&list->sites[i], p, gate);
		p += tramp_len(&list->sites[i]);
	}
	ret = protect(pool->start, pool->end, PROT_READ | PROT_EXEC);
	if (failed(ret))
		return ret;
	return is_good ? 0 : -ERANGE;
}

/* --- the module's text --- */

/* No file but the kernel's own pages; all of them change their protection at once, or none. */
static bool is_vdso(const struct dl_phdr_info *module)
{
	static const char name[] = "linux-vdso";
	const char *p = module->dlpi_name ? module->dlpi_name : "";

	for (size_t i = 0; i < sizeof(name) - 1; i++)
		if (p[i] != name[i])
			return false;
	return true;
}

/*
 * Would text of the module's file become executable again? Tried on a page of it that nobody uses.
 */
static long rehearse(const struct dl_phdr_info *module, const ElfW(Phdr) * text)
{
	const char *name = module->dlpi_name && *module->dlpi_name ? module->dlpi_name
								   : "/proc/self/exe";
	long fd = is_vdso(module) ? -ENOENT
				  : sys4(__NR_openat, AT_FDCWD, name, O_RDONLY | O_CLOEXEC, 0);
	long offset = (long)WF_ALIGN_DOWN(text->p_offset, WF_PAGE);
	long at;
	long ret;

	if (failed(fd))
		return 0; /* no file to ask: the pool has answered for all */
	at = sys6(__NR_mmap, 0, WF_PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, offset);
	(void)sys1(__NR_close, fd);
	if (failed(at))
		return 0;
	ret = protect((uintptr_t)at, (uintptr_t)at + WF_PAGE, PROT_READ | PROT_WRITE);
	if (!failed(ret)) {
		*(volatile uint8_t *)at = 0xcc;
		ret = protect((uintptr_t)at, (uintptr_t)at + WF_PAGE, PROT_READ | PROT_EXEC);
	}
	(void)sys2(__NR_munmap, at, WF_PAGE);
	return failed(ret);
}

static WF_NORETURN void die_without_libc(void)
{
	static const char text[] =
		"weft: the system took back the permission to execute patched text\n";

	(void)sys3(__NR_write, 2, text, sizeof(text) - 1);
	for (;;)
		(void)sys1(__NR_exit_group, 127);
}

/*
 * Write the jumps at sites [0, nr), which lie in [start, end). Calls nothing: libc may be what is
 * being written, and a sanitizer has no shadow for text.
 */
static WF_SAN_PLAIN long poke(const struct wf_site *sites, size_t nr, uintptr_t start,
			      uintptr_t end)
{
	uint64_t all = ~0ull;
	uint64_t mask;
	long ret;

	(void)sys_sigprocmask(SIG_SETMASK, &all, &mask);
	ret = sys3(__NR_mprotect, start, end - start, PROT_READ | PROT_WRITE);
	if ((unsigned long)ret <= -4096ul) {
		for (size_t i = 0; i < nr; i++) {
			volatile uint8_t *p = (volatile uint8_t *)sites[i].window;
			uint32_t rel = (uint32_t)(sites[i].tramp - (sites[i].window + JMP_LEN));

			p[0] = 0xe9;
			for (int byte = 0; byte < 4; byte++)
				p[1 + byte] = (uint8_t)(rel >> (8 * byte));
			for (int rest = JMP_LEN; rest < sites[i].window_len; rest++)
				p[rest] = 0xcc;
		}
		ret = sys3(__NR_mprotect, start, end - start, PROT_READ | PROT_EXEC);
		if ((unsigned long)ret > -4096ul)
			die_without_libc();
	}
	(void)sys_sigprocmask(SIG_SETMASK, &mask, NULL);
	return ret;
}

/* The number of sites from first on that lie in the same segment, and that segment. */
static size_t same_segment(const struct dl_phdr_info *module, const struct wf_site *first,
			   size_t nr, const ElfW(Phdr) * *out_text)
{
	for (size_t i = 0; i < module->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &module->dlpi_phdr[i];
		uintptr_t start = module->dlpi_addr + ph->p_vaddr;
		size_t n = 0;

		if (ph->p_type != PT_LOAD)
			continue;
		while (n < nr && first[n].window - start < ph->p_filesz)
			n++;
		if (n) {
			*out_text = ph;
			return n;
		}
	}
	return 0;
}

static uintptr_t text_start(const struct wf_site *sites)
{
	return WF_ALIGN_DOWN(sites[0].window, WF_PAGE);
}

static uintptr_t text_end(const struct wf_site *sites, size_t nr)
{
	return WF_ALIGN_UP(sites[nr - 1].window + sites[nr - 1].window_len, WF_PAGE);
}

/* All segments are rehearsed before the first is written. */
static long write_jumps(const struct dl_phdr_info *module, const struct wf_site_list *list)
{
	const ElfW(Phdr) * text;
	size_t n;
	long ret = 0;

	for (size_t i = 0; i < list->nr; i += n) {
		n = same_segment(module, list->sites + i, list->nr - i, &text);
		if (!n)
			return -EINVAL;
		ret = rehearse(module, text);
		if (ret)
			return ret;
	}
	for (size_t i = 0; i < list->nr; i += n) {
		const struct wf_site *sites = list->sites + i;

		uintptr_t start = text_start(sites), end;

		n = same_segment(module, sites, list->nr - i, &text);
		end = text_end(sites, n);
		if (is_vdso(module)) {
			start = module->dlpi_addr + text->p_vaddr;
			end = WF_ALIGN_UP(start + text->p_memsz, WF_PAGE);
		}
		ret = poke(sites, n, start, end);
		if (failed(ret) && i == 0)
			return ret;
		/*
		 * Half a module would be in force: nothing known does this between two segments of
		 * one file.
		 */
		if (failed(ret))
			die_without_libc();
	}
	return 0;
}

/* --- the table --- */

static struct batch *new_batch(const struct wf_site_list *list, const struct pool *pool)
{
	size_t bytes = WF_ALIGN_UP(sizeof(struct batch) + list->nr * sizeof(struct wf_site),
				   WF_PAGE);
	struct batch *b = sys_map(bytes);
	const struct wf_site *last = &list->sites[list->nr - 1];

	if (!b)
		return NULL;
	b->sites = (struct wf_site *)(b + 1);
	for (size_t i = 0; i < list->nr; i++)
		b->sites[i] = list->sites[i];
	b->nr = list->nr;
	b->lo = list->sites[0].window;
	b->hi = last->window + last->window_len;
	b->pool = pool->start;
	b->pool_hi = pool->end;
	b->bytes = bytes;
	return b;
}

void wf_gate_forget(uintptr_t start, uintptr_t end)
{
	struct batch *b = __atomic_load_n(&batches, __ATOMIC_ACQUIRE);

	for (; b; b = b->next)
		if (b->lo < end && start < b->hi)
			wf_store_relaxed(&b->is_gone, true);
}

static bool is_our_own(const struct dl_phdr_info *module)
{
	for (size_t i = 0; i < module->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &module->dlpi_phdr[i];

		if (ph->p_type == PT_LOAD &&
		    (uintptr_t)wf_gate_pool_start - (module->dlpi_addr + ph->p_vaddr) < ph->p_memsz)
			return true;
	}
	return false;
}

static int patch(const struct dl_phdr_info *module, struct wf_site_list *list)
{
	uintptr_t lo = list->sites[0].window - WF_PAGE;
	uintptr_t hi = list->sites[list->nr - 1].window + WF_PAGE;
	size_t bytes = STUB_LEN;
	struct pool pool;
	struct batch *b;
	long ret;

	for (size_t i = 0; i < list->nr; i++)
		bytes += tramp_len(&list->sites[i]);
	bytes = WF_ALIGN_UP(bytes, WF_PAGE);
	if (!own_pool(lo, hi, bytes, &pool) && !near_pool(lo, hi, bytes, &pool))
		return -ENOMEM;
	ret = fill_pool(&pool, list);
	if (failed(ret))
		goto out_pool;
	b = new_batch(list, &pool);
	if (!b) {
		ret = -ENOMEM;
		goto out_pool;
	}
	wf_gate_forget(lo, hi); /* what was mapped here before */
	ret = write_jumps(module, list);
	if (failed(ret))
		goto out_batch;
	if (pool.is_own)
		pool_used += bytes;
	b->next = batches;
	/*
	 * A signal between poke() and here finds no table, but nobody has run a trampoline yet.
	 * Pairs with the load-acquire of the readers.
	 */
	__atomic_store_n(&batches, b, __ATOMIC_RELEASE);
	return 0;
out_batch:
	sys_unmap(b, b->bytes);
out_pool:
	drop_pool(&pool);
	return (int)ret;
}

int wf_gate_patch_module(const struct dl_phdr_info *module, bool (*wanted)(int nr),
			 struct wf_gate_counts *out_counts)
{
	struct wf_site_list list;
	int ret;

	*out_counts = (struct wf_gate_counts){ .found = 0 };
	if (is_our_own(module))
		return -EINVAL;
	ret = wf_sites_find(module, wanted, out_counts, &list);
	if (ret != 0 || list.nr == 0)
		return ret;
	ret = patch(module, &list);
	if (ret == 0)
		out_counts->patched = (unsigned int)list.nr;
	else
		out_counts->left = out_counts->wanted;
	wf_sites_free(&list);
	return ret;
}

/* --- questions of signal handlers --- */

uintptr_t wf_gate_to_tramp(uintptr_t rip)
{
	const struct batch *b = __atomic_load_n(&batches, __ATOMIC_ACQUIRE);

	for (; b; b = b->next) {
		size_t lo = 0;
		size_t hi = b->nr;
		const struct wf_site *site;

		if (rip < b->lo || rip >= b->hi || wf_load_relaxed(&b->is_gone))
			continue;
		while (hi - lo > 1) { /* the last window that starts at or before rip */
			size_t mid = (lo + hi) / 2;

			if (b->sites[mid].window <= rip)
				lo = mid;
			else
				hi = mid;
		}
		site = &b->sites[lo];
		if (rip - site->window >= site->window_len)
			return rip;
		if (rip <= site->addr)
			return site->tramp + (rip - site->window);
		if (rip >= site->addr + SYSCALL_LEN)
			return site->resume + (rip - site->addr - SYSCALL_LEN);
		return rip;
	}
	return rip;
}

uintptr_t wf_gate_from_tramp(uintptr_t rip)
{
	const struct batch *b = __atomic_load_n(&batches, __ATOMIC_ACQUIRE);

	for (; b; b = b->next) {
		size_t lo = 0;
		size_t hi = b->nr;
		const struct wf_site *site;

		if (rip < b->pool || rip >= b->pool_hi)
			continue;
		while (hi - lo > 1) {
			size_t mid = (lo + hi) / 2;

			if (b->sites[mid].tramp <= rip)
				lo = mid;
			else
				hi = mid;
		}
		site = &b->sites[lo];
		if (rip < site->tramp || rip >= site->tramp_end)
			return 0; /* the stub */
		if (rip <= site->entry)
			return site->window + (rip - site->tramp);
		if (rip < site->resume)
			return 0;
		return WF_MIN(site->addr + SYSCALL_LEN + (rip - site->resume),
			      site->window + site->window_len);
	}
	return rip;
}

bool wf_gate_in_pool(uintptr_t rip)
{
	const struct batch *b = __atomic_load_n(&batches, __ATOMIC_ACQUIRE);

	if (rip >= (uintptr_t)wf_gate_pool_start && rip < (uintptr_t)wf_gate_pool_end)
		return true;
	for (; b; b = b->next)
		if (rip >= b->pool && rip < b->pool_hi)
			return true;
	return false;
}
