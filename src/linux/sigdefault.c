// SPDX-License-Identifier: Apache-2.0
/*
 * Default actions: the kernel performs them, on the kernel thread of whoever takes the signal, so that statuses and cores
 * are native.
 *
 * Called by: sigdeliver.c and sigfault.c for the thread that takes it, signals.c for one that need not.
 */
#include "linux/sigdefault.h"
#include "linux/abi.h"
#include "linux/comm.h"
#include "linux/doorbell.h"
#include "linux/ending.h"
#include "linux/futex_pi.h"
#include "linux/robust.h"

#include <signal.h>

/*
 * A SIGCONT undoes all stop signals before it. One that was taken before that came must not stop the process any
 * more: nobody would continue it again. So the door fetches a SIGCONT that pends, and while one of us stops the
 * process no other does, who might be about to raise his own signal and do so when it goes on. One case remains: a
 * SIGCONT in the instant before the signal is raised, which the kernel takes back then.
 */
static void stop_process(int sig)
{
	uint64_t set = lx_bit(sig), pending = 0;

	wf_spin_lock(&lx.stop_lock);
	lx_door_pass();
	(void)sys2(__NR_rt_sigpending, &pending, sizeof(pending));
	if (wf_load_seq_cst(&lx.is_to_stop) && !(pending & lx_bit(SIGCONT))) {
		(void)sys_tgkill(wf_rt.pid, lx_kernel_tid(), sig);
		(void)sys_sigprocmask(SIG_UNBLOCK, &set, NULL);
		(void)sys_sigprocmask(SIG_BLOCK, &set, NULL);
	}
	wf_spin_unlock(&lx.stop_lock);
}

/* The kernel performs it: unblocked here for an instant, raised for this very kernel thread. */
void lx_signal_default_action(int sig, struct wf_siginfo *info)
{
	const struct wf_kthread *k = wf_self_kthread();
	struct sys_sigaction dfl = { 0 };
	uint64_t set = lx_bit(sig);

	(void)sys_sigaction(sig, &dfl, NULL);
	if (sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU) {
		stop_process(sig);
		return;
	}
	if (k && k->cur && !lx_bind_tid(lx_of(k->cur)))
		lx_comm_lend(lx_of(k->cur));
	lx_robust_walk_all(lx_futex_owner_died);
	lx_ending_record(sig);
	if (sys4(__NR_rt_tgsigqueueinfo, wf_rt.pid, lx_kernel_tid(), sig, info) < 0)
		(void)sys_tgkill(wf_rt.pid, lx_kernel_tid(), sig);
	(void)sys_sigprocmask(SIG_UNBLOCK, &set, NULL);
	(void)sys1(__NR_exit_group, 128 + sig); /* a signal that does not kill after all */
}
