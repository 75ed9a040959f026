/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that can be stopped wherever they wait. See weft.hpp(7), weft_thread(3).
 *
 *	weft::thread t([&](std::stop_token stop) { ... });
 */
#ifndef WEFT_THREAD_HPP
#define WEFT_THREAD_HPP

#include <weft/base.hpp>
#include <weft/scope.hpp>
#include <weft/thread.h>

#include <functional>
#include <memory>
#include <stop_token>
#include <tuple>
#include <type_traits>
#include <utility>

namespace weft
{

/*
 * As std::jthread: it is stopped and joined when it is destroyed, and an exception that leaves its function terminates the program.
 * A stop also ends what it waits for, in libc, too: the whole function is in a scope that is cancelled by it.
 */
class thread
{
	std::stop_source source{ std::nostopstate };
	weft_thread *handle = nullptr;

	template <class F, class... Args> struct start {
		std::stop_token token;
		std::tuple<F, Args...> call;

		void operator()()
		{
			scope s({}, "thread");
			std::stop_callback on_stop(token, [&s] { s.cancel(); });

			std::apply(
				[this](F &f, Args &...args) {
					if constexpr (std::is_invocable_v<F, std::stop_token,
									  Args...>)
						std::invoke(std::move(f), token,
							    std::move(args)...);
					else
						std::invoke(std::move(f), std::move(args)...);
				},
				call);
		}

		static int run(void *arg)
		{
			std::unique_ptr<start> self(static_cast<start *>(arg));

			(*self)();
			return 0;
		}
	};

	void leave()
	{
		if (joinable()) {
			request_stop();
			join();
		}
	}

      public:
	thread() noexcept = default;

	/* Throws std::system_error: no thread could be made. */
	template <class F, class... Args>
	requires(!std::is_same_v<std::remove_cvref_t<F>, thread> &&
		 !std::is_same_v<std::remove_cvref_t<F>,
				 weft_thread_opts>) explicit thread(F &&f, Args &&...args)
	    : thread(weft_thread_opts{}, std::forward<F>(f), std::forward<Args>(args)...)
	{
	}

	template <class F, class... Args>
	thread(weft_thread_opts opts, F &&f, Args &&...args) : source(std::stop_source())
	{
		using begin = start<std::decay_t<F>, std::decay_t<Args>...>;
		auto s = std::make_unique<begin>(begin{
			source.get_token(), { std::forward<F>(f), std::forward<Args>(args)... } });

		opts.size = sizeof(opts);
		detail::check(weft_thread_spawn(begin::run, s.get(), &opts, &handle));
		(void)s.release();
	}

	thread(thread &&t) noexcept
	    : source(std::exchange(t.source, std::stop_source(std::nostopstate))),
	      handle(std::exchange(t.handle, nullptr))
	{
	}

	thread &operator=(thread &&t) noexcept
	{
		if (this != &t) {
			leave();
			source = std::exchange(t.source, std::stop_source(std::nostopstate));
			handle = std::exchange(t.handle, nullptr);
		}
		return *this;
	}

	~thread()
	{
		if (!joinable())
			return;
		/* An object that is destroyed waits for its thread, whatever scopes are over. */
		shield s({}, "~thread");

		leave();
	}

	bool joinable() const noexcept
	{
		return handle;
	}

	/* Throws timed_out or canceled: it goes on, and is to be joined later. */
	void join(deadline until = {})
	{
		if (!handle)
			throw std::system_error(EINVAL, std::generic_category());
		detail::check(weft_thread_join(handle, nullptr, until.time()));
		handle = nullptr;
	}

	bool request_stop() noexcept
	{
		return source.request_stop();
	}

	std::stop_source get_stop_source() const noexcept
	{
		return source;
	}

	std::stop_token get_stop_token() const noexcept
	{
		return source.get_token();
	}

	/* For pthread_kill() and its like. */
	pthread_t native_handle() const
	{
		return weft_thread_pthread(handle);
	}
};

} // namespace weft

#endif
