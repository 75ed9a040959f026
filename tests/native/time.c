// SPDX-License-Identifier: Apache-2.0
/* weft_now() and weft_sleep_until(). */
#include <weft/weft.h>

#include "tap.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

TEST(now_is_the_monotonic_clock)
{
	struct timespec before, after;
	weft_time now;

	clock_gettime(CLOCK_MONOTONIC, &before);
	now = weft_now();
	clock_gettime(CLOCK_MONOTONIC, &after);
	CHECK(now >= before.tv_sec * WEFT_SEC + before.tv_nsec);
	CHECK(now <= after.tv_sec * WEFT_SEC + after.tv_nsec);
}

TEST(a_sleep_ends_at_its_time)
{
	weft_time when = weft_now() + 3 * WEFT_MS;

	CHECK_EQ(weft_sleep_until(when), 0);
	CHECK(weft_now() >= when);
}

TEST(a_time_that_is_past_is_no_sleep)
{
	CHECK_EQ(weft_sleep_until(WEFT_NOW), 0);
	CHECK_EQ(weft_sleep_until(0), 0);
	CHECK_EQ(weft_sleep_until(-5), 0);
	CHECK_EQ(weft_sleep_until(INT64_MIN), 0);
	CHECK_EQ(weft_sleep_until(weft_now() - WEFT_MS), 0);
}

TEST(a_time_that_is_past_is_no_sleep_in_a_scope_that_is_over_either)
{
	WEFT_SCOPE(s, WEFT_NOW);

	CHECK_EQ(weft_sleep_until(weft_now() - WEFT_MS), 0);
	CHECK_EQ(weft_sleep_until(weft_now() + WEFT_SEC), -ETIMEDOUT);
}

static void on_signal(int sig)
{
	(void)sig;
}

static void *sleeps(void *arg)
{
	weft_time *when = arg;

	errno = 77;
	CHECK_EQ(weft_sleep_until(*when), 0);
	CHECK_EQ(errno, 77);
	CHECK(weft_now() >= *when);
	return NULL;
}

TEST(a_sleep_goes_on_through_signals)
{
	struct sigaction sa = { .sa_handler = on_signal };
	weft_time when = weft_now() + 20 * WEFT_MS;
	pthread_t t;

	sigaction(SIGUSR1, &sa, NULL);
	CHECK_EQ(pthread_create(&t, NULL, sleeps, &when), 0);
	while (weft_now() < when - 10 * WEFT_MS)
		pthread_kill(t, SIGUSR1);
	CHECK_EQ(pthread_join(t, NULL), 0);
}

static void *sleeps_for_ever(void *arg)
{
	weft_sleep_until(WEFT_NEVER);
	return arg;
}

TEST(a_sleep_for_ever_can_be_cancelled_by_libc)
{
	pthread_t t;
	void *result;

	CHECK_EQ(pthread_create(&t, NULL, sleeps_for_ever, NULL), 0);
	CHECK_EQ(pthread_cancel(t), 0);
	CHECK_EQ(pthread_join(t, &result), 0);
	CHECK(result == PTHREAD_CANCELED);
}
