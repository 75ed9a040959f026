// SPDX-License-Identifier: Apache-2.0
/* Thread-local variables that are larger than small stacks. */
#include "native.h"
#include "tap.h"

#include <weft/weft.h>

#define MOST 50

static __thread char large[300 << 10] = { 1 };

static int changes(void *arg)
{
	char old = large[0] + large[sizeof(large) - 1];

	large[0]++;
	large[sizeof(large) - 1]++;
	return old;
}

static void run_crowd(const struct weft_thread_opts *opts)
{
	weft_thread *threads[MOST];

	for (int i = 0; i < MOST; i++)
		CHECK_EQ(weft_thread_spawn(changes, NULL, opts, &threads[i]), 0);
	for (int i = 0; i < MOST; i++) {
		int result = -1;

		CHECK_EQ(weft_thread_join(threads[i], &result, WEFT_NEVER), 0);
		CHECK_EQ(result, 1);
	}
}

TEST(a_crowd_begins)
{
	run_crowd(NULL);
}

TEST(a_crowd_with_small_stacks_begins)
{
	for (size_t stack = 32 << 10; stack <= 512 << 10; stack *= 2) {
		struct weft_thread_opts opts = { sizeof(opts), .stack_bytes = stack };

		run_crowd(&opts);
	}
}
