// SPDX-License-Identifier: Apache-2.0
/*
 * The victim of test_unbegun.py: one thread computes for ever, on the only worker, and others have not begun. A thread waits for the
 * one that computes. Prints "ready".
 */
#include <weft/weft.h>

#include "threads.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MANY 500

static int computes(void *arg)
{
	(void)arg;
	if (write(1, "ready\n", 6) < 0)
		_exit(2);
	for (volatile unsigned i = 0;; i++)
		;
}

int main(void)
{
	weft_thread *t[MANY];

	for (int i = 0; i < MANY; i++)
		if (weft_thread_spawn(computes, NULL, NULL, &t[i]))
			return 2;
	return weft_thread_join(t[0], NULL, WEFT_NEVER);
}
