// SPDX-License-Identifier: Apache-2.0
/*
 * Thread attributes: detached threads, the smallest stacks doing printf and locks, own stacks.
 */
#include <limits.h>
#include <sys/mman.h>
#include "check.h"

#define NR 200
#define SMALL                                                                                      \
	((size_t)sysconf(_SC_THREAD_STACK_MIN) > 16384 ? (size_t)sysconf(_SC_THREAD_STACK_MIN)     \
						       : (size_t)16384)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t done = PTHREAD_COND_INITIALIZER;
static FILE *sink;
static int nr_done;

static void *counts(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&lock);
	nr_done++;
	pthread_cond_signal(&done);
	pthread_mutex_unlock(&lock);
	return NULL;
}

static void *prints(void *arg)
{
	for (int i = 0; i < 20; i++) {
		fprintf(sink, "%d %s %lx\n", i, "text", (unsigned long)(intptr_t)arg);
		pthread_mutex_lock(&lock);
		sched_yield();
		pthread_mutex_unlock(&lock);
	}
	return counts(arg);
}

static void *address_of_local(void *arg)
{
	char here = 0;
	void *volatile address = &here;

	(void)arg;
	return address;
}

static void wait_for(int nr)
{
	pthread_mutex_lock(&lock);
	while (nr_done < nr)
		pthread_cond_wait(&done, &lock);
	nr_done = 0;
	pthread_mutex_unlock(&lock);
}

int main(void)
{
	pthread_attr_t attr;
	pthread_t t, many[NR];
	size_t bytes, guard;
	int state;

	CHECK_PT(pthread_attr_init(&attr));
	CHECK_PT(pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED));
	for (int i = 0; i < NR; i++)
		CHECK_PT(pthread_create(&t, &attr, counts, NULL));
	wait_for(NR);
	ok("200 threads created detached");

	for (int i = 0; i < NR; i++) {
		t = start(counts, NULL);
		CHECK_PT(pthread_detach(t));
	}
	wait_for(NR);
	ok("200 threads detached later");

	CHECK_PT(pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_JOINABLE));
	CHECK_EQ(pthread_attr_setstacksize(&attr, 1000), EINVAL);
	CHECK_PT(pthread_attr_setstacksize(&attr, SMALL));
	sink = fopen("/dev/null", "w");
	for (intptr_t i = 0; i < NR; i++)
		CHECK_PT(pthread_create(&many[i], &attr, prints, (void *)i));
	for (int i = 0; i < NR; i++)
		join(many[i]);
	wait_for(NR);
	fclose(sink);
	ok("200 threads on the smallest stacks print and lock");

	CHECK_PT(pthread_attr_getdetachstate(&attr, &state));
	CHECK_EQ(state, PTHREAD_CREATE_JOINABLE);
	CHECK_PT(pthread_attr_setguardsize(&attr, 8192));
	CHECK_PT(pthread_attr_getguardsize(&attr, &guard));
	CHECK_EQ(guard, 8192);
	CHECK_PT(pthread_attr_destroy(&attr));

	bytes = 256 * 1024;
	char *own = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK_PT(pthread_attr_init(&attr));
	CHECK_PT(pthread_attr_setstack(&attr, own, bytes));
	for (int i = 0; i < 10; i++) {
		CHECK_PT(pthread_create(&t, &attr, address_of_local, NULL));
		char *seen = join(t);
		CHECK(seen >= own && seen < own + bytes);
	}
	CHECK_SYS(munmap(own, bytes));
	ok("10 threads on a stack of the program, unmapped afterwards");
	return finish();
}
