// SPDX-License-Identifier: Apache-2.0
/* The three places in which rules are tried; see rules.h. */
#include "rules.h"

#include "../native.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <weft/weft.h>

#define FIBER_THREADS 3
#define FIBERS_EACH (RULE_NR / FIBER_THREADS)
#define STACK_BYTES ((size_t)1 << 20)

/* --- waits --- */

/* Whoever gives here parks until one of two threads has come to take it. They go on to the end, when objects are destroyed. */
static weft_chan *calls;
static pthread_once_t are_answered = PTHREAD_ONCE_INIT;
static int nr_waits;

static int answers(void *arg)
{
	(void)arg;
	for (;;)
		(void)weft_chan_take(calls, WEFT_NEVER);
	return 0;
}

static void start_answers(void)
{
	calls = weft_chan_new(0, 0, "calls");
	for (int i = 0; i < 2; i++)
		CHECK_EQ(weft_thread_spawn(answers, NULL, NULL, NULL), 0);
}

/* Three ways to lose the processor: for another thread, for a time, for politeness. */
void rule_wait(void)
{
	switch (__atomic_fetch_add(&nr_waits, 1, __ATOMIC_RELAXED) % 4) {
	case 0:
		(void)weft_sleep_until(weft_now() + 10 * WEFT_US);
		break;
	case 1:
		(void)sched_yield();
		break;
	default:
		(void)weft_chan_give(calls, WEFT_NEVER);
	}
}

void rule_turn(void)
{
	rule_wait();
	if (weft_fiber_self())
		(void)weft_fiber_yield(NULL);
}

void rule_stack(char **out_low, char **out_high)
{
	void *low = NULL, *high = NULL, *sp;
	pthread_attr_t attr;
	size_t bytes = 0;

	if (weft_fiber_self()) {
		weft_fiber_stack(weft_fiber_self(), &low, &high, &sp);
	} else if (CHECK_EQ(pthread_getattr_np(pthread_self(), &attr), 0)) {
		CHECK_EQ(pthread_attr_getstack(&attr, &low, &bytes), 0);
		high = (char *)low + bytes;
		pthread_attr_destroy(&attr);
	}
	*out_low = low;
	*out_high = high;
}

/* --- places --- */

static void (*running)(int nr);
static int nr_run[RULE_NR];

static void act(int nr)
{
	running(nr);
	(void)__atomic_fetch_add(&nr_run[nr], 1, __ATOMIC_RELAXED);
}

static int is_a_thread(void *arg)
{
	act((int)(intptr_t)arg);
	return 0;
}

static void run_threads(void)
{
	const struct weft_thread_opts opts = { .size = sizeof(opts), .stack_bytes = STACK_BYTES };
	weft_group g = { .name = "threads", .policy = WEFT_EACH, .opts = &opts };

	for (intptr_t nr = 0; nr < RULE_NR; nr++)
		CHECK_EQ(weft_group_go(&g, is_a_thread, (void *)nr), 0);
	CHECK_EQ(weft_group_wait(&g), 0);
}

static void is_a_task(void *arg)
{
	act((int)(intptr_t)arg);
}

static void run_tasks(void)
{
	weft_task t[RULE_NR];

	for (intptr_t nr = 0; nr < RULE_NR; nr++)
		weft_task_fork(&t[nr], is_a_task, (void *)nr);
	for (int nr = RULE_NR; nr-- > 0;)
		weft_task_join(&t[nr]);
}

static void *is_a_fiber(void *first)
{
	act((int)(intptr_t)first);
	return NULL;
}

/* A thread whose fibers take turns until all of them are done. */
static int resumes_fibers(void *arg)
{
	const struct weft_fiber_opts opts = { .size = sizeof(opts), .stack_bytes = STACK_BYTES };
	intptr_t first = (intptr_t)arg;
	weft_fiber *f[FIBERS_EACH];
	int nr_done = 0;

	for (int i = 0; i < FIBERS_EACH; i++) {
		f[i] = weft_fiber_new(is_a_fiber, &opts);
		if (!CHECK(f[i] != NULL))
			return -ENOMEM;
	}
	for (int i = 0; nr_done < FIBERS_EACH; i = (i + 1) % FIBERS_EACH) {
		if (weft_fiber_is_done(f[i]))
			continue;
		(void)weft_fiber_resume(f[i], (void *)(first + i));
		nr_done += weft_fiber_is_done(f[i]);
	}
	for (int i = 0; i < FIBERS_EACH; i++)
		weft_fiber_free(f[i]);
	return 0;
}

static void run_fibers(void)
{
	weft_group g = { .name = "with fibers", .policy = WEFT_EACH };

	for (intptr_t i = 0; i < FIBER_THREADS; i++)
		CHECK_EQ(weft_group_go(&g, resumes_fibers, (void *)(i * FIBERS_EACH)), 0);
	CHECK_EQ(weft_group_wait(&g), 0);
}

static void (*running_beside)(enum rule_place place);

static int is_beside(void *arg)
{
	running_beside((enum rule_place)(intptr_t)arg);
	return 0;
}

void rule_run(enum rule_place place, void (*fn)(int nr), void (*beside)(enum rule_place place))
{
	weft_group g = { .name = "beside", .policy = WEFT_EACH };

	running = fn;
	running_beside = beside;
	memset(nr_run, 0, sizeof(nr_run));
	pthread_once(&are_answered, start_answers);
	if (beside)
		CHECK_EQ(weft_group_go(&g, is_beside, (void *)(intptr_t)place), 0);
	if (place == IN_THREADS)
		run_threads();
	else if (place == IN_TASKS)
		run_tasks();
	else
		run_fibers();
	CHECK_EQ(weft_group_wait(&g), 0);
	for (int nr = 0; nr < RULE_NR; nr++)
		CHECK_EQ(nr_run[nr], 1);
}

/* --- how it is run --- */

/* RULES_MALLOC: a function that only the allocator has which this run is about. */
const char *rule_lack(void)
{
	const char *malloc_name = getenv("RULES_MALLOC");

	if (malloc_name && *malloc_name && !dlsym(RTLD_DEFAULT, malloc_name))
		return "this allocator is not installed";
	return NULL;
}

static int first_cpu;

static void goes_elsewhere(int nr)
{
	if (nr == 0)
		first_cpu = sched_getcpu();
	while (nr == 0 && sched_getcpu() == first_cpu)
		rule_wait();
}

/* What all the rest relies on; threads that never leave their worker would keep any rule. */
TEST(a_wait_may_end_on_another_processor)
{
	cpu_set_t usable;

	if (is_native_run())
		SKIP("the kernel's threads move as it likes");
	if (rule_lack())
		SKIP(rule_lack());
	if (sched_getaffinity(0, sizeof(usable), &usable) < 0 || CPU_COUNT(&usable) < 2)
		SKIP("one processor");
	rule_run(IN_THREADS, goes_elsewhere, NULL);
}
