// SPDX-License-Identifier: Apache-2.0
/* weft::generator: values, exceptions, and what becomes of one that is left before its end. */
#include <weft/weft.hpp>

#include "dies.h"
#include "tap.h"

#include <pthread.h>
#include <stdexcept>
#include <string>
#include <vector>

namespace
{

weft::generator<int> numbers(int from, int to)
{
	return weft::generator<int>([=](auto yield) {
		for (int i = from; i < to; i++)
			yield(i);
	});
}

struct counted {
	static int nr;

	counted()
	{
		nr++;
	}

	counted(const counted &) = delete;

	~counted()
	{
		nr--;
	}
};
int counted::nr;

} // namespace

TEST(values_come_in_order)
{
	std::vector<int> seen;

	for (int x : numbers(3, 7))
		seen.push_back(x);
	CHECK(seen == (std::vector{ 3, 4, 5, 6 }));
	for (int x : numbers(3, 3))
		seen.push_back(x);
	CHECK_EQ(seen.size(), 4);
}

TEST(values_are_objects_on_its_stack)
{
	std::vector<std::string> seen;
	weft::generator<std::string> g([](auto yield) {
		std::string s = "a";
		const std::string fixed = "c";

		yield(s);
		CHECK_STR_EQ(s.c_str(), "ab");
		yield(std::string("temporary"));
		yield(fixed);
	});

	for (std::string &s : g) {
		seen.push_back(s);
		s += "b";
	}
	CHECK(seen == (std::vector<std::string>{ "a", "temporary", "c" }));
}

struct node {
	int value;
	node *left, *right;
};

static void walk(const node *n, weft::generator<int>::yield yield)
{
	if (!n)
		return;
	walk(n->left, yield);
	yield(n->value);
	walk(n->right, yield);
}

TEST(a_recursion_yields)
{
	node a{ 1, nullptr, nullptr }, c{ 3, nullptr, nullptr }, b{ 2, &a, &c },
		e{ 5, nullptr, nullptr }, d{ 4, &b, &e };
	int expected = 1;

	for (int x : weft::generator<int>([&](auto yield) { walk(&d, yield); }))
		CHECK_EQ(x, expected++);
	CHECK_EQ(expected, 6);
}

TEST(generators_read_generators)
{
	int sum = 0;
	weft::generator<int> squares([](auto yield) {
		for (int x : numbers(0, 100))
			yield(x * x);
	});

	for (int x : squares) {
		if (x > 1000)
			break;
		sum += x;
	}
	CHECK_EQ(sum, 10416);
}

TEST(it_moves)
{
	auto g = numbers(0, 5);
	auto i = g.begin();
	int sum = *i;

	++i;
	weft::generator<int> h = std::move(g);
	for (int x : h)
		sum += x;
	CHECK_EQ(sum, 2 + 3 + 4);
	h = numbers(10, 12);
	for (int x : h)
		sum += x;
	CHECK_EQ(sum, 9 + 21);
}

TEST(an_exception_comes_to_whoever_asks_for_the_next)
{
	int nr = 0;
	bool is_caught = false;
	weft::generator<int> g([](auto yield) {
		counted c;

		yield(1);
		throw std::runtime_error("inside");
	});

	counted::nr = 0;
	try {
		for (int x : g)
			nr += x;
	} catch (const std::runtime_error &e) {
		is_caught = true;
		CHECK_STR_EQ(e.what(), "inside");
		CHECK_EQ(std::uncaught_exceptions(), 0);
	}
	CHECK(is_caught && nr == 1);
	CHECK_EQ(counted::nr, 0);
	CHECK(g.begin() == g.end());
}

/* --- left before its end --- */

struct looks {
	int &uncaught;

	~looks()
	{
		uncaught = std::uncaught_exceptions();
	}
};

TEST(what_is_on_the_stack_of_one_that_is_left_is_destroyed)
{
	int uncaught = -1;

	counted::nr = 0;
	{
		weft::generator<int> g([&](auto yield) {
			counted a;
			looks l{ uncaught };

			CHECK_EQ(std::uncaught_exceptions(), 0);
			for (int i = 0;; i++)
				yield(i);
		});

		for (int x : g)
			if (x == 3)
				break;
		CHECK_EQ(counted::nr, 1);
	}
	CHECK_EQ(counted::nr, 0);
	CHECK_EQ(uncaught, 1);
	CHECK_EQ(std::uncaught_exceptions(), 0);
}

/* Its own exception is one, whatever is going on where it is destroyed. */
TEST(one_that_is_left_by_an_exception_counts_its_own)
{
	int uncaught = -1, outside = -1;

	try {
		looks o{ outside };
		weft::generator<int> g([&](auto yield) {
			looks l{ uncaught };

			for (;;)
				yield(1);
		});

		for (int x : g)
			if (x)
				throw std::runtime_error("out");
	} catch (const std::runtime_error &e) {
		CHECK_STR_EQ(e.what(), "out");
		CHECK_EQ(std::uncaught_exceptions(), 0);
	}
	CHECK_EQ(uncaught, 1);
	CHECK_EQ(outside, 1);
}

TEST(one_that_never_began_runs_nothing)
{
	bool has_run = false;

	counted::nr = 0;
	{
		weft::generator<int> g(
			[&, c = std::make_unique<counted>()](auto) { has_run = true; });
	}
	CHECK(!has_run);
	CHECK_EQ(counted::nr, 0);
}

TEST(who_catches_and_throws_on_is_as_ever)
{
	int nr_caught = 0;

	{
		weft::generator<int> g([&](auto yield) {
			try {
				yield(1);
			} catch (const std::exception &) {
				nr_caught += 100;
			} catch (...) {
				nr_caught++;
				throw;
			}
		});

		(void)g.begin();
	}
	CHECK_EQ(nr_caught, 1);
}

