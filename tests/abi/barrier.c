// SPDX-License-Identifier: Apache-2.0
/*
 * Barriers: nobody passes early, exactly one serial thread a round, reuse at once.
 */
#include "check.h"

#define ROUNDS 300

static pthread_barrier_t barrier;
static int nr_threads, arrived, serials;

static void *meets(void *arg)
{
	for (int i = 1; i <= ROUNDS; i++) {
		ADD(&arrived, 1);
		int ret = pthread_barrier_wait(&barrier);

		CHECK(LOAD(&arrived) >= i * nr_threads);
		CHECK(ret == 0 || ret == PTHREAD_BARRIER_SERIAL_THREAD);
		if (ret == PTHREAD_BARRIER_SERIAL_THREAD)
			ADD(&serials, 1);
	}
	return arg;
}

int main(void)
{
	static const int sizes[] = { 1, 2, 7, 40 };
	pthread_t t[40];

	for (int s = 0; s < 4; s++) {
		nr_threads = sizes[s];
		arrived = serials = 0;
		CHECK_PT(pthread_barrier_init(&barrier, NULL, nr_threads));
		for (int i = 0; i < nr_threads; i++)
			t[i] = start(meets, NULL);
		for (int i = 0; i < nr_threads; i++)
			join(t[i]);
		CHECK_EQ(serials, ROUNDS);
		CHECK_PT(pthread_barrier_destroy(&barrier));
		printf("%d threads, 300 rounds\n", nr_threads);
		ok("barrier");
	}
	CHECK_EQ(pthread_barrier_init(&barrier, NULL, 0), EINVAL);
	return finish();
}
