// SPDX-License-Identifier: Apache-2.0
/* The deque of tasks under its owner and thieves, a join of a task that is being stolen, and the last look of a thief that sleeps. */
#include "model.h"
#include "native/deque.h"
#include "native/take.h"
#include "weft/task.h"

#include "tap.h"

#define NR_TASKS 4
#define SLOTS 4

static struct {
	struct wf_ring head;
	struct weft_task *slots[2 * SLOTS];
} rings[2];
static struct wf_deque deque;
static weft_task tasks[NR_TASKS];
static int taken[NR_TASKS];

static void take(weft_task *t)
{
	if (t)
		taken[t - tasks]++;
}

static void push(int i)
{
	wf_task_of(&tasks[i])->place = wf_deque_bottom(&deque);
	if (wf_deque_push(&deque, &tasks[i]))
		return;
	model_expect(deque.ring == &rings[0].head, "there is room in the large ring");
	wf_deque_grow(&deque, &rings[1].head);
	model_expect(wf_deque_push(&deque, &tasks[i]), "there is room now");
}

static void steal(void *arg)
{
	weft_task *t = NULL;

	if (wf_deque_steal(&deque, &t) == WF_DEQUE_SOME) {
		model_expect(t, "a thief got nothing");
		take(t);
	}
}

static void prepare(int64_t slots)
{
	rings[0].head = (struct wf_ring){ .mask = slots - 1 };
	rings[1].head = (struct wf_ring){ .mask = 2 * SLOTS - 1 };
	deque = (struct wf_deque){ .ring = &rings[0].head };
	for (int i = 0; i < NR_TASKS; i++)
		taken[i] = 0;
}

static void take_the_rest(void)
{
	for (int i = 0; i < NR_TASKS; i++)
		take(wf_deque_pop(&deque));
}

static void check(void)
{
	take_the_rest();
	for (int i = 0; i < NR_TASKS; i++)
		model_expect(taken[i] == 1, "a task was not taken exactly once");
}

/* --- the deque --- */

static void pop_push_pop(void *arg)
{
	take(wf_deque_pop(&deque));
	take(wf_deque_pop(&deque));
	push(2);
	take(wf_deque_pop(&deque));
	push(3);
	take(wf_deque_pop(&deque));
}

static void steal_twice(void *arg)
{
	steal(arg);
	steal(arg);
}

static void setup_thieves(void)
{
	prepare(SLOTS);
	push(0);
	push(1);
	(void)model_cpu("owner", pop_push_pop, NULL, NULL);
	(void)model_cpu("thief", steal_twice, NULL, NULL);
	(void)model_cpu("thief 2", steal_twice, NULL, NULL);
}

static const struct model thieves = { .setup = setup_thieves, .check = check, .bound = 3 };

TEST(owner_and_thieves_take_each_task_once)
{
	model_verify(&thieves);
}

TEST(a_pop_that_does_not_fence_is_caught)
{
	model_catches(thieves, "wf_deque_pop", "fence");
}

TEST(a_last_task_that_is_not_taken_by_compare_and_swap_is_caught)
{
	model_catches(thieves, "wf_deque_pop", "cas");
	model_catches(thieves, "wf_deque_steal", "cas");
}

/* As weft_task_join(): what was not taken here was stolen. */
static void join_one(int i)
{
	weft_task *x = wf_deque_pop(&deque);

	if (x && x != &tasks[i])
		wf_take_back(&deque, x);
	if (x == &tasks[i] || wf_take_task(&deque, &tasks[i]))
		take(&tasks[i]);
}

static void join_in_order(void *arg)
{
	for (int i = 0; i < 3; i++)
		join_one(i);
}

static void join_from_middle(void *arg)
{
	join_one(1);
	join_one(0);
	join_one(2);
}

static void begin_joins(void (*owner)(void *))
{
	prepare(SLOTS);
	taken[3] = 1;
	for (int i = 0; i < 3; i++)
		push(i);
	(void)model_cpu("owner", owner, NULL, NULL);
	(void)model_cpu("thief", steal_twice, NULL, NULL);
	(void)model_cpu("thief 2", steal, NULL, NULL);
}

static void setup_in_order(void)
{
	begin_joins(join_in_order);
}

static void setup_from_middle(void)
{
	begin_joins(join_from_middle);
}

/* The owner has joined all: nothing is left that a thief has not got. */
static void check_joins(void)
{
	for (int i = 0; i < NR_TASKS; i++)
		model_expect(taken[i] == 1, "a task was not taken exactly once");
	model_expect(!wf_deque_has_any(&deque), "a task that was joined is in the deque");
}

static const struct model in_order = { .setup = setup_in_order, .check = check_joins, .bound = 3 };
static const struct model from_middle = { .setup = setup_from_middle,
					  .check = check_joins,
					  .bound = 3 };

TEST(an_owner_that_joins_in_order_takes_the_one_it_joins)
{
	model_verify(&in_order);
}

TEST(an_owner_that_joins_one_from_the_middle_puts_back_the_others)
{
	model_verify(&from_middle);
}

TEST(an_oldest_task_that_is_not_taken_by_compare_and_swap_is_caught)
{
	model_catches(in_order, "wf_deque_take_at", "cas");
}

static void push_beyond_the_ring(void *arg)
{
	push(1);
	push(2);
	push(3);
	take(wf_deque_pop(&deque));
	take(wf_deque_pop(&deque));
}

