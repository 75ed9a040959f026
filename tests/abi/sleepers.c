// SPDX-License-Identifier: Apache-2.0
/*
 * 1,000 sleepers with different deadlines: all wake, none of them early.
 */
#include "check.h"

#define NR 1000
#define STEP (100 * 1000LL)

static int64_t base_ns;
static int nr_early, nr_awake;

static void *sleeps(void *arg)
{
	intptr_t i = (intptr_t)arg;
	int64_t deadline = base_ns + 30 * MS + (i * 37 % NR) * STEP;
	struct timespec ts = timespec_of(deadline);

	switch (i % 3) {
	case 0:
		CHECK_EQ(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL), 0);
		break;
	case 1:
		ts = timespec_of(deadline - now_ns() > 0 ? deadline - now_ns() : 0);
		CHECK_SYS(nanosleep(&ts, NULL));
		break;
	default:
		if (deadline > now_ns())
			CHECK_SYS(usleep((useconds_t)((deadline - now_ns() + 999) / 1000)));
		break;
	}
	/* usleep and nanosleep computed the rest a moment ago: that much earlier is right. */
	if (now_ns() < deadline - (i % 3 ? 1000 : 0))
		ADD(&nr_early, 1);
	ADD(&nr_awake, 1);
	return NULL;
}

static void on_signal(int sig)
{
	(void)sig;
}

static int is_back;

/* The rest is told of a relative sleep only. */
static void *is_interrupted(void *absolute)
{
	struct timespec ts = { 3600, 0 }, left = { 77, 77 };

	if (absolute)
		ts = timespec_of(now_ns() + 3600 * SEC);
	CHECK_EQ(clock_nanosleep(CLOCK_MONOTONIC, absolute ? TIMER_ABSTIME : 0, &ts, &left), EINTR);
	if (absolute)
		CHECK(left.tv_sec == 77 && left.tv_nsec == 77);
	else
		CHECK(left.tv_sec >= 3000 && left.tv_sec < 3600);
	STORE(&is_back, 1);
	return NULL;
}

static void interrupt(void *absolute)
{
	pthread_t t;

	STORE(&is_back, 0);
	t = start(is_interrupted, absolute);
	while (!LOAD(&is_back)) {
		let_others_block();
		CHECK_PT(pthread_kill(t, SIGUSR1));
	}
	join(t);
}

int main(void)
{
	pthread_attr_t attr;
	static pthread_t t[NR];
	struct timespec ts;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 << 10);
	base_ns = now_ns();
	for (intptr_t i = 0; i < NR; i++)
		CHECK_PT(pthread_create(&t[i], &attr, sleeps, (void *)i));
	for (int i = 0; i < NR; i++)
		join(t[i]);
	CHECK_EQ(nr_awake, NR);
	CHECK_EQ(nr_early, 0);
	ok("1000 sleepers");
	CHECK(now_ns() - base_ns >= 30 * MS + (NR - 1) * STEP);
	ok("the last one took as long as it should");

	ts = timespec_of(0);
	CHECK_SYS(nanosleep(&ts, NULL));
	CHECK_EQ(clock_nanosleep(CLOCK_REALTIME, 0, &ts, NULL), 0);
	CHECK_EQ(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL), 0);
	ts.tv_nsec = SEC;
	CHECK_ERRNO(nanosleep(&ts, NULL), EINVAL);
	CHECK_EQ(clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL), EINVAL);
	ts.tv_nsec = 0;
	CHECK_EQ(clock_nanosleep(99, 0, &ts, NULL), EINVAL);
	ts.tv_sec = -1;
	CHECK_ERRNO(nanosleep(&ts, NULL), EINVAL);
	ok("zero, past and bad times");
	signal(SIGUSR1, on_signal);
	interrupt(NULL);
	interrupt(&is_back);
	ok("interrupted");
	return finish();
}
