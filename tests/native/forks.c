// SPDX-License-Identifier: Apache-2.0
/*
 * A victim of test_tree.py: its main thread forks three tasks that wait for ever, and says "ready" once one has begun.
 * Ends at the end of its input.
 */
#include <weft/weft.h>

#include "threads.h"

#include <unistd.h>

#define NR_TASKS 3

static weft_event begun, never;

static void waits(void *arg)
{
	(void)arg;
	weft_event_set(&begun);
	(void)weft_event_wait(&never, WEFT_NEVER);
}

static void *reads(void *arg)
{
	char c;

	pthread_setname_np(pthread_self(), "reads");
	while (read(0, &c, 1) > 0)
		;
	_exit(0);
	return arg;
}

int main(void)
{
	weft_task tasks[NR_TASKS];

	/* The first one before there is a thread: the runtime does not know this one yet. */
	for (int i = 0; i < NR_TASKS; i++)
		weft_task_fork(&tasks[i], waits, NULL);
	(void)spawn(reads, NULL);
	(void)weft_event_wait(&begun, WEFT_NEVER);
	printf("ready\n");
	fflush(stdout);
	(void)weft_event_wait(&never, WEFT_NEVER);
	return 2;
}
