// SPDX-License-Identifier: Apache-2.0
/* The kernel under the machine, for machine.c: memory, futexes, the cycle counter, kicks, the poller. */
#ifndef WF_TESTS_KERNEL_H
#define WF_TESTS_KERNEL_H

#include "machine.h"

#define MAX_KTHREADS 12
#define FIRST_TID 100

struct kernel {
	bool is_woken;  /* the poller's wake(): edge-triggered, so several in a row are one */
	bool is_kicked; /* the door */
	bool kicked[MAX_KTHREADS + 4]; /* by tid: a handler is about to run there */
	uint32_t nr_yields;
	uint32_t nr_events; /* polls that end for another reason: a descriptor, a signal */
	int64_t armed;      /* when the poller is to look at the timers */
	uint32_t nr_arms;
	struct futex_wait {
		uint32_t *word;
		bool is_woken;
	} futex[MAX_KTHREADS + 4];
};
extern struct kernel kernel;
extern const struct wf_io_driver kernel_driver;

void kernel_reset(void);
/* Of k: a kick has come. */
bool *kernel_kicked(const struct wf_kthread *k);
/* The handler's part on a kernel thread that runs no thread. */
bool kernel_take_kick(bool *kicked);

#endif
