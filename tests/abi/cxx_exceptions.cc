// SPDX-License-Identifier: Apache-2.0
/*
 * Exceptions thrown and caught across blocking calls in many threads; the exception state is the
 * thread's own while handlers of several threads are interleaved.
 */
#include <exception>
#include <mutex>
#include <semaphore.h>
#include <string>
#include "check.h"

#define NR 30
#define ROUNDS 100

static sem_t sem;
static std::mutex lock;
static int alive, fds[2];

struct counted {
	counted()
	{
		ADD(&alive, 1);
	}
	~counted()
	{
		sched_yield();
		ADD(&alive, -1);
	}
};

struct mine : std::exception {
	int owner, depth;

	mine(int o, int d) : owner(o), depth(d)
	{
	}
};

static void descend(int owner, int depth)
{
	counted here;
	char c;

	if (depth == 0) {
		sem_wait(&sem);
		sem_post(&sem);
		throw mine(owner, depth);
	}
	try {
		descend(owner, depth - 1);
	} catch (mine &e) {
		/* Blocks inside a handler: others throw meanwhile. */
		CHECK_EQ(read(fds[0], &c, 1), 1);
		CHECK_EQ(write(fds[1], &c, 1), 1);
		CHECK_EQ(e.owner, owner);
		e.depth++;
		if (depth % 2) {
			throw;
		} else {
			std::lock_guard<std::mutex> guard(lock);

			throw mine(owner, e.depth);
		}
	}
}

static void *throws(void *arg)
{
	int owner = (int)(intptr_t)arg;

	for (int i = 0; i < ROUNDS; i++) {
		try {
			descend(owner, 4);
			CHECK(!"no exception");
		} catch (const mine &e) {
			CHECK_EQ(e.owner, owner);
			CHECK_EQ(e.depth, 4);
		}
		CHECK_EQ(std::uncaught_exceptions(), 0);
		CHECK(std::current_exception() == nullptr);
	}
	return nullptr;
}

int main()
{
	pthread_t t[NR];

	CHECK_SYS(pipe(fds));
	CHECK_EQ(write(fds[1], "ab", 2), 2);
	sem_init(&sem, 0, 3);
	for (intptr_t i = 0; i < NR; i++)
		t[i] = start(throws, (void *)i);
	for (int i = 0; i < NR; i++)
		join(t[i]);
	CHECK_EQ(alive, 0);
	ok("30 threads throw across blocking calls");
	return finish();
}
