// SPDX-License-Identifier: Apache-2.0
/*
 * Threads wait for another process while as many as there are processors, and more, do nothing but compute; and when
 * those have ended: every answer comes, and whoever computes goes on.
 */
#include "answers.h"

#define NR_HOGS 5
#define NR_READERS 3
#define PHASES 3
#define ROUNDS_BESIDE 40
#define ROUNDS_ALONE 300

static struct answers other;
static uint32_t nr_computing;
static int is_over;

static void *computes(void *arg)
{
	uint64_t x = (uintptr_t)arg + 1;

	ADD(&nr_computing, 1);
	while (!LOAD(&is_over))
		for (int i = 0; i < 1000; i++)
			x = x * 6364136223846793005u + 1442695040888963407u;
	return (void *)(uintptr_t)(x == 0);
}

struct reader {
	int number, rounds;
};

/* Each waits in another call. */
static void *asks(void *arg)
{
	const struct reader *r = arg;
	int fd = other.fds[r->number];

	for (int i = 0; i < r->rounds; i++) {
		char sent = (char)i, got = 0;
		struct pollfd p = { .fd = fd, .events = POLLIN };

		CHECK_EQ(write(fd, &sent, 1), 1);
		if (r->number == 1)
			CHECK_EQ(poll(&p, 1, -1), 1);
		if (r->number == 2)
			CHECK_EQ(recv(fd, &got, 1, 0), 1);
		else
			CHECK_EQ(read(fd, &got, 1), 1);
		CHECK_EQ(got, sent);
	}
	return NULL;
}

static void ask(int rounds)
{
	struct reader readers[NR_READERS];
	pthread_t t[NR_READERS];

	for (int i = 0; i < NR_READERS; i++) {
		readers[i] = (struct reader){ i, rounds };
		t[i] = start(asks, &readers[i]);
	}
	for (int i = 0; i < NR_READERS; i++)
		join(t[i]);
}

int main(void)
{
	pthread_t hogs[NR_HOGS];

	other = answers_begin(NR_READERS);
	for (int phase = 0; phase < PHASES; phase++) {
		STORE(&nr_computing, 0);
		STORE(&is_over, 0);
		for (intptr_t i = 0; i < NR_HOGS; i++)
			hogs[i] = start(computes, (void *)i);
		while (LOAD(&nr_computing) < NR_HOGS)
			sched_yield();
		ask(ROUNDS_BESIDE);
		STORE(&is_over, 1);
		for (int i = 0; i < NR_HOGS; i++)
			CHECK_EQ((intptr_t)join(hogs[i]), 0);
		ok("answers come beside threads that compute");
		ask(ROUNDS_ALONE);
		ok("and when those have ended");
	}
	answers_end(&other);
	return finish();
}
