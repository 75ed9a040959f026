// SPDX-License-Identifier: Apache-2.0
/*
 * A system call made by another kernel thread of ours, because the kernel takes it from no other: ptrace() of
 * a child goes by who made it.
 *
 * Called by: named.c. The asker publishes an errand, kicks the kernel thread, and waits; the kick's handler, or the
 * door, makes the call, whatever the kernel thread is at.
 *
 * Invariant: an errand lies on the asker's stack, and the asker does not return before it is answered or nobody
 * can answer it any more. Who has exchanged it out of k->errand answers it before it does anything else.
 */
#include "linux/remote.h"

struct errand {
	long nr;          /* (p) */
	const long *args; /* (p) */
	long ret;         /* (a) before is_done */
	bool is_claimed;  /* (a) */
	bool is_done;     /* (a) */
};

struct wf_kthread *lx_remote_find(int tid)
{
	uint32_t n = wf_load_acquire(&wf_rt.nr_kthreads);

	for (uint32_t i = 0; i < n; i++) {
		struct wf_kthread *k = wf_load_acquire(&wf_rt.kthreads[i]);

		if (tid > 0 && wf_load_acquire(&k->tid) == tid)
			return k;
	}
	return NULL;
}

void lx_remote_answer(struct wf_kthread *k)
{
	struct errand *e;

	if (WF_LIKELY(!wf_load_acquire(&k->errand)))
		return;
	e = wf_exchange(&k->errand, (void *)NULL);
	if (!e)
		return;
	wf_store_release(&e->is_claimed, true);
	e->ret = wf_syscall6(e->nr, e->args[0], e->args[1], e->args[2], e->args[3], e->args[4],
			     e->args[5]);
	wf_store_release(&e->is_done, true);
}

long lx_remote_call(struct wf_kthread *k, long nr, const long args[6])
{
	struct errand e = { .nr = nr, .args = args };
	int tid = wf_load_acquire(&k->tid);
	void *seen = NULL;

	for (uint32_t round = 0; !wf_cas(&k->errand, &seen, (void *)&e); round++) {
		seen = NULL;
		sys_relax(round);
	}
	wf_kick(k);
	for (uint32_t round = 0; !wf_load_acquire(&e.is_done); round++) {
		if (wf_load_acquire(&k->tid) != tid && !wf_load_acquire(&e.is_claimed)) {
			seen = &e;
			(void)wf_cas(&k->errand, &seen, (void *)NULL);
			return -ESRCH;
		}
		sys_relax(round);
	}
	return e.ret;
}
