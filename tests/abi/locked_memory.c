// SPDX-License-Identifier: Apache-2.0
/*
 * A program that locks its memory has no more of it afterwards than it had mapped: what is only reserved stays so.
 */
#include <sys/mman.h>
#include "check.h"

#define ENOUGH_KB (200 << 10) /* twenty times what the plain program has */

static long resident_kb(void)
{
	char line[256];
	long kb = -1;
	FILE *f = fopen("/proc/self/status", "r");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "VmRSS: %ld", &kb) == 1)
			break;
	if (f)
		fclose(f);
	return kb;
}

static void *uses_descriptors(void *arg)
{
	int fds[2];

	CHECK_SYS(pipe(fds));
	CHECK_SYS(dup2(fds[0], 900));
	CHECK_SYS(close(900));
	close(fds[0]);
	close(fds[1]);
	return arg;
}

int main(void)
{
	if (mlockall(MCL_CURRENT | MCL_FUTURE) < 0)
		return EXIT_SKIP;
	join(start(uses_descriptors, NULL));
	CHECK(resident_kb() > 0 && resident_kb() < ENOUGH_KB);
	ok("what comes later");
	CHECK_SYS(munlockall());
	CHECK_SYS(mlockall(MCL_CURRENT));
	CHECK(resident_kb() < ENOUGH_KB);
	CHECK_SYS(munlockall());
	ok("what is there");
	return finish();
}
