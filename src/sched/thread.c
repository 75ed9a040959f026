// SPDX-License-Identifier: Apache-2.0
/*
 * The thread table: one reserved mapping, slots handed out LIFO so that a fresh thread is cache-warm. It becomes
 * memory as it fills.
 *
 * A tid is WF_TID_BASE + generation * WF_MAX_THREADS + index, so a tid is not reused before its slot was
 * used WF_TID_GENERATIONS times. Both are shifted by what the process is: locks that processes share note their
 * owner by its tid, so another process's thread must not have one of ours. The bits of the process's ID go into the
 * index in reverse: two processes whose IDs are less than 4,096 apart and which have up to 256 threads each never
 * have a tid in common; farther away a few generations of one slot may meet.
 */
#include "sched/thread.h"
#include "base/die.h"
#include "sched/runtime.h"
#include "sys/syscall.h"

struct wf_thread_table wf_thread_table;

#define table wf_thread_table
/* A small stack: where the addresses are limited, so many threads as fit between them and no more. */
#define BYTES_BESIDE (32ul << 10)
#define SLOTS_PER_STEP                                                                             \
	512 /* whole pages, whatever the size of a slot, which is one of cache lines */

_Static_assert(WF_MAX_THREADS % SLOTS_PER_STEP == 0, "the last step is whole");

static uint32_t reversed(uint32_t n, int bits)
{
	uint32_t r = 0;

	for (; bits > 0; bits--, n >>= 1)
		r = r << 1 | (n & 1);
	return r;
}

void wf_thread_table_init(size_t object_bytes)
{
	uint32_t pid = (uint32_t)sys0(__NR_getpid);

	wf_thread_table_done(); /* the one of the process that forked this one */
	table = (struct wf_thread_table){
		.object_bytes = WF_ALIGN_UP(object_bytes, (size_t)WF_CACHE_LINE),
		.max_slots = sys_room_for(BYTES_BESIDE, SLOTS_PER_STEP, WF_MAX_THREADS),
		.index_salt = reversed(pid, __builtin_ctz(WF_MAX_THREADS)),
		.generation_salt = (pid >> 12) * 37 % WF_TID_GENERATIONS,
	};
	table.slots = sys_reserve(table.object_bytes * table.max_slots);
}

void wf_thread_table_done(void)
{
	sys_unmap(table.slots, table.object_bytes * table.max_slots);
	table = (struct wf_thread_table){ 0 };
}

struct wf_thread *wf_thread_slot(uint32_t index)
{
	return (struct wf_thread *)(table.slots + index * table.object_bytes);
}

uint32_t wf_thread_slots(void)
{
	return wf_load_acquire(&table.nr_slots);
}

/* In atomic words: who holds an old pointer to the slot (the monitor, a thief) may look at any time. */
static void clear(struct wf_thread *t)
{
	uint64_t *words = (uint64_t *)t;

	for (size_t i = 0; i < sizeof(*t) / sizeof(*words); i++)
		wf_store_relaxed(&words[i], 0u);
}

/* Under the lock. */
static bool may_take_fresh(void)
{
	if (!table.slots || table.nr_slots == table.max_slots)
		return false;
	if (table.nr_slots % SLOTS_PER_STEP)
		return true;
	return sys_commit(wf_thread_slot(table.nr_slots), SLOTS_PER_STEP * table.object_bytes) == 0;
}

/* Of ten thousand threads made in a row each has left the caches since its slot was used: the next one is on its way. */
static void prefetch(const struct wf_thread *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < table.object_bytes; i += WF_CACHE_LINE)
		__builtin_prefetch((const char *)t + i, 1);
}

struct wf_thread *wf_thread_new(void)
{
	struct wf_thread *t;
	uint32_t index, generation;

	wf_spin_lock(&table.lock);
	t = table.free;
	if (t) {
		table.free = t->next;
		prefetch(t->next);
	} else if (may_take_fresh()) {
		t = wf_thread_slot(table.nr_slots);
		t->index = table.nr_slots;
		wf_store_release(&table.nr_slots, table.nr_slots + 1);
	}
	wf_spin_unlock(&table.lock);
	if (!t)
		return NULL;
	index = t->index;
	generation = t->generation + 1;
	clear(t);
	t->index = index;
	t->level = WF_LEVEL_NORMAL;
	t->slice_left = (int32_t)wf_rt.slice_ns;
	wf_store_relaxed(&t->state, WF_NEW);
	t->tid = WF_TID_BASE +
		 (generation + table.generation_salt) % WF_TID_GENERATIONS * WF_MAX_THREADS +
		 (t->index ^ table.index_salt);
	wf_store_release(&t->generation, generation);
	return t;
}

void wf_thread_free(struct wf_thread *t)
{
	wf_spin_lock(&table.lock);
	wf_store_release(&t->state, WF_FREE);
	t->next = table.free;
	table.free = t;
	wf_spin_unlock(&table.lock);
}

static uint32_t index_of(uint32_t tid)
{
	return tid % WF_MAX_THREADS ^ table.index_salt;
}

bool wf_thread_is_our_tid(uint32_t tid)
{
	return tid >= WF_TID_BASE && index_of(tid) < wf_thread_slots();
}

struct wf_thread *wf_thread_by_tid(uint32_t tid)
{
	struct wf_thread *t;
	enum wf_state s;

	if (!wf_thread_is_our_tid(tid))
		return NULL;
	t = wf_thread_slot(index_of(tid));
	s = wf_state_of(wf_load_acquire(&t->state));
	return wf_load_relaxed(&t->tid) == tid && s != WF_FREE && s != WF_DEAD ? t : NULL;
}
