// SPDX-License-Identifier: Apache-2.0
/* Thread-local objects of C++: made once in a thread, when it first comes to them, and destroyed when it ends, which may wait. */
#include "rules.h"

#include <atomic>
#include <set>
#include <string>
#include <thread>

static std::atomic<int> nr_made, nr_destroyed;

namespace
{
struct diary {
	std::thread::id owner = std::this_thread::get_id();
	std::string text = "a text that is too long to lie in the object itself";
	std::set<int> seen;

	diary()
	{
		nr_made++;
		rule_wait();
	}
	~diary()
	{
		rule_wait();
		CHECK(owner == std::this_thread::get_id());
		CHECK(text.size() > 40);
		nr_destroyed++;
	}
};
} // namespace

static thread_local diary mine;

static void keeps_object(int nr)
{
	diary *const where = &mine;

	for (int i = 0; i < 40; i++) {
		mine.text += static_cast<char>('a' + nr);
		rule_wait();
		CHECK_EQ(mine.text.back(), 'a' + nr);
		mine.seen.insert(nr);
		rule_turn();
		CHECK(&mine == where);
		CHECK(mine.owner == std::this_thread::get_id());
		CHECK_EQ(mine.seen.count(nr), 1);
	}
}

static void objects_are_destroyed(enum rule_place place)
{
	int made = nr_made.exchange(0), destroyed = nr_destroyed.exchange(0);

	/* Threads that run tasks go on, and may end later. */
	if (place == IN_TASKS)
		CHECK(made <= RULE_NR);
	else
		CHECK(made > 0 && destroyed >= made);
}

RULE(thread_local_objects_are_made_and_destroyed, keeps_object, objects_are_destroyed)
