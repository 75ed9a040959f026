// SPDX-License-Identifier: Apache-2.0
/*
 * pthread_getattr_np: the stack really lies where it says, for threads and for main; all of a
 * stack can be used.
 */
#include "check.h"

static void *is_on_stack(void *arg)
{
	size_t want = (size_t)arg;
	pthread_attr_t attr;
	void *low;
	size_t bytes, guard;
	char here;

	CHECK_PT(pthread_getattr_np(pthread_self(), &attr));
	CHECK_PT(pthread_attr_getstack(&attr, &low, &bytes));
	CHECK_PT(pthread_attr_getguardsize(&attr, &guard));
	pthread_attr_destroy(&attr);
	CHECK(&here > (char *)low && &here < (char *)low + bytes);
	if (want)
		CHECK(bytes >= want && bytes <= want + 65536);
	return NULL;
}

static int uses_deep(int depth)
{
	volatile char block[4000];

	for (size_t i = 0; i < sizeof(block); i += 500)
		block[i] = (char)depth;
	if (depth % 16 == 0)
		sched_yield();
	return depth == 0 ? 0 : uses_deep(depth - 1) + (block[500] == (char)depth);
}

static void *uses_all(void *arg)
{
	int depth = (int)(intptr_t)arg;

	return (void *)(intptr_t)uses_deep(depth);
}

int main(void)
{
	static const size_t sizes[] = { 64 << 10, 128 << 10, 1 << 20, 8 << 20, 64 << 20 };
	pthread_attr_t attr;
	pthread_t t[10];

	is_on_stack(NULL);
	ok("main");
	for (int i = 0; i < 5; i++) {
		pthread_attr_init(&attr);
		CHECK_PT(pthread_attr_setstacksize(&attr, sizes[i]));
		CHECK_PT(pthread_create(&t[0], &attr, is_on_stack, (void *)sizes[i]));
		join(t[0]);
		pthread_attr_destroy(&attr);
	}
	ok("five sizes");

	pthread_attr_init(&attr);
	CHECK_PT(pthread_attr_setstacksize(&attr, 1 << 20));
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 10; i++)
			CHECK_PT(pthread_create(&t[i], &attr, uses_all, (void *)200));
		for (int i = 0; i < 10; i++)
			CHECK_EQ((intptr_t)join(t[i]), 200);
	}
	ok("800 KiB of 1 MiB used by 10 threads, three times");
	return finish();
}
