/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups: threads that are started, waited for and cancelled together. See weft.hpp(7), weft_group(3).
 *
 *	weft::group g({ .name = "crawl", .limit = 8 });
 *	for (const url &u : urls)
 *		g.run([&] { fetch(u); });
 *	g.wait();
 */
#ifndef WEFT_GROUP_HPP
#define WEFT_GROUP_HPP

#include <weft/base.hpp>
#include <weft/group.h>
#include <weft/scope.hpp>

#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>

namespace weft
{

struct group_opts {
	const char *name = nullptr;
	deadline until = {};
	unsigned limit = 0;
	unsigned policy = WEFT_ALL;
	const weft_thread_opts *threads = nullptr;
};

namespace detail
{

template <class T> struct result_state {
	using value = std::conditional_t<std::is_void_v<T>, char, T>;

	std::mutex lock;
	std::condition_variable change;
	std::optional<value> it;
	std::exception_ptr error;

	void publish(std::optional<value> &&it_, std::exception_ptr error_)
	{
		std::lock_guard held(lock);

		it = std::move(it_);
		error = std::move(error_);
		change.notify_all();
	}

	void wait()
	{
		std::unique_lock held(lock);

		/* A scope that is over ends one wait early. */
		while (!it && !error) {
			check(weft_scope_check());
			change.wait(held);
		}
	}
};

} // namespace detail

/* The result of a function of a group, to come. */
template <class T> class result
{
	std::shared_ptr<detail::result_state<T>> s;
	friend class group;

	explicit result(std::shared_ptr<detail::result_state<T>> s_) : s(std::move(s_))
	{
	}

      public:
	/* Waits for it, once; throws what the function has thrown. */
	T get()
	{
		s->wait();
		if (s->error)
			std::rethrow_exception(s->error);
		if constexpr (!std::is_void_v<T>)
			return std::move(*s->it);
	}
};

/*
 * By one thread, but for run(), async() and cancel(), which those in the group may call. The destructor cancels what was not
 * waited for, and waits.
 */
class group
{
	weft_group g{};
	std::mutex lock;
	std::exception_ptr first;
	bool is_waited = true;

	template <class F> struct start {
		group &of;
		F f;

		static int run(void *arg)
		{
			std::unique_ptr<start> self(static_cast<start *>(arg));

			try {
				std::invoke(std::move(self->f));
			} catch (detail::forced_unwind &) {
				throw;
			} catch (...) {
				return self->of.note(std::current_exception());
			}
			return 0;
		}
	};

	/* The error of C that it stands for. */
	int note(std::exception_ptr e)
	{
		{
			std::lock_guard held(lock);

			if (!first)
				first = e;
		}
		try {
			std::rethrow_exception(e);
		} catch (const std::system_error &s) {
			return s.code().value() > 0 ? -s.code().value() : -EIO;
		} catch (...) {
			return -EIO;
		}
	}

      public:
	explicit group(const group_opts &o = {}) noexcept
	{
		g.name = o.name;
		g.deadline = o.until.time() == WEFT_NEVER ? 0 : o.until.time();
		g.limit = o.limit;
		g.policy = o.policy;
		g.opts = o.threads;
	}

	group(const group &) = delete;
	group &operator=(const group &) = delete;

	~group()
	{
		if (is_waited)
			return;
		weft_group_cancel(&g);
		(void)weft_group_wait(&g);
	}

	/* Throws canceled, timed_out: it is over, and f is not called. */
	template <class F> void run(F &&f)
	{
		using begin = start<std::decay_t<F>>;
		auto s = std::make_unique<begin>(begin{ *this, std::forward<F>(f) });

		is_waited = false;
		detail::check(weft_group_go(&g, begin::run, s.get()));
		(void)s.release();
	}

	/* The same, with what f returns. */
	template <class F> auto async(F &&f) -> result<std::invoke_result_t<std::decay_t<F>>>
	{
		using T = std::invoke_result_t<std::decay_t<F>>;
		using state = detail::result_state<T>;
		auto s = std::make_shared<state>();

		run([s, f = std::decay_t<F>(std::forward<F>(f))]() mutable {
			try {
				if constexpr (std::is_void_v<T>) {
					std::invoke(std::move(f));
					s->publish('\0', nullptr);
				} else {
					s->publish(std::invoke(std::move(f)), nullptr);
				}
			} catch (detail::forced_unwind &) {
				s->publish({}, std::make_exception_ptr(canceled()));
				throw;
			} catch (...) {
				s->publish({}, std::current_exception());
				throw;
			}
		});
		return result<T>(s);
	}

	/* All have ended. Throws the first exception of them; with WEFT_ANY, only if all have failed. */
	void wait()
	{
		const int ret = weft_group_wait(&g);
		std::exception_ptr e = std::exchange(first, nullptr);

		is_waited = true;
		if (ret < 0 && e)
			std::rethrow_exception(e);
		detail::check(ret);
	}

	void cancel() noexcept
	{
		weft_group_cancel(&g);
	}
};

} // namespace weft

#endif
