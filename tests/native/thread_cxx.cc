// SPDX-License-Identifier: Apache-2.0
/* weft::thread, weft::group, weft::scope and weft::shield. */
#include <weft/group.hpp>
#include <weft/thread.hpp>

#include "native.h"
#include "tap.h"

#include <atomic>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <vector>

using namespace std::chrono_literals;

template <class E, class F> static bool throws(F f)
{
	try {
		f();
	} catch (const E &) {
		return true;
	}
	return false;
}

TEST(a_thread_is_joined_where_it_is_destroyed)
{
	std::atomic<int> n{ 0 };

	{
		weft::thread t([&] { n++; });
		weft::thread u(
			[&](std::stop_token stop, int by) {
				n += by;
				CHECK(!stop.stop_requested() || true);
			},
			10);
		weft::thread moved = std::move(t);

		CHECK(!t.joinable() && moved.joinable());
	}
	CHECK_EQ(n.load(), 11);
	CHECK(throws<std::system_error>([] { weft::thread().join(); }));
}

TEST(a_stop_ends_what_the_thread_waits_for)
{
	std::atomic<bool> was_canceled{ false };

	{
		weft::thread t([&](std::stop_token stop) {
			/* Not by looking at the token first: the stop may come before the thread runs. */
			while (!was_canceled)
				try {
					weft::sleep({});
				} catch (const weft::canceled &) {
					was_canceled = stop.stop_requested();
				}
		});

		CHECK(throws<weft::timed_out>([&] { t.join(1ms); }));
		CHECK(t.joinable());
	}
	CHECK(was_canceled.load());
}

TEST(a_stop_ends_a_read)
{
	std::atomic<int> error{ 0 };
	int ends[2];

	if (is_native_run())
		SKIP("natively only libweft's own waits are reached");
	CHECK_EQ(pipe(ends), 0);
	{
		weft::thread t([&] {
			char c;

			if (read(ends[0], &c, 1) < 0)
				error = errno;
		});
	}
	CHECK_EQ(error.load(), ECANCELED);
	close(ends[0]);
	close(ends[1]);
}

TEST(a_scope_is_over_after_its_time)
{
	weft::scope s(5ms, "short");
	int nr = 0;

	CHECK(throws<weft::timed_out>([] { weft::sleep(10s); }));
	CHECK(throws<weft::timed_out>([&] { s.check(); }));
	CHECK(s.why().find("short") == 0);
	{
		weft::shield cleanup(10s);

		weft::sleep(1ms);
		nr++;
	}
	CHECK_EQ(nr, 1);
}

TEST(a_scope_is_cancelled_by_another_thread)
{
	weft::scope s;
	weft::thread t([&] { s.cancel(); });

	CHECK(throws<weft::canceled>([] { weft::sleep({}); }));
}

TEST(a_group_waits_for_all_and_throws_the_first)
{
	std::atomic<int> n{ 0 };
	weft::group g({ .name = "workers", .limit = 3 });

	for (int i = 0; i < 20; i++)
		g.run([&] { n++; });
	g.wait();
	CHECK_EQ(n.load(), 20);
	g.run([] { weft::sleep({}); });
	g.run([] { throw std::runtime_error("first"); });
	try {
		g.wait();
		CHECK(!"it throws");
	} catch (const std::runtime_error &e) {
		CHECK_STR_EQ(e.what(), "first");
	}
	g.run([&] { n++; });
	g.wait();
	CHECK_EQ(n.load(), 21);
}

TEST(a_group_returns_what_its_functions_return)
{
	weft::group g;
	auto a = g.async([] { return 6; });
	auto b = g.async([] { return std::string("seven"); });

	CHECK_EQ(a.get(), 6);
	CHECK_STR_EQ(b.get().c_str(), "seven");
	g.wait();
	auto c = g.async([]() -> int { throw std::out_of_range("no"); });

	CHECK(throws<std::out_of_range>([&] { (void)c.get(); }));
	CHECK(throws<std::out_of_range>([&] { g.wait(); }));
}

TEST(one_that_succeeds_ends_the_others)
{
	weft::group g({ .name = "fastest", .policy = WEFT_ANY });

	g.run([] { weft::sleep({}); });
	g.run([] { throw std::runtime_error("slow"); });
	g.run([] {});
	g.wait();
	CHECK(true);
}

TEST(a_group_that_is_left_is_cancelled)
{
	std::atomic<int> nr{ 0 };

	{
		weft::group g;

		for (int i = 0; i < 5; i++)
			g.run([&] {
				try {
					weft::sleep({});
				} catch (const weft::canceled &) {
					nr++;
					throw;
				}
			});
	}
	CHECK_EQ(nr.load(), 5);
}

TEST(a_group_ends_at_its_deadline)
{
	weft::group g({ .name = "late", .until = 3ms });

	g.run([] { weft::sleep({}); });
	CHECK(throws<weft::timed_out>([&] { g.wait(); }));
}
