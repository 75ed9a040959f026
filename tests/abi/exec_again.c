// SPDX-License-Identifier: Apache-2.0
/*
 * A thread executes the program again and again while others compute: nothing that the old threads were sent reaches the
 * new program.
 */
#include "check.h"

#define TIMES "100"

static char next[16];

static void *computes(void *arg)
{
	volatile unsigned n = 0;

	for (;;)
		n++;
	return arg;
}

static void *execs(void *arg)
{
	execl("/proc/self/exe", "again", next, (char *)NULL);
	_exit(100);
	return arg;
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		CHECK_EQ(run_self(TIMES), 33 << 8);
		ok("executed " TIMES " times");
		return finish();
	}
	if (atoi(argv[1]) == 0)
		_exit(33);
	snprintf(next, sizeof(next), "%d", atoi(argv[1]) - 1);
	for (int i = 0; i < 2; i++)
		start(computes, NULL);
	start(execs, NULL);
	for (;;)
		pause();
}