static void swallows()
{
	weft::generator<int> g(
		[](auto yield) {
			for (;;)
				try {
					yield(1);
				} catch (...) {
				}
		},
		"greedy");

	(void)g.begin();
}

static void swallows_another_way()
{
	weft::generator<int> g(
		[](auto yield) {
			try {
				yield(1);
			} catch (...) {
				throw std::runtime_error("instead");
			}
		},
		"clumsy");

	(void)g.begin();
}

TEST(who_swallows_it_terminates_the_program_by_name)
{
	CHECK_DIES(swallows, "generator \"greedy\" has caught weft::unwound");
	CHECK_DIES(swallows_another_way, "generator \"clumsy\" has caught weft::unwound");
}

/* --- exceptions that are being handled, on several stacks --- */

static weft::generator<std::string> handles(const char *what)
{
	return weft::generator<std::string>([=](auto yield) {
		try {
			throw std::runtime_error(what);
		} catch (...) {
			/* Others handle theirs meanwhile. */
			yield(std::string("waits"));
			try {
				throw;
			} catch (const std::runtime_error &e) {
				yield(std::string(e.what()));
			}
		}
		CHECK(!std::current_exception());
		yield(std::string("over"));
	});
}

TEST(each_handles_its_own_exception)
{
	auto a = handles("first"), b = handles("second");
	auto i = a.begin(), j = b.begin();

	CHECK(!std::current_exception());
	try {
		throw 5;
	} catch (int) {
		++i;
		++j;
		CHECK_STR_EQ(i->c_str(), "first");
		CHECK_STR_EQ(j->c_str(), "second");
		++i;
		CHECK_STR_EQ(i->c_str(), "over");
		try {
			throw;
		} catch (int n) {
			CHECK_EQ(n, 5);
		}
	}
	++j;
	CHECK_STR_EQ(j->c_str(), "over");
	CHECK(!std::current_exception());
}

static void *throws(void *)
{
	throw std::runtime_error("through C");
}

static void throw_out_of_a_fiber()
{
	std::set_terminate([] {
		(void)!write(STDERR_FILENO, "weft: terminated\n", 17);
		abort();
	});
	try {
		(void)weft_fiber_resume(weft_fiber_new(throws, nullptr), nullptr);
	} catch (...) {
		_exit(1);
	}
}

TEST(an_exception_does_not_leave_a_fiber_by_itself)
{
	CHECK_DIES(throw_out_of_a_fiber, "terminated");
}

/* --- a thread that ends in it --- */

/* The thread is back on its own stack, and may use fibers there. */
struct counts_at_end {
	int &sum;

	~counts_at_end()
	{
		CHECK(!weft_fiber_self());
		for (int x : numbers(1, 4))
			sum += x;
	}
};

static int sum_at_end;

static void *exits_inside(void *)
{
	counts_at_end at_end{ sum_at_end };
	counted outside;

	for (int x : weft::generator<int>([](auto yield) {
		     counted inside;

		     yield(1);
		     pthread_exit(const_cast<char *>("ended"));
	     }))
		(void)x;
	return nullptr;
}

TEST(pthread_exit_in_a_generator_destroys_what_is_on_both_stacks)
{
#ifdef __SANITIZE_THREAD__
	SKIP("ThreadSanitizer's pthread_exit() knows no fibers");
#endif
	void *result = nullptr;
	pthread_t t;

	counted::nr = 0;
	CHECK_EQ(pthread_create(&t, nullptr, exits_inside, nullptr), 0);
	CHECK_EQ(pthread_join(t, &result), 0);
	CHECK_STR_EQ(static_cast<char *>(result), "ended");
	CHECK_EQ(sum_at_end, 6);
	CHECK_EQ(counted::nr, 0);
}

/* So many values that the compiler has them in all registers that a call keeps; read anew each time, or else it knows them. */
struct values {
	volatile uintptr_t word[10] = { 11, 12, 13, 14, 15, 16, 17, 18, 19, 20 };
	volatile double real[8] = { 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5 };
};

static bool are_back;

static void *exits_at_once(void *)
{
	pthread_exit(nullptr);
}

static void *holds_values(void *)
{
	values from;
	const uintptr_t a = from.word[0], b = from.word[1], c = from.word[2], d = from.word[3],
			e = from.word[4], f = from.word[5], g = from.word[6], h = from.word[7],
			i = from.word[8], j = from.word[9];
	const double p = from.real[0], q = from.real[1], r = from.real[2], s = from.real[3],
		     t = from.real[4], u = from.real[5], v = from.real[6], w = from.real[7];

	try {
		(void)weft_fiber_resume(weft_fiber_new(exits_at_once, nullptr), nullptr);
	} catch (...) {
		are_back = a == 11 && b == 12 && c == 13 && d == 14 && e == 15 && f == 16 &&
			   g == 17 && h == 18 && i == 19 && j == 20 && p == 1.5 && q == 2.5 &&
			   r == 3.5 && s == 4.5 && t == 5.5 && u == 6.5 && v == 7.5 && w == 8.5;
		throw;
	}
	return nullptr;
}

TEST(pthread_exit_in_a_fiber_finds_the_registers_of_its_resumer)
{
#ifdef __SANITIZE_THREAD__
	SKIP("ThreadSanitizer's pthread_exit() knows no fibers");
#endif
	pthread_t t;

	are_back = false;
	CHECK_EQ(pthread_create(&t, nullptr, holds_values, nullptr), 0);
	CHECK_EQ(pthread_join(t, nullptr), 0);
	CHECK(are_back);
}
