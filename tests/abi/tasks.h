// SPDX-License-Identifier: Apache-2.0
/* What the tests of credentials need to know of kernel threads that they look at in /proc. */
#ifndef WEFT_TESTS_ABI_TASKS_H
#define WEFT_TESTS_ABI_TASKS_H

#include "check.h"

/*
 * A kernel thread that ends keeps the credentials that it has: it runs nothing of the program any more. On a busy machine it
 * is seen for a while. One that is there for long has had to change them in time.
 */
static inline int is_ending(const char *path)
{
	for (int i = 0; i < 20000; i++) {
		if (access(path, F_OK))
			return 1;
		sleep_ns(MS);
	}
	return 0;
}

#endif
