// SPDX-License-Identifier: Apache-2.0
/*
 * Exceptions in many threads at once, preempted while they look for handlers and unwind, while libraries come
 * and go.
 */
#include "check.h"

#include <dlfcn.h>
#include <stdexcept>
#include <string>

#define NR 6
#define RUN_NS (300 * MS)

static int64_t end_ns;
static int stop;

struct counted {
	int &live;
	explicit counted(int &n) : live(n)
	{
		live++;
	}
	~counted()
	{
		live--;
	}
};

static __attribute__((noinline)) int throws_at(int depth, int &live, int value)
{
	counted here(live);
	std::string text = std::to_string(value) + " at the bottom of a stack of frames";

	if (depth == 0)
		throw std::runtime_error(text);
	return throws_at(depth - 1, live, value) + (int)text.size();
}

static void *throws(void *arg)
{
	int live = 0, value = (int)(intptr_t)arg;

	do {
		std::string got;

		value += NR;
		try {
			(void)throws_at(value % 30, live, value);
		} catch (const std::logic_error &) {
			CHECK(!"the wrong handler");
		} catch (const std::exception &e) {
			got = e.what();
			try {
				throw;
			} catch (const std::runtime_error &again) {
				CHECK(got == again.what());
			}
		}
		CHECK_EQ(live, 0);
		CHECK_EQ(atoi(got.c_str()), value);
		CHECK(!std::uncaught_exceptions());
	} while (now_ns() < end_ns);
	return nullptr;
}

static std::string directory()
{
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path));
	std::string all(path, n > 0 ? (size_t)n : 0);

	return all.substr(0, all.rfind('/') + 1);
}

static void *opens_and_closes(void *arg)
{
	std::string name = directory() + "lib_dynamic_tls.so";

	while (!LOAD(&stop)) {
		void *lib = dlopen(name.c_str(), RTLD_NOW);

		CHECK(lib);
		if (!lib)
			break;
		CHECK_EQ(dlclose(lib), 0);
	}
	return arg;
}

int main()
{
	pthread_t t[NR], opener;

	end_ns = now_ns() + RUN_NS;
	for (intptr_t i = 0; i < NR; i++)
		t[i] = start(throws, (void *)i);
	for (int i = 0; i < NR; i++)
		join(t[i]);
	ok("exceptions");

	end_ns = now_ns() + RUN_NS;
	opener = start(opens_and_closes, nullptr);
	for (intptr_t i = 0; i < NR; i++)
		t[i] = start(throws, (void *)i);
	for (int i = 0; i < NR; i++)
		join(t[i]);
	STORE(&stop, 1);
	join(opener);
	ok("exceptions while libraries come and go");
	return finish();
}
