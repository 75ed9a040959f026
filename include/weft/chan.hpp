/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events, channels, and waits for several of them. See weft.hpp(7), weft_chan(3).
 *
 *	weft::chan<job> jobs(64, "jobs");
 *	for (job &j : jobs)	(until it is closed)
 *		...
 *	weft::select(weft::recv(jobs, [&](job j) { ... }), weft::on(stop, [&] { ... }), weft::until(5s));
 */
#ifndef WEFT_CHAN_HPP
#define WEFT_CHAN_HPP

#include <weft/base.hpp>
#include <weft/chan.h>
#include <weft/event.h>
#include <weft/select.h>

#include <array>
#include <concepts>
#include <cstddef>
#include <functional>
#include <iterator>
#include <memory>
#include <new>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

namespace weft
{

class event
{
	weft_event e{};

      public:
	event() noexcept = default;
	event(const event &) = delete;
	event &operator=(const event &) = delete;

	void set() noexcept
	{
		weft_event_set(&e);
	}

	void clear() noexcept
	{
		weft_event_clear(&e);
	}

	bool is_set() const noexcept
	{
		return weft_event_is_set(&e);
	}

	void wait(deadline until = {})
	{
		detail::check(weft_event_wait(&e, until.time()));
	}

	weft_event *get() noexcept
	{
		return &e;
	}
};

namespace detail
{

/* The item that travels: the object itself if its bytes are all there is to it, else a pointer that owns it. */
template <class T, bool = std::is_trivially_copyable_v<T> &&std::is_default_constructible_v<T>>
struct parcel {
	T it;

	static parcel pack(T &&v)
	{
		return { std::move(v) };
	}

	T unpack() noexcept(std::is_nothrow_move_constructible_v<T>)
	{
		return std::move(it);
	}

