// SPDX-License-Identifier: Apache-2.0
/*
 * Children of children of children, each with threads of its own: they take no more address space than the
 * first of them.
 */
#include "check.h"

#define GENERATIONS 8
#define ROOM_KIB (256L << 10) /* less than what a runtime reserves */

static void *does_nothing(void *arg)
{
	return arg;
}

static long address_space_kib(void)
{
	char line[128];
	long kib = -1;
	FILE *f = fopen("/proc/self/status", "r");

	CHECK(f);
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "VmSize: %ld", &kib) == 1)
			break;
	if (f)
		fclose(f);
	return kib;
}

static void live(int generation, long first_kib)
{
	pid_t child;

	join(start(does_nothing, NULL));
	CHECK(address_space_kib() <= first_kib + ROOM_KIB);
	if (generation == GENERATIONS)
		return;
	child = fork();
	if (child == 0) {
		live(generation + 1, first_kib);
		_exit(finish());
	}
	reap(child);
}

int main(void)
{
	join(start(does_nothing, NULL));
	live(1, address_space_kib());
	ok("generations of children with threads take no more and more address space");
	return finish();
}
