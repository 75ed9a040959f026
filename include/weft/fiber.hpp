/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generators: functions that yield one value after the other. See weft.hpp(7).
 *
 *	for (int x : weft::generator<int>([](auto yield) { for (int i = 0; i < 3; i++) yield(i); }))
 *		std::cout << x;
 */
#ifndef WEFT_FIBER_HPP
#define WEFT_FIBER_HPP

#include <weft/base.hpp>
#include <weft/fiber.h>

#include <concepts>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <functional>
#include <iterator>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace weft
{

namespace detail
{

/* Of one generator: what its two sides tell each other. */
struct generator_state {
	weft_fiber *fiber = nullptr;
	void *value = nullptr; /* what was yielded last, on the fiber's stack */
	std::exception_ptr error;
	const char *name = nullptr;
	int nr_unwound = 0;       /* objects of class unwound */
	bool is_left = false;     /* nobody wants another value */
	bool has_unwound = false; /* as far as the first function */

	virtual ~generator_state() = default;
	virtual void run() = 0;
};

[[noreturn]] inline void unwound_was_swallowed(const char *name) noexcept
{
	std::fprintf(
		stderr,
		"weft: generator \"%s\" has caught weft::unwound and not thrown it on, so that it "
		"cannot be destroyed\n",
		name ? name : "");
	std::terminate();
}

} // namespace detail

/*
 * Thrown by yield in a generator that is destroyed before its end, so that what is on its stack is destroyed. It is not a
 * std::exception. Who catches it has to throw it on: once it is gone otherwise, the program is terminated, by name.
 */
class unwound
{
	detail::generator_state *of;

      public:
	explicit unwound(detail::generator_state *of_) noexcept : of(of_)
	{
		of->nr_unwound++;
	}

	unwound(const unwound &u) noexcept : of(u.of)
	{
		of->nr_unwound++;
	}

	unwound &operator=(const unwound &) = delete;

	~unwound()
	{
		if (--of->nr_unwound == 0 && !of->has_unwound)
			detail::unwound_was_swallowed(of->name);
	}
};

/*
 * A sequence that a function yields, from wherever it calls yield: deep in calls and recursions as well. Each value is an
 * object on the generator's own stack, valid until the next is asked for.
 *
 * To be used by the thread that made it. Moves; does not copy.
 */
template <class T> class generator
{
	using state = detail::generator_state;

	template <class F> struct state_of final : state {
		F f;

		explicit state_of(F &&f_) : f(std::move(f_))
		{
		}

		void run() override;
	};

	std::unique_ptr<state> s;

	static void *run(void *first) noexcept(false)
	{
		auto *s = static_cast<state *>(first);

		try {
			s->run();
		} catch (unwound &) {
			s->has_unwound = true;
		} catch (detail::forced_unwind &) {
			throw;
		} catch (...) {
			s->error = std::current_exception();
		}
		return nullptr;
	}

	/* nullptr: there is none. */
	static T *next(state *s)
	{
		if (weft_fiber_is_done(s->fiber))
			return nullptr;
		s->value = nullptr;
		(void)weft_fiber_resume(s->fiber, s);
		if (s->error)
			std::rethrow_exception(std::exchange(s->error, nullptr));
		return static_cast<T *>(s->value);
	}

	void leave() noexcept
	{
		if (!s)
			return;
		/* It hangs in a yield: or else it has not begun, or is over. */
		if (s->value) {
			s->is_left = true;
			(void)weft_fiber_resume(s->fiber, s.get());
		}
		weft_fiber_free(s->fiber);
		s.reset();
	}

      public:
	/* The function gets it by value: copies are the same one. */
	class yield
	{
		state *s;
		friend class generator;

		explicit yield(state *s_) noexcept : s(s_)
		{
		}

		void give(void *value) const
		{
			if (!s->is_left) {
				s->value = value;
				(void)weft_fiber_yield(nullptr);
			}
			if (s->is_left)
				throw unwound(s);
		}

	      public:
		void operator()(T &value) const
		{
			give(const_cast<std::remove_const_t<T> *>(std::addressof(value)));
		}

		void operator()(T &&value) const
		{
			give(const_cast<std::remove_const_t<T> *>(std::addressof(value)));
		}

		void operator()(const T &value) const
			requires(!std::is_const_v<T> && std::copy_constructible<T>)
		{
			T copy(value);

			give(std::addressof(copy));
		}
	};

	/* stack_bytes 0: WEFT_FIBER_STACK. Throws std::bad_alloc. */
	template <class F>
	requires std::invocable<F &, yield> explicit generator(F f, const char *name = nullptr,
							       std::size_t stack_bytes = 0)
	    : s(std::make_unique<state_of<F>>(std::move(f)))
	{
		const weft_fiber_opts opts = { sizeof(opts), name, stack_bytes };

		s->name = name;
		s->fiber = weft_fiber_new(run, &opts);
		if (!s->fiber)
			throw std::bad_alloc();
	}

	generator(generator &&) noexcept = default;

	generator &operator=(generator &&other) noexcept
	{
		if (this != &other) {
			leave();
			s = std::move(other.s);
		}
		return *this;
	}

	~generator()
	{
		leave();
	}

	/* Stays valid when the generator is moved. */
	class iterator
	{
		state *s = nullptr;
		T *value = nullptr;
		friend class generator;

		explicit iterator(state *s_) : s(s_), value(next(s_))
		{
		}

	      public:
		using iterator_concept = std::input_iterator_tag;
		using difference_type = std::ptrdiff_t;
		using value_type = std::remove_cv_t<T>;

		iterator() = default;

		T &operator*() const noexcept
		{
			return *value;
		}

		T *operator->() const noexcept
		{
			return value;
		}

		iterator &operator++()
		{
			value = next(s);
			return *this;
		}

		void operator++(int)
		{
			++*this;
		}

		friend bool operator==(const iterator &i, std::default_sentinel_t) noexcept
		{
			return !i.value;
		}
	};

	/* Runs it as far as the first value. Once. */
	iterator begin()
	{
		return iterator(s.get());
	}

	std::default_sentinel_t end() const noexcept
	{
		return {};
	}
};

template <class T> template <class F> void generator<T>::state_of<F>::run()
{
	std::invoke(f, yield(this));
}

} // namespace weft

#endif
