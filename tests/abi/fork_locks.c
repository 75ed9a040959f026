// SPDX-License-Identifier: Apache-2.0
/*
 * fork while other threads hold the locks of malloc and stdio; pthread_atfork order.
 */
#include "check.h"

static int stop;
static FILE *sink;
static char order[32];
static int nr_order;

static void *mallocs(void *arg)
{
	while (!LOAD(&stop)) {
		void *blocks[20];

		for (int i = 0; i < 20; i++)
			blocks[i] = malloc(100 + i * 700);
		for (int i = 0; i < 20; i++)
			free(blocks[i]);
	}
	return arg;
}

static void *prints(void *arg)
{
	while (!LOAD(&stop))
		fprintf(sink, "%s %d\n", "text", 5);
	return arg;
}

static void *uses_both(void *arg)
{
	for (int i = 0; i < 50; i++) {
		free(malloc(5000));
		fprintf(sink, "child %d\n", i);
	}
	fflush(sink);
	return arg;
}

static void note(char c)
{
	if (nr_order < 31)
		order[nr_order++] = c;
}

static void prepare_a(void)
{
	note('a');
}
static void prepare_b(void)
{
	note('b');
}
static void parent_a(void)
{
	note('c');
}
static void parent_b(void)
{
	note('d');
}
static void child_a(void)
{
	note('e');
}
static void child_b(void)
{
	note('f');
}

static void *forks(void *arg)
{
	for (int i = 0; i < 15; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			uses_both(NULL);
			join(start(uses_both, NULL));
			_exit(0);
		}
		CHECK_SYS(pid);
		reap(pid);
	}
	return arg;
}

int main(void)
{
	pthread_t t[6], forkers[2];

	sink = fopen("/dev/null", "w");
	for (int i = 0; i < 6; i++)
		t[i] = start(i % 2 ? mallocs : prints, NULL);
	for (int i = 0; i < 2; i++)
		forkers[i] = start(forks, NULL);
	for (int i = 0; i < 2; i++)
		join(forkers[i]);
	STORE(&stop, 1);
	for (int i = 0; i < 6; i++)
		join(t[i]);
	ok("30 children use malloc and stdio");

	CHECK_PT(pthread_atfork(prepare_a, parent_a, child_a));
	CHECK_PT(pthread_atfork(prepare_b, parent_b, child_b));
	pid_t pid = fork();
	if (pid == 0) {
		CHECK_STR(order, "baef");
		_exit(finish());
	}
	reap(pid);
	CHECK_STR(order, "bacd");
	ok("pthread_atfork order");
	return finish();
}
