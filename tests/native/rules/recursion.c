// SPDX-License-Identifier: Apache-2.0
/* A function may go down as far as the stack goes, and wait there. */
#include "rules.h"

#include <stddef.h>
#include <string.h>

/* What preemption, and whatever rule_turn() calls, may need below: a page more than signals take with the largest registers. */
#define LEFT_BYTES ((size_t)48 << 10)
#define FRAME_BYTES 1000

static unsigned go_down(const char *low, unsigned x)
{
	unsigned char frame[FRAME_BYTES];
	unsigned n;

	memset(frame, (unsigned char)x, sizeof(frame));
	__asm__ volatile("" ::"r"(frame) : "memory");
	if ((char *)__builtin_frame_address(0) - low < (ptrdiff_t)LEFT_BYTES) {
		rule_turn();
		return frame[x % FRAME_BYTES] == (unsigned char)x;
	}
	n = go_down(low, x + 1);
	/* On the way back it waits now and then. */
	if (x % 256 == 0)
		rule_turn();
	for (int i = 0; i < FRAME_BYTES; i += 111)
		if (frame[i] != (unsigned char)x)
			return 0;
	return n ? n + 1 : 0;
}

static void goes_down(int nr)
{
	char *low, *high;
	unsigned depth;

	rule_stack(&low, &high);
	CHECK(high > low);
	/* Those of the main thread and of threads that run tasks are as large as the limit of the process. */
	if (high - low > (8 << 20))
		low = high - (8 << 20);
	depth = go_down(low, (unsigned)nr);
	CHECK(depth > 100);
}

RULE(a_recursion_is_as_deep_as_the_stack, goes_down, 0)
