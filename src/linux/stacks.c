// SPDX-License-Identifier: Apache-2.0
/*
 * Stacks of threads: mmap(2), mprotect(2) and munmap(2) as libc uses them for a stack.
 *
 * libc maps a stack without access and then opens all but the guard, which costs the kernel two mappings per stack:
 * at 65,530 mappings (vm.max_map_count) a process ends with 32,000 threads. Here stacks of one size lie side by
 * side in a region, opened one after the other so that the kernel sees a single mapping, and guarded by
 * MADV_GUARD_INSTALL (Linux 6.13), which needs none. A stack that is given back keeps its place and its guard: the
 * next one costs no system call.
 *
 * That is for programs that need it: until they have that many stacks (also of threads that have ended and wait to be
 * joined), these are libc's own mappings, as in every other program. A debugger that writes a core file by itself stops at a guard inside a mapping.
 *
 * Everything that does not look exactly like libc's sequence is done by the kernel on the real addresses, and
 * its slot is then never used again. Without guard regions nothing of this happens.
 */
#include "linux/stacks.h"
#include "linux/abi.h"
#include "linux/calls.h"
#include "linux/heir.h"
#include "sched/park.h"

#include <errno.h>
#include <sys/mman.h>

#define GUARD_INSTALL 102
#define GUARD_REMOVE 103

#define PLAIN_STACKS 8192u /* a quarter of what vm.max_map_count allows by default */
#define MAX_STACK_BYTES (256ul << 20)
#define MAX_REGION_BYTES (16ul << 30)
#define MAX_REGION_SLOTS 1024u
#define FIRST_REGION_SLOTS 16u
#define MAX_REGIONS 4096u
#define MAX_SIZES 16u
#define PLAIN_PLACE_BITS 8

enum slot_state {
	SLOT_UNUSED, /* no access yet */
	SLOT_TAKEN,  /* a stack of libc's */
	SLOT_FREE,   /* accessible, empty, guarded, on its size's list */
	SLOT_STRAY,  /* used in a way we do not follow: the kernel's business */
};

/* All fields under the lock. */
struct slot {
	struct slot *next; /* of the free ones */
	uintptr_t base;
	uint32_t guard_pages;
	uint8_t state; /* enum slot_state */
	bool is_open;  /* readable and writable */
};

struct region {
	uintptr_t base, end;
	size_t slot_bytes;
	uint32_t nr_slots, nr_begun; /* slots below nr_begun are not UNUSED */
	struct slot slots[];
};

struct size {
	size_t bytes;
	struct slot *free;
	struct region *fresh; /* the region that still has UNUSED slots, or NULL */
	uint32_t next_slots;  /* of the next region */
};

static struct {
	struct wf_spin lock;
	uint32_t nr_regions;
	uint32_t nr_sizes;
	uint32_t nr_plain;                      /* (a) mapped as libc asked for it */
	uint32_t is_off;                        /* (a) no guard regions here */
	uintptr_t lowest;                       /* (a) 0: no region */
	uintptr_t highest;                      /* (a) */
	uint32_t plain[1u << PLAIN_PLACE_BITS]; /* (a) as nr_plain, by size */
	struct size sizes[MAX_SIZES];
	struct region *regions[MAX_REGIONS]; /* by address */
} stacks;

/* In a fork child, which is native: its libc may unmap stacks behind our back. */
void lx_stacks_forget(void)
{
	__builtin_memset(&stacks, 0, sizeof(stacks));
}

/* Nearly all addresses in the program's life: no lock. */
static bool is_elsewhere(uintptr_t addr, size_t bytes)
{
	uintptr_t lowest = wf_load_relaxed(&stacks.lowest);

	return !lowest || addr >= wf_load_relaxed(&stacks.highest) || addr + bytes <= lowest;
}