static void setup_growing(void)
{
	prepare(2);
	push(0);
	(void)model_cpu("owner", push_beyond_the_ring, NULL, NULL);
	(void)model_cpu("thief", steal_twice, NULL, NULL);
}

static const struct model growing = { .setup = setup_growing, .check = check, .bound = 4 };

TEST(a_ring_grows_under_thieves)
{
	model_verify(&growing);
}

/* --- the join --- */

static uint64_t word;
static struct wf_joiner joiner;
static bool has_run, has_joined;

static bool is_woken(void *arg)
{
	return joiner.is_done;
}

/* As weft_task_join() and wf_crew_wait(). */
static void join_the_last(void *arg)
{
	weft_task *t = wf_deque_pop(&deque);

	if (t) {
		take(t);
		has_run = true;
	} else if (wf_load_acquire(&word) != WF_JOIN_DONE && wf_join_begin(&word, &joiner)) {
		(void)model_wait(is_woken, NULL, WF_NEVER);
		model_expect(wf_load_acquire(&joiner.is_done), "woken before it was done");
	}
	model_expect(has_run, "joined before it has run");
	has_joined = true;
}

/* As wf_task_run(). */
static void steal_and_finish(void *arg)
{
	weft_task *t = NULL;
	struct wf_joiner *j;

	if (wf_deque_steal(&deque, &t) != WF_DEQUE_SOME)
		return;
	take(t);
	model_expect(!has_joined, "joined, and what it used is gone");
	has_run = true;
	j = wf_join_finish(&word);
	if (j) {
		model_expect(!has_joined, "the joiner is gone, and is woken");
		wf_store_release(&j->is_done, 1u);
	}
}

static void setup_join(void)
{
	prepare(SLOTS);
	taken[1] = taken[2] = taken[3] = 1;
	word = WF_JOIN_FORKED;
	joiner = (struct wf_joiner){ 0 };
	has_run = has_joined = false;
	push(0);
	(void)model_cpu("owner", join_the_last, NULL, NULL);
	(void)model_cpu("thief", steal_and_finish, NULL, NULL);
	(void)model_cpu("thief 2", steal_and_finish, NULL, NULL);
}

static void check_join(void)
{
	model_expect(has_joined, "it waits for ever");
	model_expect(taken[0] == 1, "it was not taken exactly once");
}

static const struct model join = { .setup = setup_join, .check = check_join, .bound = 4 };

TEST(a_join_returns_when_the_task_is_done_whoever_has_it)
{
	model_verify(&join);
}

TEST(a_join_that_tears_the_word_is_caught)
{
	model_catches(join, "wf_join_begin", "cas");
	model_catches(join, "wf_join_finish", "exchange");
}

/* --- to sleep, or not --- */

static uint32_t calls;
static bool has_called, may_sleep;

static bool is_any(void)
{
	return wf_deque_has_any(&deque);
}

static void fork_one(void *arg)
{
	push(0);
	has_called = wf_load_relaxed(&calls);
}

static void sleep_if_none(void *arg)
{
	may_sleep = wf_deque_may_sleep(&calls, model_membarrier, is_any);
}

static void no_barrier(void)
{
}

static void sleep_without_barrier(void *arg)
{
	may_sleep = wf_deque_may_sleep(&calls, no_barrier, is_any);
}

/* As weft_task_join() of the one in the middle: the youngest steps aside meanwhile, the oldest would be taken by its place. */
static void join_beside_another(void *arg)
{
	join_one(1);
	has_called = wf_take_must_call(&deque, &calls);
}

/* The oldest is stolen, and while the youngest is set aside there is none. */
static void steal_then_sleep(void *arg)
{
	steal(arg);
	sleep_if_none(arg);
}

static void setup_sleep_beside_join(void)
{
	prepare(SLOTS);
	calls = 0;
	has_called = may_sleep = false;
	for (int i = 0; i < 3; i++)
		push(i);
	(void)model_cpu("joins", join_beside_another, NULL, NULL);
	(void)model_cpu("crew", steal_then_sleep, NULL, NULL);
}

static void setup_sleep(void)
{
	prepare(SLOTS);
	calls = 0;
	has_called = may_sleep = false;
	(void)model_cpu("forks", fork_one, NULL, NULL);
	(void)model_cpu("crew", sleep_if_none, NULL, NULL);
}

static void setup_sleep_without_barrier(void)
{
	prepare(SLOTS);
	calls = 0;
	has_called = may_sleep = false;
	(void)model_cpu("forks", fork_one, NULL, NULL);
	(void)model_cpu("crew", sleep_without_barrier, NULL, NULL);
}

static void check_sleep(void)
{
	model_expect(has_called || !may_sleep, "a task waits beside a crew that sleeps");
}

static const struct model sleeps = { .setup = setup_sleep, .check = check_sleep, .bound = 4 };
static const struct model sleeps_unsafely = { .setup = setup_sleep_without_barrier,
					      .check = check_sleep,
					      .bound = 4 };

static const struct model sleeps_beside_join = { .setup = setup_sleep_beside_join,
						 .check = check_sleep,
						 .bound = 4 };

TEST(no_task_waits_beside_a_crew_that_sleeps)
{
	model_verify(&sleeps);
	model_verify(&sleeps_beside_join);
}

TEST(a_last_look_without_a_barrier_is_caught)
{
	CHECK(model_explore(&sleeps_unsafely).has_failed);
}
