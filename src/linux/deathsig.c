// SPDX-License-Identifier: Apache-2.0
/*
 * PR_SET_PDEATHSIG: the kernel keeps the signal for a kernel thread, and when the parent ends it sends those of all kernel
 * threads to the process. So it must stay with one that lives as long as the thread does.
 *
 * Called by: identity.c, bind.c, process.c.
 *
 * Main's stays with main's first kernel thread, the door, which also has what main set before there were threads; it goes
 * along when main gets a kernel thread of its own. Any other thread that sets one is bound. New credentials clear it: for
 * the process every kernel thread takes them, the door too, for one thread its own does.
 */
#include "linux/deathsig.h"
#include "linux/remote.h"

#include <linux/prctl.h>

void lx_deathsig_start(struct lx_thread *main)
{
	int sig = 0;

	main->has_death_signal = sys2(__NR_prctl, PR_GET_PDEATHSIG, &sig) == 0 && sig;
}

/* The new place first: in between the process may be told twice, but not never. */
void lx_deathsig_to_own(const struct lx_thread *self)
{
	long sig;

	if (self != lx.main || !self->has_death_signal)
		return;
	sig = lx_remote_do(wf_rt.door, LX_REMOTE_DEATH_SIGNAL, 0, 0, 0, 0);
	if (sig <= 0)
		return;
	(void)sys2(__NR_prctl, PR_SET_PDEATHSIG, sig);
	(void)lx_remote_do(wf_rt.door, LX_REMOTE_SET_DEATH_SIGNAL, 0, 0, 0, 0);
}

void lx_deathsig_to_door(const struct lx_thread *self)
{
	int sig = 0;

	if (self != lx.main || !self->has_death_signal ||
	    sys2(__NR_prctl, PR_GET_PDEATHSIG, &sig) < 0 || !sig)
		return;
	(void)lx_remote_do(wf_rt.door, LX_REMOTE_SET_DEATH_SIGNAL, sig, 0, 0, 0);
	(void)sys2(__NR_prctl, PR_SET_PDEATHSIG, 0);
}

void lx_deathsig_end(const struct lx_thread *self)
{
	if (self == lx.main)
		lx_deathsig_to_door(self);
	else if (self->has_death_signal)
		(void)sys2(__NR_prctl, PR_SET_PDEATHSIG, 0);
}
