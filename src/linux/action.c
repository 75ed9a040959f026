// SPDX-License-Identifier: Apache-2.0
/* The kernel has the actions that the program has installed: all of them but those that are ours to see first. */
#include "linux/abi.h"
#include "linux/action.h"
#include "sched/preempt.h"

#include <signal.h>

void lx_action_tell_kernel(int sig)
{
	if (sig != WF_SIG_KICK && !(LX_FAULTS & lx_bit(sig)))
		(void)sys_sigaction(sig, &lx.action[sig], NULL);
}

void lx_action_reset(int sig)
{
	lx.action[sig].handler = SIG_DFL;
	lx_action_tell_kernel(sig);
}

void lx_action_give_back(void)
{
	for (uint64_t left = LX_FAULTS | lx_bit(WF_SIG_KICK); left; left &= left - 1) {
		int sig = __builtin_ctzll(left) + 1;

		(void)sys_sigaction(sig, &lx.action[sig], NULL);
	}
}

void lx_signal_restore_kernel(struct lx_thread *t)
{
	struct wf_stack_t ss = t->altstack;

	lx_action_give_back();
	if (!ss.size)
		ss.flags = SS_DISABLE;
	(void)sys2(__NR_sigaltstack, &ss, NULL);
}
