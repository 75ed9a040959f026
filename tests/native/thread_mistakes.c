// SPDX-License-Identifier: Apache-2.0
/* weft/thread.h: mistakes with handles. */
#include <weft/weft.h>

#include "dies.h"
#include "spawned.h"

static void joins_twice(void)
{
	weft_thread *t;

	weft_thread_set_name("main-one");
	weft_thread_spawn(returns, NULL, NULL, &t);
	weft_thread_join(t, NULL, WEFT_NEVER);
	weft_thread_join(t, NULL, WEFT_NEVER);
}

static void joins_twice_with_another_between(void)
{
	weft_thread *t, *other;

	weft_thread_spawn(returns, NULL, NULL, &t);
	weft_thread_join(t, NULL, WEFT_NEVER);
	weft_thread_spawn(waits_for_go, NULL, NULL, &other);
	weft_thread_join(t, NULL, WEFT_NEVER);
}

static int joins_own_handle(void *arg)
{
	(void)arg;
	weft_thread_set_name("selfish");
	return weft_thread_join(weft_thread_self(), NULL, WEFT_NEVER);
}

static void joins_itself(void)
{
	weft_thread *t;

	weft_thread_spawn(joins_own_handle, NULL, NULL, &t);
	weft_thread_join(t, NULL, WEFT_NEVER);
}

static int joins(void *t)
{
	return weft_thread_join(t, NULL, WEFT_NEVER);
}

static void joins_beside_another(void)
{
	struct weft_thread_opts opts = { .size = sizeof(opts), .name = "joined" };
	weft_thread *t, *a, *b;

	sem_init(&ready, 0, 0);
	sem_init(&go, 0, 0);
	weft_thread_spawn(waits_for_go, NULL, &opts, &t);
	opts.name = "joiner";
	weft_thread_spawn(joins, t, &opts, &a);
	weft_thread_spawn(joins, t, &opts, &b);
	weft_thread_join(a, NULL, WEFT_NEVER);
}

static void joins_nobody(void)
{
	weft_thread_join(NULL, NULL, WEFT_NEVER);
}

TEST(mistakes_end_the_process_with_both_names)
{
	CHECK_DIES(joins_twice, "weft_thread_join() by thread 'main-one': the handle 0x",
		   "is gone: its thread was joined");
	CHECK_DIES(joins_twice_with_another_between, "is gone: its thread was joined");
	CHECK_DIES(joins_itself, "weft_thread_join() by thread 'selfish': it joins itself");
	CHECK_DIES(joins_beside_another,
		   "by thread 'joiner': thread 'joined' is joined by thread 'joiner' already");
	CHECK_DIES(joins_nobody, "is none");
}
