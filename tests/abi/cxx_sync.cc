// SPDX-License-Identifier: Apache-2.0
/*
 * The C++ standard library on top: thread, mutexes, shared_mutex, condition variables, call_once.
 */
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>
#include "check.h"

using namespace std::chrono_literals;

static void run(int nr, void (*fn)(int))
{
	std::vector<std::thread> threads;

	for (int i = 0; i < nr; i++)
		threads.emplace_back(fn, i);
	for (auto &t : threads)
		t.join();
}

static std::shared_mutex shared;
static std::timed_mutex timed;
static std::recursive_mutex recursive;
static std::mutex plain;
static std::condition_variable changed;
static std::once_flag once;
static int first, second, turn, nr_once;

int main()
{
	run(8, [](int i) {
		for (int round = 0; round < 1000; round++) {
			if (i % 4 == 0) {
				std::unique_lock<std::shared_mutex> guard(shared);
				first++;
				if (round % 16 == 0)
					std::this_thread::yield();
				second++;
			} else {
				std::shared_lock<std::shared_mutex> guard(shared);
				CHECK_EQ(first, second);
			}
		}
	});
	CHECK_EQ(first, 2000);
	ok("shared_mutex");

	timed.lock();
	run(4, [](int) {
		auto before = std::chrono::steady_clock::now();
		CHECK(!timed.try_lock_for(10ms));
		CHECK(std::chrono::steady_clock::now() - before >= 10ms);
		CHECK(!timed.try_lock_until(std::chrono::system_clock::now() + 5ms));
	});
	timed.unlock();
	CHECK(timed.try_lock_for(1h));
	timed.unlock();
	ok("timed_mutex");

	run(3, [](int i) {
		for (int round = 0; round < 300; round++) {
			std::unique_lock<std::mutex> guard(plain);
			changed.wait(guard, [i] { return turn % 3 == i; });
			turn++;
			changed.notify_all();
		}
	});
	CHECK_EQ(turn, 900);
	{
		std::unique_lock<std::mutex> guard(plain);
		auto before = std::chrono::steady_clock::now();
		CHECK(!changed.wait_for(guard, 10ms, [] { return false; }));
		CHECK(std::chrono::steady_clock::now() - before >= 10ms);
		CHECK(!changed.wait_until(guard, std::chrono::system_clock::now() + 5ms,
					  [] { return false; }));
	}
	ok("condition_variable");

	run(4, [](int) {
		for (int round = 0; round < 200; round++) {
			std::lock_guard<std::recursive_mutex> a(recursive), b(recursive);
			std::scoped_lock both(plain, timed);
			first++;
		}
	});
	CHECK_EQ(first, 2800);
	ok("recursive_mutex and scoped_lock");

	run(10, [](int) {
		try {
			std::call_once(once, [] {
				if (nr_once++ < 2)
					throw 1;
				std::this_thread::sleep_for(1ms);
			});
		} catch (int) {
		}
		CHECK(nr_once >= 1);
	});
	CHECK_EQ(nr_once, 3);
	ok("call_once, with exceptions");

	std::thread detached([] { ADD(&turn, 1); });
	CHECK(detached.joinable());
	CHECK(detached.get_id() != std::this_thread::get_id());
	detached.detach();
	while (LOAD(&turn) != 901)
		std::this_thread::yield();
	CHECK(std::thread::hardware_concurrency() >= 1);
	ok("detach and ids");
	return finish();
}
