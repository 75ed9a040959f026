// SPDX-License-Identifier: Apache-2.0
/*
 * The bell of the door: how any thread asks it to look, and waits until it has.
 *
 * Invariant: whoever changes what the door is to see does so, then takes a number, then rings. The door reads the last
 * number, looks at everything, and tells that number: nobody whose number is told waits for a look from before it.
 */
#include "linux/abi.h"
#include "linux/doorbell.h"
#include "sched/kick.h"

static uint32_t requests; /* (a) bumped by whoever needs the door to look */
static uint32_t done;     /* (a) last request that was dealt with; a futex word */

void lx_door_pass(void)
{
	uint32_t mine = wf_fetch_add(&requests, 1u) + 1, seen;

	wf_kick(wf_rt.door);
	while ((int32_t)((seen = wf_load_seq_cst(&done)) - mine) < 0)
		(void)sys_futex_wait(&done, seen, WF_MS);
}

uint32_t lx_doorbell_asked(void)
{
	return wf_load_seq_cst(&requests);
}

void lx_doorbell_answer(uint32_t request)
{
	if (wf_load_relaxed(&done) == request)
		return;
	wf_store_seq_cst(&done, request);
	(void)sys_futex_wake(&done, INT32_MAX);
}
