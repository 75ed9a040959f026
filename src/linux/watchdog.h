// SPDX-License-Identifier: Apache-2.0
/*
 * Does the program get on? Asked by the door at its rounds, if `weft run --watchdog` wants to know.
 *
 * Called by: door.c. A stall goes to lx_config.on_stall.
 */
#ifndef WF_LINUX_WATCHDOG_H
#define WF_LINUX_WATCHDOG_H

#include "linux/abi.h"

#define LX_STALL_SHOWN 3u

struct lx_stall {
	bool is_circle; /* nobody is ready, and nobody can be woken; else ready threads do not get on */
	uint32_t nr; /* threads that are ready, or all */
	int64_t for_ns;
	uint32_t nr_shown; /* of those below */
	/* Of a circle, the first of all; else those that are on the workers. */
	struct {
		const struct lx_thread *t;
		int64_t call; /* that it is in; -1: none */
	} shown[LX_STALL_SHOWN];
	bool ends; /* the program is ended for it */
};

/* By the door. When to look next at the latest; WF_NEVER: not before something happens. */
int64_t lx_watchdog_look(int64_t now);

#endif
