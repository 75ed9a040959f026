// SPDX-License-Identifier: Apache-2.0
/* Giving way without the way through the gate. The runtime's code. */
#include "native/turn.h"
#include "sched/park.h"

void wf_turn_give(struct wf_thread *self)
{
	wf_self_enter(self);
	wf_yield();
	wf_self_leave(self);
}
