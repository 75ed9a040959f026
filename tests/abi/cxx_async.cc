// SPDX-License-Identifier: Apache-2.0
/*
 * future, promise, async, packaged_task and exception_ptr between threads.
 */
#include <chrono>
#include <future>
#include <stdexcept>
#include <thread>
#include <vector>
#include "check.h"

using namespace std::chrono_literals;

static int fibonacci(int n)
{
	if (n < 2)
		return n;
	auto rest = std::async(n > 8 ? std::launch::async : std::launch::deferred, fibonacci,
			       n - 1);
	int here = fibonacci(n - 2);

	return rest.get() + here;
}

int main()
{
	CHECK_EQ(fibonacci(13), 233);
	ok("a tree of async calls");

	std::promise<int> first, second;
	std::thread t([&] { second.set_value(first.get_future().get() + 1); });
	std::future<int> answer = second.get_future();
	CHECK(answer.wait_for(5ms) == std::future_status::timeout);
	first.set_value(41);
	CHECK_EQ(answer.get(), 42);
	t.join();
	ok("promises");

	std::promise<void> go;
	std::shared_future<void> gate = go.get_future().share();
	std::vector<std::future<int>> results;
	for (int i = 0; i < 50; i++)
		results.push_back(std::async(std::launch::async, [gate, i] {
			gate.wait();
			return i;
		}));
	go.set_value();
	int sum = 0;
	for (auto &r : results)
		sum += r.get();
	CHECK_EQ(sum, 1225);
	ok("50 wait for one shared_future");

	for (int i = 0; i < 20; i++) {
		auto f = std::async(std::launch::async, [i]() -> int {
			throw std::runtime_error("number " + std::to_string(i));
		});
		try {
			f.get();
			CHECK(!"no exception");
		} catch (const std::runtime_error &e) {
			std::string want = "number " + std::to_string(i);

			CHECK_STR(e.what(), want.c_str());
		}
	}
	ok("exceptions come through futures");

	std::exception_ptr kept;
	std::thread thrower([&] {
		try {
			throw std::logic_error("kept");
		} catch (...) {
			kept = std::current_exception();
		}
	});
	thrower.join();
	try {
		std::rethrow_exception(kept);
	} catch (const std::logic_error &e) {
		CHECK_STR(e.what(), "kept");
	}
	std::packaged_task<int(int)> task([](int x) { return x * 2; });
	std::future<int> doubled = task.get_future();
	std::thread runner(std::move(task), 21);
	CHECK_EQ(doubled.get(), 42);
	runner.join();
	ok("exception_ptr and packaged_task");
	return finish();
}
