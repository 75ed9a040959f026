// SPDX-License-Identifier: Apache-2.0
/* No room for another pthread: a spawn is refused, or its thread begins when another one has ended. */
#include "native.h"
#include "tap.h"

#include <errno.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/resource.h>
#include <weft/weft.h>

#define ROOM_BYTES (200ul << 20) /* two dozen stacks */
#define MOST 1000

static sem_t begun;
static weft_event let_go[MOST];
static weft_thread *threads[MOST];

static int waits(void *arg)
{
	sem_post(&begun);
	return weft_event_wait(arg, WEFT_NEVER);
}

static int spawn(int i)
{
	weft_event_clear(&let_go[i]);
	return weft_thread_spawn(waits, &let_go[i], NULL, &threads[i]);
}

static void end(int i)
{
	int result = 1;

	weft_event_set(&let_go[i]);
	CHECK_EQ(weft_thread_join(threads[i], &result, WEFT_NEVER), 0);
	CHECK_EQ(result, 0);
}

static size_t mapped_bytes(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	size_t pages = 0;

	if (!f || fscanf(f, "%zu", &pages) != 1)
		pages = 0;
	if (f)
		fclose(f);
	return pages * 4096;
}

/* How many there are when one is refused, each of which has begun. */
static int fill(void)
{
	struct rlimit limit;
	int nr = 0, ret;

	/* One that has begun, so that the runtime has what it needs. */
	CHECK_EQ(spawn(nr++), 0);
	sem_wait(&begun);
	getrlimit(RLIMIT_AS, &limit);
	limit.rlim_cur = mapped_bytes() + ROOM_BYTES;
	CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
	while (nr < MOST - 8 && (ret = spawn(nr)) == 0) {
		sem_wait(&begun);
		nr++;
	}
	CHECK_EQ(ret, -EAGAIN);
	return nr;
}

static void lift(void)
{
	struct rlimit limit;

	getrlimit(RLIMIT_AS, &limit);
	limit.rlim_cur = limit.rlim_max;
	CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
}

TEST(a_thread_without_room_is_refused_and_nothing_else_is_lost)
{
	int nr;

	if (is_native_run())
		SKIP("libc's own limits");
	sem_init(&begun, 0, 0);
	nr = fill();
	CHECK(nr > 3);
	CHECK_EQ(spawn(nr), -EAGAIN);
	end(--nr);
	CHECK_EQ(spawn(nr), 0); /* there is room for one again */
	sem_wait(&begun);
	nr++;
	while (nr)
		end(--nr);
	lift();
}

/* Two pthreads rest, and are called for the first two; those that are queued before the second has come wait for room. */
TEST(what_is_queued_without_room_begins_when_another_ends)
{
	if (is_native_run())
		SKIP("libc's own limits");
	sem_init(&begun, 0, 0);
	for (int round = 0; round < 20; round++) {
		int nr = fill(), nr_old, nr_new = 0;

		CHECK(nr > 8);
		end(--nr);
		end(--nr);
		nr_old = nr;
		for (int i = 0; i < 6; i++) {
			int ret = spawn(nr_old + nr_new);

			CHECK(ret == 0 || ret == -EAGAIN);
			nr_new += ret == 0;
		}
		CHECK(nr_new >= 2);
		for (int i = 0; i < nr_new; i++) {
			if (i >= 2)
				end(--nr);
			sem_wait(&begun);
		}
		for (int i = 0; i < nr_new; i++)
			end(nr_old + i);
		while (nr)
			end(--nr);
		lift();
	}
}
