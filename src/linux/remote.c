// SPDX-License-Identifier: Apache-2.0
/*
 * Errands: another kernel thread of ours makes a call for the caller, since the kernel takes it from no other: a request to a
 * child that it traces; the signal that is to tell the process of its parent's end, which is kept for a task.
 *
 * Called by: named.c, deathsig.c. The asker publishes an errand, kicks the kernel thread, and waits; the kick's handler,
 * or the door, makes the call, whatever the kernel thread is at.
 *
 * Invariant: an errand lies on the asker's stack. The one that takes it out of k->errand, by an atomic operation, has it: the kernel
 * thread, which answers it before it does anything else, or the asker, once the one that it has asked has ended; another one that
 * has come back as k since may answer it, too. So the asker does not return before it is answered or nobody can answer it any more.
 * Errands lie in memory that the program can write, and the kernel thread may have rights that the program gave up. So
 * an errand is one of a few, and none that would give a right: nobody begins to trace, or be traced, by this way.
 */
#include "linux/remote.h"
#include "sched/kick.h"

#include <linux/prctl.h>
#include <sys/ptrace.h>

struct errand {
	enum lx_remote what; /* (p) */
	long args[4];        /* (p) */
	long ret;            /* (a) before is_done */
	bool is_done;        /* (a) */
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

static long request_of_tracer(const long args[4])
{
	switch (args[0]) {
	case PTRACE_TRACEME:
	case PTRACE_ATTACH:
	case PTRACE_SEIZE:
		return -ESRCH;
	default:
		return sys4(__NR_ptrace, args[0], args[1], args[2], args[3]);
	}
}

static long death_signal(void)
{
	int sig = 0;
	long ret = sys2(__NR_prctl, PR_GET_PDEATHSIG, &sig);

	return ret < 0 ? ret : sig;
}

static long do_errand(enum lx_remote what, const long args[4])
{
	switch (what) {
	case LX_REMOTE_PTRACE:
		return request_of_tracer(args);
	case LX_REMOTE_SET_DEATH_SIGNAL:
		return sys2(__NR_prctl, PR_SET_PDEATHSIG, args[0]);
	case LX_REMOTE_DEATH_SIGNAL:
		return death_signal();
	default:
		return -EINVAL;
	}
}

void lx_remote_answer(struct wf_kthread *k)
{
	struct errand *e;
	long args[4];

	if (WF_LIKELY(!wf_load_acquire(&k->errand)))
		return;
	e = wf_exchange(&k->errand, (void *)NULL);
	if (!e)
		return;
	/* As it was when it was looked at. */
	for (size_t i = 0; i < ARRAY_LEN(args); i++)
		args[i] = wf_load_relaxed(&e->args[i]);
	e->ret = do_errand(wf_load_relaxed(&e->what), args);
	wf_store_release(&e->is_done, true);
}

long lx_remote_do(struct wf_kthread *k, enum lx_remote what, long a, long b, long c, long d)
{
	struct errand e = { .what = what, .args = { a, b, c, d } };
	int tid = wf_load_acquire(&k->tid);
	void *seen = NULL;

	for (uint32_t round = 0; !wf_cas(&k->errand, &seen, (void *)&e); round++) {
		seen = NULL;
		sys_relax(round);
	}
	wf_kick(k);
	for (uint32_t round = 0; !wf_load_acquire(&e.is_done); round++) {
		seen = &e;
		if (wf_load_acquire(&k->tid) != tid && wf_cas(&k->errand, &seen, (void *)NULL))
			return -ESRCH;
		sys_relax(round);
	}
	return e.ret;
}
