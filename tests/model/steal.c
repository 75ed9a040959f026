// SPDX-License-Identifier: Apache-2.0
/* The run queue under its owner and a thief at the same time. */
#include "machine.h"
#include "model.h"

#include "tap.h"

#define NR_THREADS 3

static struct wf_runq mine, theirs[2];
static struct wf_thread threads[NR_THREADS];
static int popped[NR_THREADS];

static void count(struct wf_thread *t)
{
	if (t)
		popped[t - threads]++;
}

static void pop_twice_push_one(void *arg)
{
	bool new_slice;

	count(wf_runq_pop(&mine, &new_slice));
	wf_runq_push(&mine, &threads[2], WF_PLACE_HANDOFF);
	count(wf_runq_pop(&mine, &new_slice));
}

static void steal_and_pop(void *arg)
{
	struct wf_runq *own = arg;
	bool new_slice;
	uint32_t n = wf_runq_steal(own, &mine, WF_GREED_HANDOFF, NULL, WF_LEAVE_NONE);

	model_expect(wf_runq_nr(own) == n, "the loot is not what the thief was told");
	count(wf_runq_pop(own, &new_slice));
}

static void setup(void)
{
	mine = (struct wf_runq){ 0 };
	theirs[0] = theirs[1] = (struct wf_runq){ 0 };
	for (int i = 0; i < NR_THREADS; i++) {
		threads[i] = (struct wf_thread){ .level = WF_LEVEL_NORMAL };
		popped[i] = 0;
	}
	wf_runq_push(&mine, &threads[0], WF_PLACE_TAIL);
	wf_runq_push(&mine, &threads[1], WF_PLACE_YIELDED);
	(void)model_cpu("owner", pop_twice_push_one, NULL, NULL);
	(void)model_cpu("thief", steal_and_pop, &theirs[0], NULL);
	(void)model_cpu("thief 2", steal_and_pop, &theirs[1], NULL);
}

static void check(void)
{
	struct wf_runq *const all[] = { &mine, &theirs[0], &theirs[1] };
	bool new_slice;

	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		model_expect(!all[i]->lock.held, "a lock stayed held");
		for (int n = 0; n < NR_THREADS && !all[i]->lock.held && wf_runq_nr(all[i]); n++)
			count(wf_runq_pop(all[i], &new_slice));
	}
	for (int i = 0; i < NR_THREADS; i++)
		model_expect(popped[i] == 1, "a thread was not popped exactly once");
}

static const struct model queue = { .setup = setup, .check = check, .bound = 3 };

TEST(owner_and_thieves_share_without_loss)
{
	model_verify(&queue);
}

TEST(a_lock_that_is_not_atomic_is_caught)
{
	model_catches(queue, "wf_spin_lock", "exchange");
	model_catches(queue, "wf_spin_trylock", "exchange");
}
