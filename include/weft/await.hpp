/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What C++20's coroutines wait for, waited for by a thread. See weft.hpp(7).
 *
 *	int n = weft::await(connection.async_read(buffer));
 *
 * The thread parks, which is cheap; nothing but the awaitable decides who goes on with what. Invariant: the frame of the small
 * coroutine that does it is there until the one that resumes it has set the event, the last thing of that frame that it touches.
 */
#ifndef WEFT_AWAIT_HPP
#define WEFT_AWAIT_HPP

#include <weft/base.hpp>
#include <weft/chan.hpp>
#include <weft/scope.hpp>

#ifdef __cpp_impl_coroutine

#include <coroutine>
#include <exception>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace weft
{

namespace detail
{

template <class A> decltype(auto) awaiter_of(A &&a)
{
	if constexpr (requires { std::forward<A>(a).operator co_await(); })
		return std::forward<A>(a).operator co_await();
	else if constexpr (requires { operator co_await(std::forward<A>(a)); })
		return operator co_await(std::forward<A>(a));
	else
		return std::forward<A>(a);
}

template <class A>
using awaited_t =
	decltype(std::declval<decltype(awaiter_of(std::declval<A>())) &>().await_resume());

/* What came out of it. A reference is kept as an address. */
template <class T> struct outcome {
	std::optional<T> it;

	template <class U> void return_value(U &&u)
	{
		it.emplace(std::forward<U>(u));
	}

	T take()
	{
		return std::move(*it);
	}
};

template <class T> struct outcome<T &> {
	T *it = nullptr;

	void return_value(T &t) noexcept
	{
		it = std::addressof(t);
	}

	T &take() noexcept
	{
		return *it;
	}
};

template <> struct outcome<void> {
	void return_void() noexcept
	{
	}

	void take() noexcept
	{
	}
};

template <class T> struct waiting {
	/* An rvalue reference may be to what ends with the awaiter: its object is moved out. */
	using kept =
		std::conditional_t<std::is_rvalue_reference_v<T>, std::remove_reference_t<T>, T>;

	struct promise_type : outcome<kept> {
		event done;
		std::exception_ptr error;

		waiting get_return_object() noexcept
		{
			return { std::coroutine_handle<promise_type>::from_promise(*this) };
		}

		std::suspend_never initial_suspend() noexcept
		{
			return {};
		}

		struct at_end {
			bool await_ready() noexcept
			{
				return false;
			}

			/* The frame is gone as soon as the event is set. */
			void await_suspend(std::coroutine_handle<promise_type> h) noexcept
			{
				h.promise().done.set();
			}

			void await_resume() noexcept
			{
			}
		};

		at_end final_suspend() noexcept
		{
			return {};
		}

		void unhandled_exception() noexcept
		{
			error = std::current_exception();
		}
	};

	std::coroutine_handle<promise_type> frame;

	kept get()
	{
		struct destroyer {
			std::coroutine_handle<promise_type> frame;

			~destroyer()
			{
				frame.destroy();
			}
		} destroys{ frame };
		/* The awaitable may go on with the frame at any time, so no scope ends the wait. */
		shield s({}, "await");

		frame.promise().done.wait();
		if (frame.promise().error)
			std::rethrow_exception(frame.promise().error);
		return frame.promise().take();
	}
};

template <class A> waiting<awaited_t<A>> wait_for(A &&a)
{
	co_return co_await std::forward<A>(a);
}

} // namespace detail

/*
 * Waits until a, whatever could stand behind co_await, is done. Returns what it returns, and throws what it throws. By any thread;
 * parks. No scope ends it: what is to be stopped is stopped by the awaitable's own means.
 */
template <class A> decltype(auto) await(A &&a)
{
	return detail::wait_for<A>(std::forward<A>(a)).get();
}

} // namespace weft

#endif
#endif
