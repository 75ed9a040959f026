// SPDX-License-Identifier: Apache-2.0
/*
 * Follows by behaviour reports of faults in other systems, where C++ is in them: what must not happen. Each case names the report.
 */
#include <weft/weft.h>
#include <weft/weft.hpp>

#include "native.h"
#include "tap.h"

#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <string>
#include <unistd.h>

/* --- btop#1746: a cancellation that unwinds meets a catch (...), or a function that must not throw, and ends the program --- */

static weft_event never;

static int waits_and_catches_all(void *arg) noexcept
{
	int *fds = static_cast<int *>(arg), result = 0;

	try {
		char c;

		if (is_native_run())
			result = weft_event_wait(&never, WEFT_NEVER);
		else if (read(fds[0], &c, 1) < 0)
			result = -errno;
	} catch (...) {
		return -EIO;
	}
	return result;
}

TEST(a_cancelled_thread_returns_through_what_catches_all)
{
	int fds[2], result = 0;

	CHECK_EQ(pipe(fds), 0);
	for (int i = 0; i < 50; i++) {
		weft_thread *t;

		CHECK_EQ(weft_thread_spawn(waits_and_catches_all, fds, nullptr, &t), 0);
		if (i % 2)
			weft_thread_yield();
		weft_thread_cancel(t);
		CHECK_EQ(weft_thread_join(t, &result, WEFT_NEVER), 0);
		CHECK_EQ(result, -ECANCELED);
	}
	close(fds[0]);
	close(fds[1]);
}

/* The same in std::condition_variable::wait(), which is noexcept: a wake-up for nothing, and the lock is held. */
TEST(a_scope_that_ends_a_wait_of_a_condition_variable_ends_nothing_else)
{
	std::mutex m;
	std::condition_variable cv;
	bool is_done = false;

	if (is_native_run())
		SKIP("natively only weft's own functions are reached");
	for (int i = 0; i < 20; i++) {
		weft::thread t([&] {
			WEFT_SCOPE(s, i % 2 ? WEFT_NOW : weft_now() + WEFT_MS / 2);
			std::unique_lock lock(m);

			cv.wait(lock, [&] { return is_done; });
			CHECK(lock.owns_lock());
		});

		weft_sleep_until(weft_now() + WEFT_MS);
		{
			std::lock_guard lock(m);

			is_done = true;
		}
		cv.notify_all();
		t.join();
		is_done = false;
	}
}

/* --- silk#98: fibers that share what the thread knows of the exceptions in hand use them after they are gone --- */

static void *handles_one_while_it_yields(void *first)
{
	const auto name = std::to_string(reinterpret_cast<intptr_t>(first));

	for (int i = 0; i < 50; i++)
		try {
			throw std::runtime_error(name);
		} catch (const std::runtime_error &e) {
			weft_fiber_yield(nullptr);
			CHECK_STR_EQ(e.what(), name.c_str());
			try {
				throw;
			} catch (const std::exception &again) {
				weft_fiber_yield(nullptr);
				CHECK_STR_EQ(again.what(), name.c_str());
			}
			CHECK(std::current_exception() != nullptr);
			weft_fiber_yield(nullptr);
		}
	CHECK(std::current_exception() == nullptr);
	return nullptr;
}

TEST(exceptions_in_hand_are_each_fibers_own)
{
	weft_fiber *f[3];
	bool is_done = false;

	for (auto &fiber : f)
		fiber = weft_fiber_new(handles_one_while_it_yields, nullptr);
	/* Not in the same order each time, and one of ours is in hand. */
	for (unsigned i = 0; !is_done; i++) {
		weft_fiber *next = f[i * 7 / 3 % 3];

		is_done = true;
		try {
			throw std::runtime_error("mine");
		} catch (const std::runtime_error &e) {
			if (!weft_fiber_is_done(next))
				weft_fiber_resume(next, reinterpret_cast<void *>(
								static_cast<intptr_t>(i % 3 + 1)));
			CHECK_STR_EQ(e.what(), "mine");
		}
		for (auto &fiber : f)
			is_done = is_done && weft_fiber_is_done(fiber);
	}
	for (auto &fiber : f)
		weft_fiber_free(fiber);
}
