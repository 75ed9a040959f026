// SPDX-License-Identifier: Apache-2.0
/* sched/thread: the table of threads; mem/slab: the objects that preempted threads are saved in. */
#include "mem/slab.h"
#include "sched/thread.h"

#include <string.h>

#include "tap.h"

#define NR 1000

static struct wf_thread *threads[NR];

static void start(void)
{
	wf_thread_table_init(sizeof(struct wf_thread) + 40);
}

TEST(tids_are_unique_and_found)
{
	int nr_bad = 0;

	start();
	for (int i = 0; i < NR; i++) {
		threads[i] = wf_thread_new();
		nr_bad += !threads[i] || wf_thread_by_tid(threads[i]->tid) != threads[i];
		nr_bad += threads[i]->tid < WF_TID_BASE || threads[i]->tid >= WF_TID_END;
		nr_bad += wf_state_of(threads[i]->state) != WF_NEW;
		for (int j = 0; j < i; j++)
			nr_bad += threads[j]->tid == threads[i]->tid;
	}
	CHECK_EQ(nr_bad, 0);
	CHECK_EQ(wf_thread_slots(), NR);
	CHECK(wf_thread_slot(7) == threads[7]);
}

TEST(a_dead_thread_is_not_found)
{
	struct wf_thread *t;
	uint32_t tid;

	start();
	t = wf_thread_new();
	tid = t->tid;
	t->state = WF_DEAD;
	CHECK(!wf_thread_by_tid(tid));
	wf_thread_free(t);
	CHECK(!wf_thread_by_tid(tid));
	CHECK(!wf_thread_by_tid(0));
	CHECK(!wf_thread_by_tid(WF_TID_BASE - 1));
	CHECK(!wf_thread_by_tid(UINT32_MAX));
	CHECK(!wf_thread_by_tid(tid + 1));
}

TEST(a_slot_is_reused_under_another_tid)
{
	struct wf_thread *t, *again;
	uint32_t tid, generation;

	start();
	t = wf_thread_new();
	tid = t->tid;
	generation = t->generation;
	wf_thread_free(t);
	again = wf_thread_new();
	CHECK(again == t);
	CHECK_EQ(again->generation, generation + 1);
	CHECK(again->tid != tid);
	CHECK(!wf_thread_by_tid(tid));
	CHECK(wf_thread_by_tid(again->tid) == again);
	CHECK_EQ(wf_thread_slots(), 1);
}

TEST(a_tid_does_not_come_back_for_many_generations)
{
	uint32_t first, nr_bad = 0;

	start();
	first = wf_thread_new()->tid;
	wf_thread_free(wf_thread_slot(0));
	for (uint32_t i = 1; i < WF_TID_GENERATIONS; i++) {
		struct wf_thread *t = wf_thread_new();

		nr_bad += t->tid == first;
		wf_thread_free(t);
	}
	CHECK_EQ(nr_bad, 0);
	CHECK_EQ(wf_thread_new()->tid, first);
}

TEST(slab_objects_are_apart_and_reused_last_first)
{
	static struct wf_slab slab;
	static char *objects[NR];
	int nr_bad = 0;

	wf_slab_init(&slab, 100);
	CHECK_EQ(slab.object_bytes, 128);
	for (int i = 0; i < NR; i++) {
		objects[i] = wf_slab_get(&slab);
		nr_bad += !objects[i] || (uintptr_t)objects[i] % 64;
		memset(objects[i], i, 128);
	}
	for (int i = 0; i < NR; i++)
		nr_bad += objects[i][0] != (char)i || objects[i][127] != (char)i;
	CHECK_EQ(nr_bad, 0);
	CHECK_EQ(slab.nr_made, NR);
	wf_slab_put(&slab, NULL);
	wf_slab_put(&slab, objects[3]);
	wf_slab_put(&slab, objects[5]);
	CHECK(wf_slab_get(&slab) == objects[5]);
	CHECK(wf_slab_get(&slab) == objects[3]);
	CHECK_EQ(slab.nr_made, NR);
}

TEST(slab_objects_that_fill_no_chunk_exactly_are_apart)
{
	static struct wf_slab slab;
	static char *objects[NR];
	int nr_bad = 0;

	wf_slab_init(&slab, 8 * 300);
	for (int i = 0; i < NR; i++) {
		objects[i] = wf_slab_get(&slab);
		memset(objects[i], i, 8 * 300);
		nr_bad += objects[i] + 8 * 300 > slab.fresh_end;
	}
	for (int i = 0; i < NR; i++)
		nr_bad += objects[i][0] != (char)i || objects[i][8 * 300 - 1] != (char)i;
	CHECK_EQ(nr_bad, 0);
}

TEST(slab_serves_objects_larger_than_its_chunks)
{
	static struct wf_slab slab;
	char *a, *b;

	wf_slab_init(&slab, 1 << 20);
	a = wf_slab_get(&slab);
	b = wf_slab_get(&slab);
	if (!CHECK(a && b && a != b) || !CHECK(b + (1 << 20) <= slab.fresh_end))
		return;
	memset(a, 1, 1 << 20);
	memset(b, 2, 1 << 20);
	CHECK_EQ(a[(1 << 20) - 1], 1);
}
