// SPDX-License-Identifier: Apache-2.0
/*
 * Cancellation unwinds C++ frames: destructors run, catch (...) sees it and passes it on.
 */
#include <cxxabi.h>
#include <mutex>
#include <semaphore.h>
#include "check.h"

static int alive, caught, is_ready, fds[2];
static sem_t sem;
static std::mutex lock;

struct counted {
	counted()
	{
		ADD(&alive, 1);
	}
	~counted()
	{
		ADD(&alive, -1);
	}
};

static void blocks(int kind)
{
	counted here;
	char c;
	std::lock_guard<std::mutex> guard(lock);

	STORE(&is_ready, 1);
	switch (kind) {
	case 0:
		(void)!read(fds[0], &c, 1);
		break;
	case 1:
		sem_wait(&sem);
		break;
	case 2:
		sleep(3600);
		break;
	default:
		pause();
		break;
	}
}

static void *is_cancelled(void *arg)
{
	counted outer;

	try {
		counted inner;

		blocks((int)(intptr_t)arg);
		CHECK(!"the call returned");
	} catch (abi::__forced_unwind &) {
		ADD(&caught, 1);
		throw;
	}
	return nullptr;
}

static void *throws(void *arg)
{
	for (int i = 0; i < 100; i++) {
		try {
			counted here;

			sched_yield();
			throw i;
		} catch (int value) {
			CHECK_EQ(value, i);
			sched_yield();
		}
	}
	return arg;
}

int main()
{
	static const char *const names[] = { "read", "sem_wait", "sleep", "pause" };

	CHECK_SYS(pipe(fds));
	sem_init(&sem, 0, 0);
	for (int kind = 0; kind < 4; kind++) {
		for (int round = 0; round < 5; round++) {
			is_ready = caught = 0;
			pthread_t t = start(is_cancelled, (void *)(intptr_t)kind);

			while (!LOAD(&is_ready))
				sched_yield();
			if (round == 0)
				let_others_block();
			CHECK_PT(pthread_cancel(t));
			CHECK(join(t) == PTHREAD_CANCELED);
			CHECK_EQ(alive, 0);
			CHECK_EQ(caught, 1);
			CHECK(lock.try_lock());
			lock.unlock();
		}
		ok(names[kind]);
	}
	join(start(throws, nullptr));
	CHECK_EQ(alive, 0);
	ok("ordinary exceptions still work");
	return finish();
}
