// SPDX-License-Identifier: Apache-2.0
/* weft::fork_join and weft::for_each. */
#include <weft/weft.hpp>

#include "tap.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

static long fib(int n)
{
	long a = 0, b = 0;

	if (n < 2)
		return n;
	weft::fork_join([&] { a = fib(n - 1); }, [&] { b = fib(n - 2); });
	return a + b;
}

TEST(both_are_called)
{
	CHECK_EQ(fib(20), 6765);
}

TEST(any_number_is_called)
{
	int a = 0, b = 0, c = 0, d = 0;

	weft::fork_join([&] { a = 1; });
	weft::fork_join([&] { b = 2; }, [&] { c = 3; }, [&] { d = 4; });
	CHECK_EQ(a * 1000 + b * 100 + c * 10 + d, 1234);
}

static std::string thrown(bool left, bool right, int *out_uncaught)
{
	try {
		weft::fork_join(
			[&] {
				if (left)
					throw std::runtime_error("left");
			},
			[&] {
				*out_uncaught = std::uncaught_exceptions();
				if (right)
					throw std::runtime_error("right");
			});
	} catch (const std::runtime_error &e) {
		return e.what();
	}
	return "none";
}

TEST(exceptions_leave_it_when_all_are_over)
{
	for (int i = 0; i < 200; i++) {
		int uncaught = -1;
		bool is_right = thrown(false, false, &uncaught) == "none" && !uncaught;

		uncaught = -1;
		is_right = is_right && thrown(true, false, &uncaught) == "left" && !uncaught;
		uncaught = -1;
		is_right = is_right && thrown(false, true, &uncaught) == "right" && !uncaught;
		uncaught = -1;
		is_right = is_right && thrown(true, true, &uncaught) == "left" && !uncaught;
		if (!is_right) {
			CHECK(is_right);
			return;
		}
	}
}

TEST(for_each_element_once)
{
	std::vector<int> v(10000);

	std::iota(v.begin(), v.end(), 0);
	weft::for_each(v, [](int &n) { n = 2 * n + 1; });
	CHECK_EQ(std::accumulate(v.begin(), v.end(), 0l), 100000000);
	weft::for_each(
		std::views::iota(0, 10000), [&](int i) { v[static_cast<size_t>(i)] -= i; }, 3);
	CHECK_EQ(std::accumulate(v.begin(), v.end(), 0l), 50005000);
	v.clear();
	weft::for_each(v, [](int &) { CHECK(!"nothing is there"); });
}

TEST(for_each_throws_the_first)
{
	std::vector<int> v(1000);
	std::atomic<int> nr{ 0 };
	bool is_caught = false;

	try {
		weft::for_each(
			v,
			[&](int &) {
				nr++;
				throw std::out_of_range("one");
			},
			10);
	} catch (const std::out_of_range &e) {
		is_caught = true;
		CHECK_STR_EQ(e.what(), "one");
	}
	CHECK(is_caught);
	CHECK(nr >= 1 && nr <= 100);
}

template <class I> static void quicksort(I first, I last)
{
	if (last - first < 64) {
		std::sort(first, last);
		return;
	}
	auto pivot = *(first + (last - first) / 2);
	I middle = std::partition(first, last, [=](const auto &x) { return x < pivot; });
	I upper = std::partition(middle, last, [=](const auto &x) { return !(pivot < x); });

	weft::fork_join([=] { quicksort(first, middle); }, [=] { quicksort(upper, last); });
}

TEST(a_sort)
{
	std::vector<unsigned> v(50000);
	unsigned x = 7;

	for (unsigned &n : v)
		n = x = x * 1664525 + 1013904223;
	quicksort(v.begin(), v.end());
	CHECK(std::is_sorted(v.begin(), v.end()));
}
