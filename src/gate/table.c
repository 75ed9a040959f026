// SPDX-License-Identifier: Apache-2.0
/*
 * The table of patched sites: see table.h.
 */
#include "gate/table.h"
#include "gate/jump.h"

#include "base/atomic.h"
#include "base/base.h"
#include "linux/abi.h"
#include "sys/syscall.h"

#define REACH ((1l << 31) - (1l << 20)) /* of a rel32, less than any module part matters */

extern char wf_gate_pool_start[] WF_HIDDEN;
extern char wf_gate_pool_end[] WF_HIDDEN;

static struct wf_batch *batches; /* (a) newest first; stored by the one who patches */

bool wf_gate_reaches(uintptr_t lo, uintptr_t hi, uintptr_t pool_lo, uintptr_t pool_hi)
{
	return (intptr_t)(WF_MAX(hi, pool_hi) - WF_MIN(lo, pool_lo)) < REACH;
}

/* --- filling --- */

static size_t capacity(const struct wf_batch *b)
{
	return (b->bytes - sizeof(*b)) / sizeof(b->sites[0]);
}

struct wf_batch *wf_table_new(size_t nr, uintptr_t pool, uintptr_t pool_hi)
{
	struct wf_batch *b;
	size_t bytes = WF_ALIGN_UP(sizeof(*b) + nr * sizeof(b->sites[0]), WF_PAGE);

	b = sys_map(bytes);
	if (!b)
		return NULL;
	b->is_gone = true;
	b->pool = pool;
	b->pool_hi = pool_hi;
	b->bytes = bytes;
	return b;
}

void wf_table_drop(struct wf_batch *b)
{
	sys_unmap(b, b->bytes);
}

struct wf_batch *wf_table_reuse(size_t nr, size_t pool_bytes, uintptr_t lo, uintptr_t hi)
{
	struct wf_batch *b = wf_load_acquire(&batches);

	for (; b; b = b->next)
		if (wf_load_relaxed(&b->is_gone) && capacity(b) >= nr &&
		    b->pool_hi - b->pool >= pool_bytes &&
		    wf_gate_reaches(lo, hi, b->pool, b->pool_hi))
			return b;
	return NULL;
}

void wf_table_fill(struct wf_batch *b, const struct wf_site_list *list)
{
	const struct wf_site *last = &list->sites[list->nr - 1];

	for (size_t i = 0; i < list->nr; i++)
		b->sites[i] = list->sites[i];
	b->nr = list->nr;
	b->lo = list->sites[0].window;
	b->hi = last->window + last->window_len;
}

void wf_table_publish(struct wf_batch *b)
{
	const struct wf_batch *known = batches;

	/* All that was written before is seen by who sees this; pairs with begin_look(). */
	wf_store_release(&b->is_gone, false);
	while (known && known != b)
		known = known->next;
	if (known)
		return;
	b->next = batches;
	/*
	 * A signal between the writing of the jumps and here finds no table, but nobody has run a
	 * trampoline yet. Pairs with the load-acquire of the readers.
	 */
	wf_store_release(&batches, b);
}

void wf_gate_forget(uintptr_t start, uintptr_t end)
{
	struct wf_batch *b = wf_load_acquire(&batches);

	for (; b; b = b->next) {
		if (wf_load_relaxed(&b->is_gone) || b->lo >= end || start >= b->hi)
			continue;
		wf_store_release(&b->is_gone, true);
		(void)wf_fetch_add(&b->generation, 1u); /* before any rewriting; see end_look() */
	}
}

/* --- questions of signal handlers --- */

static uint32_t begin_look(const struct wf_batch *b)
{
	return wf_load_acquire(&b->generation);
}

/* Nothing of b was rewritten since. */
static bool end_look(struct wf_batch *b, uint32_t generation)
{
	wf_fence_seq_cst(&b->generation);
	return wf_load_relaxed(&b->generation) == generation;
}

/* The last site whose word at this place of the structure is not above addr; or the first. */
static const struct wf_site *last_site(const struct wf_batch *b, size_t member, uintptr_t addr)
{
	size_t lo = 0;
	size_t hi = b->nr;

	while (hi - lo > 1) {
		size_t mid = (lo + hi) / 2;
		const char *site = (const char *)&b->sites[mid];

		if (*(const uintptr_t *)(site + member) <= addr)
			lo = mid;
		else
			hi = mid;
	}
	return &b->sites[lo];
}

/* Other code may lie where the module was, before anybody tells us that the module is gone. */
static bool is_in_force(const struct wf_site *site)
{
	uint8_t code[WF_JUMP_BYTES];

	return wf_arch_copy(code, (const void *)site->window, sizeof(code)) == 0 &&
	       wf_jump_target(code, site->window) == site->tramp;
}

uintptr_t wf_gate_to_tramp(uintptr_t rip)
{
	struct wf_batch *b = wf_load_acquire(&batches);

	for (; b; b = b->next) {
		uint32_t generation = begin_look(b);
		struct wf_site site;

		if (wf_load_acquire(&b->is_gone) || rip < b->lo || rip >= b->hi)
			continue;
		site = *last_site(b, offsetof(struct wf_site, window), rip);
		if (!end_look(b, generation) || rip - site.window >= site.window_len ||
		    !is_in_force(&site))
			continue;
		if (rip <= site.addr)
			return site.tramp + (rip - site.window);
		if (rip >= site.addr + WF_SYSCALL_LEN)
			return site.resume + (rip - site.addr - WF_SYSCALL_LEN);
		return rip;
	}
	return rip;
}

uintptr_t wf_gate_from_tramp(uintptr_t rip)
{
	struct wf_batch *b = wf_load_acquire(&batches);

	for (; b; b = b->next) {
		uint32_t generation = begin_look(b);
		struct wf_site site;

		if (rip < b->pool || rip >= b->pool_hi)
			continue;
		site = *last_site(b, offsetof(struct wf_site, tramp), rip);
		if (!end_look(b, generation) || rip < site.tramp || rip >= site.tramp_end)
			return 0; /* the stub, or no code any more */
		if (rip <= site.entry)
			return site.window + (rip - site.tramp);
		if (rip < site.resume)
			return 0;
		return WF_MIN(site.addr + WF_SYSCALL_LEN + (rip - site.resume),
			      site.window + site.window_len);
	}
	return rip;
}

bool wf_gate_in_pool(uintptr_t rip)
{
	const struct wf_batch *b = wf_load_acquire(&batches);

	if (rip >= (uintptr_t)wf_gate_pool_start && rip < (uintptr_t)wf_gate_pool_end)
		return true;
	for (; b; b = b->next)
		if (rip >= b->pool && rip < b->pool_hi)
			return true;
	return false;
}
