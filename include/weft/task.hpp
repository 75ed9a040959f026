/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls beside each other, for computations. See weft.hpp(7).
 *
 *	weft::fork_join([&] { left(); }, [&] { right(); });
 *	weft::for_each(numbers, [](int &n) { n *= n; });
 */
#ifndef WEFT_TASK_HPP
#define WEFT_TASK_HPP

#include <weft/base.hpp>
#include <weft/task.h>

#include <atomic>
#include <concepts>
#include <cstddef>
#include <exception>
#include <functional>
#include <iterator>
#include <ranges>
#include <utility>

namespace weft
{

namespace detail
{

/* A function object as a task. What it throws is kept for the one that joins it. */
template <class F> struct task {
	F &f;
	std::exception_ptr error{};
	weft_task t{};

	explicit task(F &f_) noexcept : f(f_)
	{
		weft_task_fork(&t, run, this);
	}

	static void run(void *arg) noexcept
	{
		auto *self = static_cast<task *>(arg);

		try {
			std::invoke(self->f);
		} catch (...) {
			self->error = std::current_exception();
		}
	}
};

} // namespace detail

/*
 * Call all of them, beside each other where workers have nothing else to do. All have returned, or thrown, when it does; then it
 * throws what the first of them, in the order they are written, has thrown.
 */
template <class F> void fork_join(F &&f)
{
	std::invoke(f);
}

template <class F, class G, class... Rest> void fork_join(F &&f, G &&g, Rest &&...rest)
{
	auto others = [&] { fork_join(g, rest...); };
	detail::task<decltype(others)> right(others);
	std::exception_ptr error;

	try {
		std::invoke(f);
	} catch (detail::forced_unwind &) {
		weft_task_join(&right.t);
		throw;
	} catch (...) {
		error = std::current_exception();
	}
	/* Outside of any handler, as others may run here. */
	weft_task_join(&right.t);
	if (error)
		std::rethrow_exception(error);
	if (right.error)
		std::rethrow_exception(right.error);
}

namespace detail
{

template <class I, class F> struct each {
	I first;
	F &f;
	std::atomic<bool> has_failed{ false };
	std::exception_ptr error{};

	static void run(std::size_t from, std::size_t to, void *arg) noexcept
	{
		auto *e = static_cast<each *>(arg);

		try {
			for (; from < to && !e->has_failed.load(std::memory_order_relaxed); from++)
				std::invoke(e->f,
					    e->first[static_cast<std::iter_difference_t<I>>(from)]);
		} catch (...) {
			if (!e->has_failed.exchange(true))
				e->error = std::current_exception();
		}
	}
};

} // namespace detail

/*
 * Call f for each element, in no order, beside each other; at most grain of them one after the other, 0: some parts for each
 * worker. After an exception no further element is begun, and the first one is thrown when all that had begun are over.
 */
template <std::ranges::random_access_range R, class F>
requires std::ranges::sized_range<R>
	&&std::invocable<F &, std::ranges::range_reference_t<R>> void for_each(
		R &&range, F f, std::size_t grain = 0)
{
	using each = detail::each<std::ranges::iterator_t<R>, F>;
	each e{ std::ranges::begin(range), f };

	weft_task_for(0, static_cast<std::size_t>(std::ranges::size(range)), grain, each::run, &e);
	if (e.error)
		std::rethrow_exception(e.error);
}

} // namespace weft

#endif