/* Index of the first region that ends above addr. */
static uint32_t first_above(uintptr_t addr)
{
	uint32_t low = 0, high = stacks.nr_regions;

	while (low < high) {
		uint32_t mid = (low + high) / 2;

		if (stacks.regions[mid]->end > addr)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

/* The taken slot that begins there, or NULL. */
static struct slot *slot_at(uintptr_t addr, struct region **out_region)
{
	uint32_t i = first_above(addr);
	struct region *r = i < stacks.nr_regions ? stacks.regions[i] : NULL;
	struct slot *s;

	if (!r || addr < r->base)
		return NULL;
	*out_region = r;
	s = &r->slots[(addr - r->base) / r->slot_bytes];
	return s->state == SLOT_TAKEN ? s : NULL;
}

/* The program does something of its own with that memory: its slots are gone for good, free ones, too. */
static void let_go(uintptr_t addr, size_t bytes)
{
	wf_spin_lock(&stacks.lock);
	for (uint32_t i = first_above(addr); i < stacks.nr_regions; i++) {
		struct region *r = stacks.regions[i];
		uintptr_t from = WF_MAX(addr, r->base), to = WF_MIN(addr + bytes, r->end);

		for (; from < to; from += r->slot_bytes - (from - r->base) % r->slot_bytes) {
			struct slot *s = &r->slots[(from - r->base) / r->slot_bytes];

			if (s->state == SLOT_TAKEN || s->state == SLOT_FREE)
				s->state = SLOT_STRAY; /* take() drops it from the list */
		}
	}
	wf_spin_unlock(&stacks.lock);
}

static struct size *size_of(size_t bytes)
{
	for (uint32_t i = 0; i < stacks.nr_sizes; i++)
		if (stacks.sizes[i].bytes == bytes)
			return &stacks.sizes[i];
	if (stacks.nr_sizes == MAX_SIZES)
		return NULL;
	stacks.sizes[stacks.nr_sizes] = (struct size){ .bytes = bytes,
						       .next_slots = FIRST_REGION_SLOTS };
	return &stacks.sizes[stacks.nr_sizes++];
}

/* Without the lock: address space for more stacks of that size. */
static struct region *new_region(size_t slot_bytes, uint32_t nr)
{
	size_t bytes = slot_bytes * nr;
	struct region *r = sys_map(sizeof(*r) + nr * sizeof(r->slots[0]));
	long base;

	if (!r)
		return NULL;
	base = sys6(__NR_mmap, 0, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	if (base < 0) {
		sys_unmap(r, sizeof(*r) + nr * sizeof(r->slots[0]));
		return NULL;
	}
	/* No neighbour shall be joined to a mapping with guards inside, and no stack become a huge page. */
	(void)sys3(__NR_madvise, base, bytes, MADV_NOHUGEPAGE);
	r->base = (uintptr_t)base;
	r->end = r->base + bytes;
	r->slot_bytes = slot_bytes;
	r->nr_slots = nr;
	return r;
}

static bool add_region(struct size *size, struct region *r)
{
	uint32_t at = first_above(r->base);

	if (stacks.nr_regions == MAX_REGIONS || size->fresh)
		return false;
	for (uint32_t i = stacks.nr_regions++; i > at; i--)
		stacks.regions[i] = stacks.regions[i - 1];
	stacks.regions[at] = r;
	size->fresh = r;
	wf_store_relaxed(&stacks.highest, stacks.regions[stacks.nr_regions - 1]->end);
	wf_store_relaxed(&stacks.lowest, stacks.regions[0]->base);
	return true;
}

static struct slot *take(struct size *size)
{
	struct slot *s;

	do {
		s = size->free;
		if (s)
			size->free = s->next;
	} while (s && s->state != SLOT_FREE);
	if (!s && size->fresh) {
		struct region *r = size->fresh;
		uint32_t i = r->nr_begun++;

		s = &r->slots[i];
		s->base = r->base + i * r->slot_bytes;
		if (r->nr_begun == r->nr_slots)
			size->fresh = NULL;
	}
	if (s)
		s->state = SLOT_TAKEN;
	return s;
}

/* The address of a free stack, or 0. */
static uintptr_t get(size_t bytes)
{
	struct slot *s = NULL;
	struct size *size;
	uint32_t nr = 0;

	wf_spin_lock(&stacks.lock);
	size = size_of(bytes);
	if (size) {
		s = take(size);
		nr = (uint32_t)WF_MIN((size_t)size->next_slots, MAX_REGION_BYTES / bytes);
	}
	wf_spin_unlock(&stacks.lock);
	if (!s && nr) {
		struct region *r = new_region(bytes, nr);

		if (!r)
			return 0;
		wf_spin_lock(&stacks.lock);
		if (add_region(size, r)) {
			size->next_slots = WF_MIN(size->next_slots * 2, MAX_REGION_SLOTS);
			r = NULL;
		}
		s = take(size);
		wf_spin_unlock(&stacks.lock);
		if (r) { /* another thread was quicker */
			(void)sys2(__NR_munmap, r->base, r->end - r->base);
			sys_unmap(r, sizeof(*r) + r->nr_slots * sizeof(r->slots[0]));
		}
	}
	return s ? s->base : 0;
}

/* Sizes that share a place are counted together. */
static uint32_t *plain_of(size_t bytes)
{
	return &stacks.plain[(uint32_t)(bytes / WF_PAGE) * 2654435769u >> (32 - PLAIN_PLACE_BITS)];
}

static void count_mapped(size_t bytes)
{
	(void)wf_fetch_add(plain_of(bytes), 1u);
	(void)wf_fetch_add(&stacks.nr_plain, 1u);
}

/* Another mapping of that size is counted off as well: that only delays the change to regions. */
static void count_unmapped(size_t bytes)
{
	uint32_t *nr = plain_of(bytes), seen = wf_load_relaxed(nr);

	while (seen)
		if (wf_cas(nr, &seen, seen - 1)) {
			(void)wf_fetch_sub(&stacks.nr_plain, 1u);
			return;
		}
}

long sysc_mmap(struct wf_frame *f)
{
	const long stack = MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK;
	uintptr_t addr = WF_ARG0(f);
	size_t bytes = WF_ARG1(f);
	long flags = (long)WF_ARG3(f);
	bool is_stack = flags == stack && !addr && WF_ARG2(f) == PROT_NONE &&
			bytes >= 2 * WF_PAGE && bytes <= MAX_STACK_BYTES &&
			!(bytes & (WF_PAGE - 1));

	if (is_stack && wf_load_relaxed(&stacks.nr_plain) >= PLAIN_STACKS &&
	    !wf_load_relaxed(&stacks.is_off)) {
		addr = get(bytes);
		if (addr)
			return (long)addr;
	} else if (flags & MAP_FIXED && !is_elsewhere(addr, bytes)) {
		let_go(addr, bytes);
	}
	addr = (uintptr_t)lx_raw(f);
	if ((long)addr == -ENOMEM)
		wf_yield(); /* who tries again and again keeps no thread from running whose end makes room */
	if (is_stack && (long)addr > 0)
		count_mapped(bytes);
	if (WF_UNLIKELY(flags & MAP_SHARED))
		lx_heir_mapped(f);
	return (long)addr;
}

/* All of a slot but a guard at its low end becomes accessible. */
static bool open_stack(struct slot *s, size_t slot_bytes, size_t guard)
{
	uint32_t guard_pages = (uint32_t)(guard / WF_PAGE);

	if (s->is_open && s->guard_pages == guard_pages)
		return true;
	if (!s->is_open && sys3(__NR_mprotect, s->base, slot_bytes, PROT_READ | PROT_WRITE) < 0)
		return false;
	s->is_open = true;
	if (s->guard_pages > guard_pages)
		(void)sys3(__NR_madvise, s->base, s->guard_pages * WF_PAGE, GUARD_REMOVE);
	if (sys3(__NR_madvise, s->base, guard, GUARD_INSTALL) < 0) {
		wf_store_relaxed(&stacks.is_off, 1u);
		return false;
	}
	s->guard_pages = guard_pages;
	return true;
}

long sysc_mprotect(struct wf_frame *f)
{
	uintptr_t addr = WF_ARG0(f), base = 0;
	size_t bytes = WF_ARG1(f);
	struct region *r = NULL;
	struct slot *s;

	if (is_elsewhere(addr, bytes))
		return lx_raw(f);
	wf_spin_lock(&stacks.lock);
	s = slot_at(addr, &r);
	wf_spin_unlock(&stacks.lock);
	/* A taken slot is its owner's until it is unmapped: libc is between two calls for the same new stack. */
	if (s && addr > s->base && addr + bytes == s->base + r->slot_bytes &&
	    !(addr & (WF_PAGE - 1))) {
		base = s->base;
		if (WF_ARG2(f) == (PROT_READ | PROT_WRITE) &&
		    open_stack(s, r->slot_bytes, addr - base))
			return 0;
	}
	let_go(addr, bytes);
	if (base) /* what is below the stack must not be accessible, whatever was there before */
		(void)sys3(__NR_mprotect, base, addr - base, PROT_NONE);
	return lx_raw(f);
}

long sysc_munmap(struct wf_frame *f)
{
	uintptr_t addr = WF_ARG0(f);
	size_t bytes = WF_ARG1(f);
	struct region *r = NULL;
	struct slot *s;

	if (is_elsewhere(addr, bytes)) {
		count_unmapped(bytes);
		return lx_raw(f);
	}
	wf_spin_lock(&stacks.lock);
	s = slot_at(addr, &r);
	wf_spin_unlock(&stacks.lock);
	if (!s || s->base != addr || bytes != r->slot_bytes || !s->is_open ||
	    sys3(__NR_madvise, addr, bytes, MADV_DONTNEED) < 0) {
		let_go(addr, bytes);
		return lx_raw(f);
	}
	wf_spin_lock(&stacks.lock);
	s->state = SLOT_FREE;
	s->next = size_of(bytes)->free;
	size_of(bytes)->free = s;
	wf_spin_unlock(&stacks.lock);
	return 0;
}

long sysc_mremap(struct wf_frame *f)
{
	if (!is_elsewhere(WF_ARG0(f), WF_ARG1(f)))
		let_go(WF_ARG0(f), WF_ARG1(f));
	return lx_raw(f);
}
