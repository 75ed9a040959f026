// SPDX-License-Identifier: Apache-2.0
/*
 * The main thread leaves with pthread_exit; others go on, and the end of the last one is exit(0).
 */
#include "check.h"

static pthread_t main_thread;

static void *is_last(void *arg)
{
	ok("the last thread runs");
	for (int i = 0; i < 100; i++)
		sched_yield();
	ok("the last thread ends");
	if (finish())
		_exit(1);
	return arg;
}

static void *outlives_main(void *arg)
{
	void *value = NULL;

	CHECK_PT(pthread_join(main_thread, &value));
	CHECK_EQ((intptr_t)value, 5);
	ok("main has ended and is joined");
	sleep_ns(5 * MS);
	pthread_detach(start(is_last, NULL));
	return arg;
}

static void at_exit(void)
{
	ok("atexit handlers run after the last thread");
}

int main(void)
{
	atexit(at_exit);
	main_thread = pthread_self();
	start(outlives_main, NULL);
	pthread_exit((void *)5);
}
