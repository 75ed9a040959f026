// SPDX-License-Identifier: Apache-2.0
/* Which thread may take a signal, and how it is made to look; see sigwant.c. */
#ifndef WF_LINUX_SIGWANT_H
#define WF_LINUX_SIGWANT_H

#include "linux/abi.h"

bool lx_signal_is_ignored(int sig);
bool lx_signal_default_ignores(int sig);

WF_INLINE bool lx_signal_is_wanted(struct lx_thread *t)
{
	return ((wf_load_seq_cst(&t->pending.set) | wf_load_seq_cst(&lx.shared.set)) &
		~wf_load_relaxed(&t->sig_mask)) != 0;
}

/*
 * The same for the caller, in the loop of a wait that ended without its event: a bit of the attention word
 * that nothing stands behind any more would end every further wait at once, and goes.
 */
bool lx_signal_is_waiting(struct lx_thread *self);
/* Make t look at its attention word soon, whatever it is doing. */
void lx_signal_notify(struct lx_thread *t);
/* Make t look at its attention word soon, wherever it runs; does not end a wait. */
void lx_signal_interrupt(struct lx_thread *t);
/* The next signal of that number for the process may be t's. */
bool lx_signal_wants(struct lx_thread *t, int sig);
/* As Linux chooses: the main thread if it wants sig, else the next that does, else NULL. */
struct lx_thread *lx_signal_choose(int sig, struct lx_thread *second);

#endif
