// SPDX-License-Identifier: Apache-2.0
/*
 * Threads as an interpreter's: all that they do between their transfers they do under one lock. Then the same without
 * it, with threads beside them that compute, and after a pause: every answer comes, and the lock keeps others out.
 */
#include <stdbool.h>

#include "answers.h"

#define NR_THREADS 8
#define LOCKED_MS 350
#define OTHER_MS 60

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t is_free = PTHREAD_COND_INITIALIZER;
static bool is_taken;
static int nr_inside, is_over; /* atomic */
static long deadline;
static uint64_t value; /* under the big lock */
static struct answers other;

static long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* As interpreters have it: taken with a condition, so that waiters queue. */
static void take(void)
{
	pthread_mutex_lock(&lock);
	while (is_taken)
		pthread_cond_wait(&is_free, &lock);
	is_taken = true;
	pthread_mutex_unlock(&lock);
	CHECK_EQ(ADD(&nr_inside, 1), 1);
}

static void give(void)
{
	CHECK_EQ(ADD(&nr_inside, -1), 0);
	pthread_mutex_lock(&lock);
	is_taken = false;
	pthread_cond_signal(&is_free);
	pthread_mutex_unlock(&lock);
}

static void compute(int rounds)
{
	uint64_t x = LOAD(&value);

	for (int i = 0; i < rounds; i++)
		x = x * 6364136223846793005u + 1442695040888963407u;
	STORE(&value, x);
}

static void echo_for(int fd, bool is_locked)
{
	char sent = 'a', got;

	while (now_ms() < deadline) {
		sent++;
		CHECK_EQ(write(fd, &sent, 1), 1);
		CHECK_EQ(read(fd, &got, 1), 1);
		CHECK_EQ(got, sent);
		if (is_locked)
			take();
		compute(10000);
		if (is_locked)
			give();
	}
}

static void *with_lock(void *arg)
{
	echo_for(*(int *)arg, true);
	return arg;
}

static void *without(void *arg)
{
	echo_for(*(int *)arg, false);
	return arg;
}

static void *computes(void *arg)
{
	while (!LOAD(&is_over))
		compute(100000);
	return arg;
}

static void run(void *(*fn)(void *), int ms)
{
	pthread_t t[NR_THREADS];

	deadline = now_ms() + ms;
	for (int i = 0; i < NR_THREADS; i++)
		t[i] = start(fn, &other.fds[i]);
	for (int i = 0; i < NR_THREADS; i++)
		CHECK(join(t[i]) == &other.fds[i]);
}

int main(void)
{
	struct timespec pause = { 0, 150 * MS };
	pthread_t hog;

	other = answers_begin(NR_THREADS);
	run(with_lock, LOCKED_MS);
	ok("under one lock");
	run(without, OTHER_MS);
	ok("without it");
	hog = start(computes, NULL);
	run(with_lock, OTHER_MS);
	STORE(&is_over, 1);
	CHECK(join(hog) == NULL);
	ok("beside a thread that computes");
	nanosleep(&pause, NULL);
	run(with_lock, OTHER_MS);
	ok("after a pause");
	answers_end(&other);
	return finish();
}