	void drop() noexcept
	{
	}
};

template <class T> struct parcel<T, false> {
	T *it;

	static parcel pack(T &&v)
	{
		return { new T(std::move(v)) };
	}

	T unpack()
	{
		std::unique_ptr<T> owner(it);

		return std::move(*owner);
	}

	void drop() noexcept
	{
		delete it;
	}
};

} // namespace detail

/* Objects of T from thread to thread, in order. Neither copied nor moved itself. */
template <class T> class chan
{
	using parcel = detail::parcel<T>;

	weft_chan *ch;

      public:
	/* capacity 0: a sender waits for a receiver. Throws std::bad_alloc. */
	explicit chan(std::size_t capacity = 0, const char *name = nullptr)
	    : ch(weft_chan_new(sizeof(parcel), capacity, name))
	{
		if (!ch)
			throw std::bad_alloc();
	}

	chan(const chan &) = delete;
	chan &operator=(const chan &) = delete;

	/* Items in it are destroyed. */
	~chan()
	{
		parcel p;

		while (weft_chan_recv_bytes(ch, &p, sizeof(p), WEFT_NOW) == 0)
			p.drop();
		weft_chan_free(ch);
	}

	/* False: it is closed. Throws timed_out, canceled. */
	bool send(T v, deadline until = {})
	{
		parcel p = parcel::pack(std::move(v));
		const int ret = weft_chan_send_bytes(ch, &p, sizeof(p), until.time());

		if (ret < 0)
			p.drop();
		if (ret == -EPIPE)
			return false;
		detail::check(ret);
		return true;
	}

	/* Nothing: it is closed, and empty. Throws timed_out, canceled. */
	std::optional<T> recv(deadline until = {})
	{
		parcel p;
		const int ret = weft_chan_recv_bytes(ch, &p, sizeof(p), until.time());

		if (ret == -EPIPE)
			return std::nullopt;
		detail::check(ret);
		return p.unpack();
	}

	void close() noexcept
	{
		weft_chan_close(ch);
	}

	std::size_t count() const noexcept
	{
		return weft_chan_count(ch);
	}

	weft_chan *get() noexcept
	{
		return ch;
	}

	/* The items that are received, until it is closed and empty. */
	class iterator
	{
		chan *of = nullptr;
		std::optional<T> it;
		friend class chan;

		explicit iterator(chan *of_) : of(of_), it(of_->recv())
		{
		}

	      public:
		using iterator_concept = std::input_iterator_tag;
		using difference_type = std::ptrdiff_t;
		using value_type = T;

		T &operator*() noexcept
		{
			return *it;
		}

		iterator &operator++()
		{
			it = of->recv();
			return *this;
		}

		void operator++(int)
		{
			++*this;
		}

		friend bool operator==(const iterator &i, std::default_sentinel_t) noexcept
		{
			return !i.it;
		}
	};

	iterator begin()
	{
		return iterator(this);
	}

	std::default_sentinel_t end() const noexcept
	{
		return {};
	}

	/* A case of select(). */
	template <class F> class receives
	{
		chan &of;
		F f;
		parcel p;

	      public:
		receives(chan &of_, F f_) : of(of_), f(std::move(f_))
		{
		}

		void prepare(weft_op &op, weft_time &)
		{
			op = WEFT_RECV(of.get(), &p);
		}

		void done(const weft_op &op)
		{
			detail::check(op.result);
			std::invoke(f, p.unpack());
		}

		void drop() noexcept
		{
		}
	};

	template <class F> class sends
	{
		chan &of;
		F f;
		parcel p;
		bool is_ours = true;

	      public:
		sends(chan &of_, T &&v, F f_)
		    : of(of_), f(std::move(f_)), p(parcel::pack(std::move(v)))
		{
		}

		void prepare(weft_op &op, weft_time &)
		{
			op = WEFT_SEND(of.get(), &p);
		}

		void done(const weft_op &op)
		{
			is_ours = op.result < 0;
			detail::check(op.result);
			std::invoke(f);
		}

		/* It was not sent. */
		void drop() noexcept
		{
			if (is_ours)
				p.drop();
		}
	};
};

/*
 * Tokens, which are nothing but a number: a semaphore. send() is its post, and waits while there are capacity of them; recv() its
 * wait.
 */
template <> class chan<void>
{
	weft_chan *ch;

	static bool is_done(int ret)
	{
		if (ret == -EPIPE)
			return false;
		detail::check(ret);
		return true;
	}

      public:
	/* capacity 0: a sender waits for a receiver. Throws std::bad_alloc. */
	explicit chan(std::size_t capacity = 0, const char *name = nullptr)
	    : ch(weft_chan_new(0, capacity, name))
	{
		if (!ch)
			throw std::bad_alloc();
	}

	chan(const chan &) = delete;
	chan &operator=(const chan &) = delete;

	~chan()
	{
		weft_chan_free(ch);
	}

	/* False: it is closed. Throws timed_out, canceled. */
	bool send(deadline until = {})
	{
		return is_done(weft_chan_give(ch, until.time()));
	}

	/* False: it is closed, and empty. Throws timed_out, canceled. */
	bool recv(deadline until = {})
	{
		return is_done(weft_chan_take(ch, until.time()));
	}

	void close() noexcept
	{
		weft_chan_close(ch);
	}

	std::size_t count() const noexcept
	{
		return weft_chan_count(ch);
	}

	weft_chan *get() noexcept
	{
		return ch;
	}
};

namespace detail
{

template <class F> struct on_token {
	weft_chan *ch;
	int kind; /* WEFT_OP_RECV, WEFT_OP_SEND */
	F f;

	void prepare(weft_op &op, weft_time &)
	{
		op = WEFT_TAKE(ch);
		op.kind = kind;
	}

	void done(const weft_op &op)
	{
		detail::check(op.result);
		std::invoke(f);
	}

	void drop() noexcept
	{
	}
};

template <class F> struct on_event {
	weft_event *e;
	F f;

	void prepare(weft_op &op, weft_time &)
	{
		op = WEFT_ON(e);
	}

	void done(const weft_op &)
	{
		std::invoke(f);
	}

	void drop() noexcept
	{
	}
};

template <class F> struct on_fd {
	int fd;
	short events;
	F f;

	void prepare(weft_op &op, weft_time &)
	{
		op = WEFT_FD(fd, events);
	}

	void done(const weft_op &op)
	{
		if constexpr (std::is_invocable_v<F &, short>)
			std::invoke(f, op.revents);
		else
			std::invoke(f);
	}

	void drop() noexcept
	{
	}
};

template <class F> struct on_time {
	weft_time at;
	F f;

	void prepare(weft_op &op, weft_time &until)
	{
		op = weft_op{};
		if (at < until)
			until = at;
	}

	void done(const weft_op &)
	{
		std::invoke(f);
	}

	void drop() noexcept
	{
	}
};

struct nothing {
	void operator()() const noexcept
	{
	}
};

} // namespace detail

/* Cases of select(). f is called when it is the one that is done; a channel that is closed makes select() throw weft::closed. */
template <class T, class F> auto recv(chan<T> &ch, F f)
{
	return typename chan<T>::template receives<F>(ch, std::move(f));
}

template <class T, class F = detail::nothing>
auto send(chan<T> &ch, std::type_identity_t<T> v, F f = {})
{
	return typename chan<T>::template sends<F>(ch, std::move(v), std::move(f));
}

/* Of a token; f takes nothing. */
template <class F = detail::nothing> auto recv(chan<void> &ch, F f = {})
{
	return detail::on_token<F>{ ch.get(), WEFT_OP_RECV, std::move(f) };
}

template <class F = detail::nothing> auto send(chan<void> &ch, F f = {})
{
	return detail::on_token<F>{ ch.get(), WEFT_OP_SEND, std::move(f) };
}

template <class F = detail::nothing> auto on(event &e, F f = {})
{
	return detail::on_event<F>{ e.get(), std::move(f) };
}

/* f may take what the descriptor is ready for, as poll(2) has it. */
template <class F = detail::nothing> auto on(int fd, short events, F f = {})
{
	return detail::on_fd<F>{ fd, events, std::move(f) };
}

/* No longer than until then: one that is done is no error. */
template <class F = detail::nothing> auto until(deadline at, F f = {})
{
	return detail::on_time<F>{ at.time(), std::move(f) };
}

/* Waits for the first of them, in the order written, and does that one. Returns: which. Throws timed_out, canceled: scopes. */
template <class... Case> std::size_t select(Case &&...cases)
{
	std::array<weft_op, sizeof...(cases)> ops;
	std::array<weft_time, sizeof...(cases)> times;
	weft_time until = WEFT_NEVER;
	std::size_t i = 0, nr = 0;
	int ret;
	struct dropper {
		std::tuple<Case &...> all;

		~dropper()
		{
			std::apply([](Case &...c) { (c.drop(), ...); }, all);
		}
	} drops{ { cases... } };

	times.fill(WEFT_NEVER);
	((cases.prepare(ops[i], times[i]), i++), ...);
	for (i = 0; i < times.size(); i++)
		if (times[i] < until) {
			until = times[i];
			nr = i;
		}
	ret = weft_select(ops.data(), static_cast<unsigned>(ops.size()), until);
	/* A scope's error is not that of the case: that one's time may not have come. */
	if (ret == -ETIMEDOUT && until != WEFT_NEVER && weft_now() >= until)
		ret = static_cast<int>(nr);
	detail::check(ret);
	nr = static_cast<std::size_t>(ret);
	i = 0;
	((i++ == nr ? cases.done(ops[nr]) : void()), ...);
	return nr;
}

} // namespace weft

#endif
