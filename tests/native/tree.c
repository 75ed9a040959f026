// SPDX-License-Identifier: Apache-2.0
/*
 * The victim of test_tree.py: a group in another one, scopes, and a thread that waits for a mutex though its time is over.
 * Prints "ready", and ends at the end of its input.
 */
#include <weft/weft.h>

#include "threads.h"

#include <unistd.h>

#define HOUR (3600 * WEFT_SEC)

static weft_event never;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int parses(void *arg)
{
	weft_scope s;

	(void)arg;
	weft_scope_open(&s, weft_now() + HOUR, "slow\033[2J");
	(void)weft_event_wait(&never, WEFT_NEVER);
	return weft_scope_close(&s);
}

static int fetches(void *arg)
{
	weft_group parse = { .name = "parse", .policy = WEFT_EACH };

	(void)arg;
	for (int i = 0; i < 2; i++) {
		if (weft_group_go(&parse, parses, NULL))
			_exit(2);
	}
	return weft_group_wait(&parse);
}

static int looks_up(void *arg)
{
	weft_scope outer, s;

	(void)arg;
	weft_scope_open(&outer, weft_now() + HOUR, "request");
	weft_scope_open(&s, weft_now() - 3 * WEFT_SEC, "lookup");
	pthread_mutex_lock(&lock);
	(void)weft_scope_close(&s);
	return weft_scope_close(&outer);
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
	weft_group crawl = { .name = "crawl", .limit = 8, .deadline = weft_now() + 2 * HOUR };

	pthread_mutex_lock(&lock);
	(void)spawn(reads, NULL);
	if (weft_group_go(&crawl, fetches, NULL) || weft_group_go(&crawl, looks_up, NULL))
		return 2;
	printf("ready\n");
	fflush(stdout);
	return weft_group_wait(&crawl);
}
