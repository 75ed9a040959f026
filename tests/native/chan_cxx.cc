// SPDX-License-Identifier: Apache-2.0
/* weft::event, weft::chan and weft::select. */
#include <weft/chan.hpp>

#include "tap.h"

#include <memory>
#include <string>
#include <thread>
#include <unistd.h>
#include <poll.h>
#include <vector>

using namespace std::chrono_literals;

namespace
{

struct counted {
	static std::atomic<int> nr;
	int value;

	explicit counted(int v) : value(v)
	{
		nr++;
	}

	counted(counted &&c) noexcept : value(c.value)
	{
		nr++;
	}

	counted &operator=(counted &&) = default;

	~counted()
	{
		nr--;
	}
};
std::atomic<int> counted::nr;

template <class E, class F> bool throws(F f)
{
	try {
		f();
	} catch (const E &) {
		return true;
	}
	return false;
}

} // namespace

TEST(a_channel_is_a_range_until_it_is_closed)
{
	weft::chan<int> ch(4, "numbers");
	long sum = 0;
	std::jthread sender([&] {
		for (int i = 1; i <= 1000; i++)
			ch.send(i);
		ch.close();
	});

	for (int &x : ch)
		sum += x;
	CHECK_EQ(sum, 500500);
	CHECK(!ch.recv());
	CHECK(!ch.send(1));
}

TEST(objects_travel_whole)
{
	weft::chan<std::string> words(2);
	weft::chan<std::unique_ptr<int>> owners;
	std::jthread sender([&] {
		words.send("a word that is too long for a small string, by far");
		words.close();
		owners.send(std::make_unique<int>(5));
	});

	for (std::string &w : words)
		CHECK_STR_EQ(w.c_str(), "a word that is too long for a small string, by far");
	CHECK_EQ(**owners.recv(), 5);
}

TEST(what_is_not_received_is_destroyed)
{
	counted::nr = 0;
	{
		weft::chan<counted> ch(3);

		for (int i = 0; i < 3; i++)
			ch.send(counted(i));
		CHECK_EQ(ch.count(), 3);
		CHECK_EQ(counted::nr.load(), 3);
		CHECK(throws<weft::timed_out>([&] { ch.send(counted(4), 1ms); }));
		CHECK_EQ(ch.recv()->value, 0);
		ch.close();
		CHECK(!ch.send(counted(5)));
	}
	CHECK_EQ(counted::nr.load(), 0);
}

TEST(a_channel_of_nothing_is_a_semaphore)
{
	weft::chan<void> slots(2, "slots");
	std::atomic<int> inside{ 0 }, most{ 0 };
	{
		std::vector<std::jthread> users;

		for (int i = 0; i < 8; i++)
			users.emplace_back([&] {
				for (int k = 0; k < 50; k++) {
					CHECK(slots.send());
					int now = ++inside, seen = most;

					while (now > seen && !most.compare_exchange_weak(seen, now))
						;
					weft_thread_yield();
					inside--;
					CHECK(slots.recv());
				}
			});
	}
	CHECK_EQ(slots.count(), 0);
	CHECK(most <= 2);
	CHECK(throws<weft::timed_out>([&] { slots.recv(1ms); }));
	slots.send();
	slots.send();
	CHECK(throws<weft::timed_out>([&] { slots.send(weft::deadline(WEFT_NOW)); }));
	slots.close();
	CHECK(!slots.send());
	CHECK(slots.recv());
	CHECK(slots.recv());
	CHECK(!slots.recv());
}

TEST(a_select_takes_tokens_and_gives_them)
{
	weft::chan<void> a(1), b(1);
	int taken = 0, given = 0;

	a.send();
	CHECK_EQ(weft::select(weft::recv(a, [&] { taken++; }), weft::send(b, [&] { given++; })), 0);
	CHECK_EQ(weft::select(weft::recv(a, [&] { taken++; }), weft::send(b, [&] { given++; })), 1);
	CHECK_EQ(taken, 1);
	CHECK_EQ(given, 1);
	CHECK_EQ(b.count(), 1);
	CHECK_EQ(weft::select(weft::recv(a), weft::send(b), weft::until(1ms)), 2);
	a.close();
	CHECK(throws<weft::closed>([&] { weft::select(weft::recv(a)); }));
}

TEST(deadlines_are_durations_and_moments)
{
	weft::chan<int> ch(1);
	weft::event e;
	auto began = std::chrono::steady_clock::now();

	CHECK(throws<weft::timed_out>([&] { (void)ch.recv(2ms); }));
	CHECK(throws<weft::timed_out>([&] { e.wait(std::chrono::steady_clock::now() + 2ms); }));
	CHECK(throws<std::system_error>([&] { e.wait(weft::deadline(WEFT_NOW)); }));
	CHECK(std::chrono::steady_clock::now() - began >= 4ms);
	e.set();
	e.wait(weft::deadline(WEFT_NOW));
	CHECK(e.is_set());
	e.clear();
	CHECK(!e.is_set());
	weft::sleep(1ms);
}

TEST(select_does_the_first_that_is_ready)
{
	weft::chan<int> numbers(4);
	weft::chan<std::string> words(1);
	weft::event stop;
	int got = 0, nr_stops = 0;
	std::string word;
	auto once = [&] {
		return weft::select(weft::on(stop, [&] { nr_stops++; }),
				    weft::recv(numbers, [&](int n) { got += n; }),
				    weft::recv(words, [&](std::string s) { word = std::move(s); }),
				    weft::until(1ms));
	};

	CHECK_EQ(once(), 3);
	words.send("hello, and something to make it long enough for the heap");
	numbers.send(7);
	CHECK_EQ(once(), 1);
	CHECK_EQ(once(), 2);
	CHECK_EQ(got, 7);
	CHECK_STR_EQ(word.substr(0, 5).c_str(), "hello");
	stop.set();
	numbers.send(1);
	CHECK_EQ(once(), 0);
	CHECK_EQ(nr_stops, 1);
	numbers.close();
	stop.clear();
	CHECK_EQ(once(), 1);
	CHECK(throws<weft::closed>([&] { once(); }));
}

TEST(what_select_does_not_send_is_destroyed)
{
	bool is_sent = false;

	counted::nr = 0;
	{
		weft::chan<counted> full(1), open(1);

		full.send(counted(0));
		CHECK_EQ(weft::select(weft::send(full, counted(1)),
				      weft::send(open, counted(2), [&] { is_sent = true; })),
			 1);
		CHECK(is_sent);
		CHECK_EQ(open.recv()->value, 2);
		CHECK_EQ(full.recv()->value, 0);
		CHECK_EQ(counted::nr.load(), 0);
	}
}

TEST(select_takes_descriptors)
{
	int ends[2], seen = 0;
	char c;

	CHECK_EQ(pipe(ends), 0);
	CHECK_EQ(weft::select(weft::on(ends[0], POLLIN), weft::until(1ms)), 1);
	CHECK_EQ(write(ends[1], "x", 1), 1);
	CHECK_EQ(weft::select(weft::on(ends[0], POLLIN, [&](short r) { seen = r; }),
			      weft::until(1s)),
		 0);
	CHECK(seen & POLLIN);
	CHECK_EQ(read(ends[0], &c, 1), 1);
	close(ends[0]);
	close(ends[1]);
}
