// SPDX-License-Identifier: Apache-2.0
/*
 * The vDSO asks the kernel for the time where the processor's counter is of no use, as on many virtual machines. Here that is
 * so because its data page is gone: all zeros means just that.
 */
#include "check.h"

#include <stdint.h>
#include <sys/mman.h>

#define NR 4
#define ROUNDS 20

static int take_data_pages_away(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long low = 0, high = 0, from, to;
	char line[512];

	CHECK(maps != NULL);
	while (maps && fgets(line, sizeof(line), maps))
		if (strstr(line, "[vvar") && sscanf(line, "%lx-%lx", &from, &to) == 2) {
			low = low && low < from ? low : from;
			high = high > to ? high : to;
		}
	if (maps)
		fclose(maps);
	return low && mmap((void *)low, high - low, PROT_READ,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED
		       ? 0
		       : -1;
}

static void *waits(void *arg)
{
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
	struct timespec ts;

	for (int i = 0; i < ROUNDS; i++) {
		int64_t before = now_ns();

		sleep_ns(MS);
		CHECK(now_ns() >= before + MS);
		CHECK_SYS(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts));
		CHECK_SYS(clock_gettime(CLOCK_REALTIME, &ts));
		ts.tv_nsec += MS;
		if (ts.tv_nsec >= 1000000000) {
			ts.tv_nsec -= 1000000000;
			ts.tv_sec++;
		}
		pthread_mutex_lock(&mutex);
		CHECK_EQ(pthread_cond_timedwait(&cond, &mutex, &ts), ETIMEDOUT);
		pthread_mutex_unlock(&mutex);
	}
	return arg;
}

int main(void)
{
	pthread_t t[NR];

	if (take_data_pages_away())
		return EXIT_SKIP; /* a kernel that seals them */
	for (int i = 0; i < NR; i++)
		t[i] = start(waits, NULL);
	for (int i = 0; i < NR; i++)
		join(t[i]);
	ok("sleeps and time-outs");
	return finish();
}
