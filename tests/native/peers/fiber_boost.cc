// SPDX-License-Identifier: Apache-2.0
/*
 * Follows by behaviour test_fiber.cpp of Boost.Context. Its functions that run on top of a fiber, and stacks of the caller's, have
 * no counterpart here; a fiber that is left is unwound if it is a generator's.
 */
#include <weft/weft.h>
#include <weft/weft.hpp>

#include "tap.h"

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

static void *run(void *(*fn)(void *), void *arg)
{
	weft_fiber *f = weft_fiber_new(fn, nullptr);
	void *value = weft_fiber_resume(f, arg);

	CHECK(weft_fiber_is_done(f));
	weft_fiber_free(f);
	return value;
}

TEST(a_generator_that_was_moved_goes_on_where_it_was)
{
	int i = 1;
	weft::generator<int> a([&](auto yield) {
		yield(i);
		yield(i);
	});
	auto at = a.begin();

	CHECK_EQ(*at, 1);
	weft::generator<int> b(std::move(a));
	i = 3;
	++at;
	CHECK_EQ(*at, 3);
}

TEST(an_exception_is_thrown_and_caught_within_a_fiber)
{
	std::string what;

	run(
		[](void *arg) -> void * {
			try {
				throw std::runtime_error("hello world");
			} catch (const std::exception &e) {
				*static_cast<std::string *>(arg) = e.what();
			}
			return nullptr;
		},
		&what);
	CHECK_STR_EQ(what.c_str(), "hello world");
}

TEST(floating_point_numbers_are_whole_on_both_sides)
{
	double d = 7.13;

	run(
		[](void *arg) -> void * {
			*static_cast<double *>(arg) += 3.45;
			return nullptr;
		},
		&d);
	CHECK(std::fabs(d - 10.58) < 1e-12);
}

TEST(a_fiber_makes_and_runs_another)
{
	int n = 0;

	run(
		[](void *arg) -> void * {
			run(
				[](void *inner) -> void * {
					*static_cast<int *>(inner) = 3;
					return nullptr;
				},
				arg);
			*static_cast<int *>(arg) += 10;
			return nullptr;
		},
		&n);
	CHECK_EQ(n, 13);
}

TEST(one_that_is_left_destroys_what_it_has)
{
	auto p = std::make_shared<int>(0);

	{
		weft::generator<int> g([copy = p](auto yield) {
			auto another = copy;

			for (;;)
				yield(static_cast<int>(another.use_count()));
		});

		CHECK(*g.begin() >= 3);
	}
	CHECK_EQ(p.use_count(), 1);
}

/* They use the stack as if it was aligned. */
TEST(libc_reads_and_writes_numbers_in_a_fiber)
{
	run(
		[](void *) -> void * {
			char buf[64];
			double a = 0, b = 0;
			int n = 0, m = 0;

			CHECK_EQ(std::sscanf("3.14 7.13", "%lf %lf", &a, &b), 2);
			CHECK(a == 3.14 && b == 7.13);
			CHECK_EQ(std::sscanf("1 jjj 23", "%d %*[j] %d", &n, &m), 2);
			CHECK(n == 1 && m == 23);
			std::snprintf(buf, sizeof(buf), "sqrt(2) = %.4f", std::sqrt(2.0));
			CHECK_STR_EQ(buf, "sqrt(2) = 1.4142");
			std::snprintf(buf, sizeof(buf), "0x%016llX", 0xbcdef1234567890ull);
			CHECK_STR_EQ(buf, "0x0BCDEF1234567890");
			return nullptr;
		},
		nullptr);
}
