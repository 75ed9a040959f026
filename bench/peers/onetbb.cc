// SPDX-License-Identifier: Apache-2.0
/* trees.c as oneTBB's users write it. Usage: onetbb WORKERS */
#include "workloads.h"

#include <cstdio>
#include <cstdlib>
#include <oneapi/tbb.h>

using oneapi::tbb::task_group;

namespace
{

void check(bool is_right)
{
	if (!is_right)
		std::abort();
}

void fork_and_join()
{
	for (int i = 0; i < 100000; i++) {
		task_group g;

		g.run([] {});
		g.wait();
	}
}

long fib_of(int n)
{
	if (n < 2)
		return n;
	long a, b;
	task_group g;

	g.run([&] { a = fib_of(n - 1); });
	b = fib_of(n - 2);
	g.wait();
	return a + b;
}

long node(long first, long nr)
{
	if (nr == 1)
		return first;
	long sums[10], sum = 0;
	task_group g;

	for (int i = 0; i < 10; i++)
		g.run([&sums, i, first, nr] { sums[i] = node(first + i * (nr / 10), nr / 10); });
	g.wait();
	for (long below : sums)
		sum += below;
	return sum;
}

long board(int row, unsigned columns, unsigned rising, unsigned falling)
{
	if (row == QUEENS)
		return 1;
	long below[QUEENS] = {}, sum = 0;
	task_group g;

	for (int i = 0; i < QUEENS; i++) {
		const unsigned bit = 1u << i;

		if ((columns | rising | falling) & bit)
			continue;
		g.run([=, &below] {
			below[i] = board(row + 1, columns | bit, (rising | bit) << 1,
					 (falling | bit) >> 1);
		});
	}
	g.wait();
	for (long nr : below)
		sum += nr;
	return sum;
}

template <typename F> double least_of_three(F &&run)
{
	double least = 0;

	for (int i = 0; i < 3; i++) {
		const double began = now_ns();

		run();
		const double took = now_ns() - began;
		least = i && least < took ? least : took;
	}
	return least;
}

} // namespace

int main(int argc, char **argv)
{
	const int nr_workers = argc > 1 ? std::atoi(argv[1]) : 1;
	oneapi::tbb::global_control limit(oneapi::tbb::global_control::max_allowed_parallelism,
					  static_cast<std::size_t>(nr_workers));
	oneapi::tbb::task_arena arena(nr_workers);

	arena.execute([] {
		std::printf("fork_join %.2f\n", least_of_three(fork_and_join) / 100000);
		std::printf("fib %.2f\n",
			    least_of_three([] { check(fib_of(FIB) == FIB_RESULT); }) / FIB_FORKS);
		std::printf("skynet_ms %.2f\n",
			    least_of_three([] { check(node(0, SKYNET) == SKYNET_RESULT); }) / 1e6);
		std::printf("queens_ms %.2f\n", least_of_three([] {
							check(board(0, 0, 0, 0) == QUEENS_RESULT);
						}) / 1e6);
	});
	return 0;
}
