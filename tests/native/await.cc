// SPDX-License-Identifier: Apache-2.0
/* weft::await: a thread waits for what coroutines wait for. */
#include <weft/await.hpp>

#include "tap.h"

#include <coroutine>
#include <memory>
#include <stdexcept>
#include <thread>

namespace
{

/* Done by another thread, which is the test's: the awaiter may be gone as soon as that one has gone on. */
template <class T> struct elsewhere {
	T value;
	std::jthread &by;

	bool await_ready() const noexcept
	{
		return false;
	}

	void await_suspend(std::coroutine_handle<> h)
	{
		std::jthread &to = by;

		to = std::jthread([h] {
			weft_thread_yield();
			h.resume();
		});
	}

	T await_resume()
	{
		return std::move(value);
	}
};

struct ready {
	int &value;

	bool await_ready() const noexcept
	{
		return true;
	}

	void await_suspend(std::coroutine_handle<>) noexcept
	{
	}

	int &await_resume() noexcept
	{
		return value;
	}
};

struct fails {
	std::jthread &by;

	bool await_ready() const noexcept
	{
		return false;
	}

	void await_suspend(std::coroutine_handle<> h)
	{
		std::jthread &to = by;

		to = std::jthread([h] { h.resume(); });
	}

	void await_resume()
	{
		throw std::runtime_error("it failed");
	}
};

struct has_member {
	int value;

	ready operator co_await() noexcept
	{
		return { value };
	}
};

struct has_function {
	int value;
};

ready operator co_await(has_function &f) noexcept
{
	return { f.value };
}

} // namespace

TEST(a_thread_waits_for_what_another_one_does)
{
	std::jthread by;

	for (int i = 0; i < 200; i++)
		CHECK_EQ(weft::await(elsewhere<int>{ i, by }), i);
}

TEST(what_is_done_already_is_no_wait)
{
	int n = 5;

	weft::await(std::suspend_never());
	weft::await(ready{ n }) = 6;
	CHECK_EQ(n, 6);
}

TEST(objects_that_only_move_come_out)
{
	std::jthread by;
	std::unique_ptr<int> p = weft::await(
		elsewhere<std::unique_ptr<int>>{ std::make_unique<int>(7), by });

	CHECK_EQ(*p, 7);
}

TEST(an_exception_comes_out)
{
	std::jthread by;
	bool is_thrown = false;

	try {
		weft::await(fails{ by });
	} catch (const std::runtime_error &e) {
		is_thrown = true;
		CHECK_STR_EQ(e.what(), "it failed");
	}
	CHECK(is_thrown);
}

TEST(both_operators_are_found)
{
	has_member m{ 3 };
	has_function f{ 4 };

	CHECK_EQ(weft::await(m), 3);
	CHECK_EQ(weft::await(f), 4);
}

TEST(no_scope_ends_it)
{
	std::jthread by; /* joined outside of the scope, which would end that */
	weft::scope s(weft::deadline(WEFT_NOW), "over");

	CHECK_EQ(weft::await(elsewhere<int>{ 8, by }), 8);
}
