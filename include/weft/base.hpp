/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by libweft's headers for C++: errors, and how long to wait. See weft.hpp(7).
 */
#ifndef WEFT_BASE_HPP
#define WEFT_BASE_HPP

#if __cplusplus < 202002L
#error "libweft's headers for C++ need C++20"
#endif

#include <weft/weft.h>

#include <cerrno>
#include <chrono>
#include <cxxabi.h>
#include <system_error>

namespace weft
{

/* A deadline has passed: the function's own, or that of a scope. */
class timed_out : public std::system_error
{
      public:
	timed_out() : std::system_error(ETIMEDOUT, std::generic_category())
	{
	}
};

/* A scope that the thread is in was cancelled. */
class canceled : public std::system_error
{
      public:
	canceled() : std::system_error(ECANCELED, std::generic_category())
	{
	}
};

/* A channel is closed. */
class closed : public std::system_error
{
      public:
	closed() : std::system_error(EPIPE, std::generic_category())
	{
	}
};

/* The moment until which something may last: never, a duration from now on, or a time of the steady clock. */
class deadline
{
	weft_time at = WEFT_NEVER;

      public:
	constexpr deadline() noexcept = default;

	/* As C has it: WEFT_NOW, weft_now() + 50 * WEFT_MS. */
	constexpr explicit deadline(weft_time at_) noexcept : at(at_)
	{
	}

	template <class Rep, class Period>
	deadline(std::chrono::duration<Rep, Period> d)
	    : at(weft_now() + std::chrono::ceil<std::chrono::nanoseconds>(d).count())
	{
	}

	template <class Duration>
	deadline(std::chrono::time_point<std::chrono::steady_clock, Duration> t)
	    : at(std::chrono::ceil<std::chrono::nanoseconds>(t.time_since_epoch()).count())
	{
	}

	constexpr weft_time time() const noexcept
	{
		return at;
	}
};

namespace detail
{

[[noreturn]] inline void fail(int error)
{
	switch (error) {
	case -ETIMEDOUT:
		throw timed_out();
	case -ECANCELED:
		throw canceled();
	case -EPIPE:
		throw closed();
	default:
		throw std::system_error(-error, std::generic_category());
	}
}

inline int check(int ret)
{
	if (ret < 0)
		fail(ret);
	return ret;
}

/* The exception by which libc unwinds a thread (pthread_exit(), pthread_cancel()) is to be thrown on as well. */
#ifdef __GLIBCXX__
using forced_unwind = abi::__forced_unwind;
#else
struct forced_unwind {
	forced_unwind() = delete;
};
#endif

} // namespace detail

inline void sleep(deadline until)
{
	detail::check(weft_sleep_until(until.time()));
}

} // namespace weft

#endif
