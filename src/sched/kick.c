// SPDX-License-Identifier: Apache-2.0
/* Sending a kick; see kick.h. */
#include "sched/kick.h"
#include "sched/runtime.h"

#include <errno.h>

void wf_kick(struct wf_kthread *k)
{
	if (wf_exchange_seq_cst(&k->kick_sent, 1u))
		return; /* one is on its way: it has not looked at the attention word yet */
	wf_kick_anyway(k);
}

void wf_kick_anyway(struct wf_kthread *k)
{
	const int tid = wf_load_relaxed(&k->tid);

	k->count.kicks++;
	/* A real-time signal needs a place in the user's queue; a standard one always has its bit. */
	if (sys_tgkill(wf_rt.pid, tid, WF_SIG_KICK) == -EAGAIN)
		(void)sys_tgkill(wf_rt.pid, tid, WF_SIG_KICK_SPARE);
}
