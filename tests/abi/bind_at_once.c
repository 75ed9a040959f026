// SPDX-License-Identifier: Apache-2.0
/*
 * Threads that get something of their own from the kernel at the same moment: under weft each takes a kernel thread for itself,
 * and as long as more can be made none is refused.
 */
#include "check.h"

#include <sched.h>

#define NR 4
#define ROUNDS 60

static int nr_there; /* atomic */

static void *takes_its_own(void *arg)
{
	ADD(&nr_there, 1);
	while (LOAD(&nr_there) < NR)
		;
	CHECK_SYS(unshare(CLONE_FS));
	return arg;
}

int main(void)
{
	for (int round = 0; round < ROUNDS; round++) {
		pthread_t t[NR];

		STORE(&nr_there, 0);
		for (int i = 0; i < NR; i++)
			t[i] = start(takes_its_own, NULL);
		for (int i = 0; i < NR; i++)
			join(t[i]);
	}
	ok("all at once");
	return finish();
}
