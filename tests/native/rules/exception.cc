// SPDX-License-Identifier: Apache-2.0
/* Exceptions pass waits: thrown above one, held over one, kept, thrown on, counted. */
#include "rules.h"

#include <exception>
#include <stdexcept>
#include <string>

namespace
{
struct waits_at_its_end {
	int level;

	~waits_at_its_end()
	{
		CHECK_EQ(std::uncaught_exceptions(), level);
		rule_turn();
		CHECK_EQ(std::uncaught_exceptions(), level);
	}
};
} // namespace

/* noinline: frames to unwind. */
__attribute__((noinline)) static void throws(int nr, int depth)
{
	waits_at_its_end guard{ 1 };

	if (depth == 0) {
		rule_turn();
		throw std::runtime_error(std::to_string(nr));
	}
	throws(nr, depth - 1);
}

static void catches(int nr)
{
	for (int i = 0; i < 10; i++) {
		std::exception_ptr kept;

		try {
			throws(nr, 5);
			CHECK(false);
		} catch (const std::runtime_error &error) {
			rule_turn();
			CHECK_STR_EQ(error.what(), std::to_string(nr).c_str());
			kept = std::current_exception();
			CHECK_EQ(std::uncaught_exceptions(), 0);
			try {
				waits_at_its_end guard{ 1 };

				rule_turn();
				throw nr + i;
			} catch (int number) {
				rule_turn();
				CHECK_EQ(number, nr + i);
			}
			/* The outer one is the one that is handled again. */
			CHECK(std::current_exception() == kept);
		}
		CHECK(!std::current_exception());
		rule_turn();
		try {
			try {
				std::rethrow_exception(kept);
			} catch (...) {
				rule_turn();
				throw;
			}
		} catch (const std::exception &error) {
			CHECK_STR_EQ(error.what(), std::to_string(nr).c_str());
		}
	}
}

RULE(exceptions_pass_waits, catches, nullptr)
