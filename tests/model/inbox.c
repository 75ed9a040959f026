// SPDX-License-Identifier: Apache-2.0
/* The inbox of a worker: pushes from anywhere, takes from anywhere. */
#include "machine.h"
#include "model.h"

#include "tap.h"

#define NR_THREADS 3

static struct wf_worker worker;
static struct wf_thread threads[NR_THREADS];
static int taken[NR_THREADS], place[NR_THREADS], nr_taken;

static void take(void *arg)
{
	for (struct wf_thread *t = wf_inbox_take(&worker), *next; t; t = next) {
		next = t->next;
		taken[t - threads]++;
		place[t - threads] = nr_taken++;
	}
}

static void push_two(void *arg)
{
	wf_inbox_push(&worker, &threads[0]);
	wf_inbox_push(&worker, &threads[1]);
}

static void push_one(void *arg)
{
	wf_inbox_push(&worker, &threads[2]);
}

static void take_twice(void *arg)
{
	take(NULL);
	take(NULL);
}

static void setup(void)
{
	worker.inbox = NULL;
	for (int i = 0; i < NR_THREADS; i++)
		taken[i] = 0;
	(void)model_cpu("push two", push_two, NULL, NULL);
	(void)model_cpu("push one", push_one, NULL, NULL);
	(void)model_cpu("take", take, NULL, NULL);
	(void)model_cpu("take twice", take_twice, NULL, NULL);
}

static void check(void)
{
	take(NULL);
	for (int i = 0; i < NR_THREADS; i++)
		model_expect(taken[i] == 1, "a thread was not taken exactly once");
}

static const struct model inbox = { .setup = setup, .check = check, .bound = 4 };

TEST(every_pushed_thread_is_taken_once)
{
	model_verify(&inbox);
}

static void setup_pushers(void)
{
	worker.inbox = NULL;
	nr_taken = 0;
	for (int i = 0; i < NR_THREADS; i++)
		taken[i] = 0;
	(void)model_cpu("push two", push_two, NULL, NULL);
	(void)model_cpu("push one", push_one, NULL, NULL);
}

static void check_order(void)
{
	check();
	model_expect(place[0] < place[1], "of two that one CPU pushed the second came first");
}

static const struct model order = { .setup = setup_pushers, .check = check_order, .bound = 4 };

TEST(what_one_pushes_comes_in_that_order)
{
	model_verify(&order);
}

TEST(a_push_that_is_not_atomic_is_caught)
{
	model_catches(inbox, "wf_inbox_push", "cas");
}

TEST(a_take_that_is_not_atomic_is_caught)
{
	model_catches(inbox, "wf_inbox_take", "exchange");
}
