// SPDX-License-Identifier: Apache-2.0
/*
 * The victim of test_fibers.py: its main thread has fibers in all states, "heir" comes after a thread that has left one, and one of
 * its own is freed elsewhere; "many" has many; in "crossed" one waits
 * for a fiber that has gone to the thread's own stack. Says "ready" and its number, and ends at the end of its
 * input. With an argument this is a child of fork(), made on a fiber.
 */
#include <weft/weft.h>

#include "threads.h"

#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#define MANY 100
#define CROWD 1500

static bool forks;
static weft_event reading, given, has_many, has_crossed, is_crowded, never;
static weft_fiber *gift;

static __attribute__((noinline)) void deep(void *arg)
{
	while (!arg)
		arg = weft_fiber_yield(arg);
}

static void *yields(void *arg)
{
	deep(arg);
	return &never;
}

static void *ends(void *arg)
{
	return arg;
}

static void *transfers(void *arg)
{
	(void)weft_fiber_transfer(NULL, arg);
	return &never;
}

static weft_fiber *make(void *(*fn)(void *first), const char *name)
{
	struct weft_fiber_opts o = { .size = sizeof(o), .name = name };
	weft_fiber *f;

	if (fn == yields) /* so that the core of many is small */
		o.stack_bytes = WEFT_FIBER_MIN_STACK;
	f = weft_fiber_new(fn, &o);
	if (!f)
		_exit(2);
	return f;
}

static void *leaves(void *arg)
{
	(void)weft_fiber_resume(make(yields, "left by a thread"), NULL);
	return arg;
}

static void *inherits(void *arg)
{
	pthread_setname_np(pthread_self(), "heir");
	gift = make(yields, "given away");
	(void)weft_fiber_resume(gift, NULL);
	(void)weft_fiber_resume(make(yields, "heir's"), NULL);
	weft_event_set(&given);
	(void)weft_event_wait(&never, WEFT_NEVER);
	return arg;
}

static void *makes_many(void *arg)
{
	weft_fiber *all[MANY];

	pthread_setname_np(pthread_self(), "many");
	/* Those that go make room, and what is made in it is found. */
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < MANY; i++)
			all[i] = make(yields, "one of many");
		for (int i = 0; i < MANY && !round; i++)
			weft_fiber_free(all[i]);
	}
	for (int i = 0; i < MANY; i++)
		(void)weft_fiber_resume(all[i], NULL);
	weft_event_set(&has_many);
	(void)weft_event_wait(&never, WEFT_NEVER);
	return arg;
}

static void *crosses_in(void *arg)
{
	(void)weft_fiber_resume(make(transfers, "transfers"), arg);
	return &never;
}

static void *crosses(void *arg)
{
	pthread_setname_np(pthread_self(), "crossed");
	(void)weft_fiber_transfer(make(crosses_in, "waits"), arg);
	weft_event_set(&has_crossed);
	(void)weft_event_wait(&never, WEFT_NEVER);
	return arg;
}

/* More than are read, and it is in the first of them. */
static void *in_a_crowd(void *arg)
{
	pthread_setname_np(pthread_self(), "crowded");
	for (int i = 0; i < CROWD; i++)
		(void)make(yields, "one of a crowd");
	weft_event_set(&is_crowded);
	(void)weft_event_wait(&never, WEFT_NEVER);
	return arg;
}

static void *crowds(void *arg)
{
	return weft_fiber_resume(make(in_a_crowd, "in a crowd"), arg);
}

static void *reads(void *arg)
{
	char c;

	pthread_setname_np(pthread_self(), "reads");
	weft_event_set(&reading);
	while (read(0, &c, 1) > 0)
		;
	_exit(0);
	return arg;
}

static void *inner(void *arg)
{
	pid_t child = forks ? fork() : 0;

	if (child)
		_exit(waitpid(child, NULL, 0) != child);
	(void)spawn(reads, NULL);
	(void)weft_event_wait(&reading, WEFT_NEVER);
	printf("ready %d\n", getpid());
	fflush(stdout);
	(void)weft_event_wait(&never, WEFT_NEVER);
	return arg;
}

static void *outer(void *arg)
{
	return weft_fiber_resume(make(inner, "inner"), arg);
}

int main(int argc, char **argv)
{
	weft_fiber *transferred = make(transfers, "gone");

	forks = argc > 1;
	(void)weft_fiber_resume(make(ends, "over"), NULL);
	(void)weft_fiber_resume(make(yields, "odd\033[2J"), NULL);
	(void)make(yields, NULL);
	(void)weft_fiber_transfer(transferred, NULL);
	weft_fiber_free(make(yields, "freed"));
	pthread_join(spawn(leaves, NULL), NULL);
	(void)spawn(inherits, NULL);
	(void)weft_event_wait(&given, WEFT_NEVER);
	weft_fiber_free(gift);
	(void)spawn(makes_many, NULL);
	(void)weft_event_wait(&has_many, WEFT_NEVER);
	(void)spawn(crosses, NULL);
	(void)weft_event_wait(&has_crossed, WEFT_NEVER);
	(void)spawn(crowds, NULL);
	(void)weft_event_wait(&is_crowded, WEFT_NEVER);
	(void)weft_fiber_resume(make(outer, "outer"), NULL);
	return 2;
}
