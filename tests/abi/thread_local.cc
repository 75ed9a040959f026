// SPDX-License-Identifier: Apache-2.0
/*
 * C++ thread_local and __thread: initial values, constructors, destructors in reverse order.
 */
#include <mutex>
#include <string>
#include <vector>
#include "check.h"

static std::mutex lock;
static std::vector<std::string> finished;
static int nr_made, nr_gone;

struct noisy {
	std::string name;

	explicit noisy(const char *n) : name(n)
	{
		ADD(&nr_made, 1);
	}
	~noisy()
	{
		std::lock_guard<std::mutex> guard(lock);

		nr_gone++;
		finished.push_back(name);
		sched_yield();
	}
};

static thread_local noisy first("first");
static thread_local noisy second("second");
static __thread int plain = 41;
static thread_local std::vector<int> numbers{ 1, 2, 3 };

static void *uses(void *arg)
{
	CHECK_EQ(plain, 41);
	plain = (int)(intptr_t)arg;
	first.name += "";
	second.name += "";
	CHECK_EQ(numbers.size(), 3);
	for (int i = 0; i < 200; i++) {
		numbers.push_back((int)(intptr_t)arg);
		sched_yield();
	}
	for (size_t i = 3; i < numbers.size(); i++)
		CHECK_EQ(numbers[i], (intptr_t)arg);
	CHECK_EQ(plain, (intptr_t)arg);
	return nullptr;
}

int main()
{
	join(start(uses, (void *)1));
	CHECK_EQ(finished.size(), 2);
	CHECK(finished[0] == "second" && finished[1] == "first");
	ok("destructors in reverse order");

	std::vector<pthread_t> threads;
	for (intptr_t i = 0; i < 50; i++)
		threads.push_back(start(uses, (void *)i));
	for (auto t : threads)
		join(t);
	CHECK_EQ(nr_made, 102);
	CHECK_EQ(nr_gone, 102);
	CHECK_EQ(plain, 41);
	ok("50 threads with their own objects");
	return finish();
}
