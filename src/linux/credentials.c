// SPDX-License-Identifier: Apache-2.0
/*
 * set*id: credentials belong to kernel threads, POSIX gives them to the process.
 *
 * The caller makes the call itself; if it succeeds, every other kernel thread of ours (idle, spare, in a call,
 * the door) is kicked and makes it too, and the caller waits for all of them before it returns. A kernel
 * thread that is made meanwhile inherits from one that may not have changed yet: so the round is repeated
 * until no new one appeared.
 */
#include "linux/abi.h"
#include "linux/bind.h"
#include "linux/calls.h"

#define SYSCALL_FUNCTION_BYTES 64

static struct {
	struct wf_spin turn;                /* one broadcast at a time */
	long nr, args[3];                   /* (p) before seq */
	uint32_t seq;                       /* (a) grows with every broadcast */
	uint32_t is_open;                   /* (a) some have yet to answer */
	uint32_t claimed[WF_MAX_KTHREADS];  /* (a) last seq each one set out to answer */
	uint32_t answered[WF_MAX_KTHREADS]; /* (a) last seq each one has answered */
} broadcast;

void lx_credentials_answer(struct wf_kthread *k)
{
	uint32_t seq = wf_load_acquire(&broadcast.seq);
	uint32_t last = wf_load_acquire(&broadcast.claimed[k->index]);

	/*
	 * A kick may interrupt this very function on the same kernel thread and answer a later broadcast: so the
	 * CAS claims the answer, and only forward.
	 */
	if (!wf_load_acquire(&broadcast.is_open) || (int32_t)(seq - last) <= 0 ||
	    !wf_cas(&broadcast.claimed[k->index], &last, seq))
		return;
	(void)sys3(broadcast.nr, broadcast.args[0], broadcast.args[1], broadcast.args[2]);
	wf_store_release(&broadcast.answered[k->index], seq);
}

/* Kernel threads are never removed, so those below n are the same ones every time. */
static void ask_everybody(struct wf_kthread *self)
{
	uint32_t n, asked = 0, seq = broadcast.seq + 1;

	broadcast.claimed[self->index] = seq;
	wf_store_release(&broadcast.seq, seq);
	wf_store_seq_cst(&broadcast.is_open, 1u);
	while (asked < (n = wf_load_acquire(&wf_rt.nr_kthreads))) {
		for (uint32_t i = asked; i < n; i++) {
			struct wf_kthread *k = wf_load_acquire(&wf_rt.kthreads[i]);

			if (k != self && wf_load_acquire(&k->tid) > 0)
				(void)sys_tgkill(wf_rt.pid, k->tid, WF_SIG_KICK);
		}
		for (; asked < n; asked++) {
			struct wf_kthread *k = wf_load_acquire(&wf_rt.kthreads[asked]);

			for (uint32_t round = 0; k != self && wf_load_acquire(&k->tid) > 0 &&
						 wf_load_acquire(&broadcast.answered[asked]) != seq;
			     round++)
				sys_relax(round);
		}
	}
	wf_store_release(&broadcast.is_open, 0u);
}

/*
 * libc makes these calls for the process: in every thread, or by itself. A program that makes one through
 * syscall() means the calling thread, as servers do that act for many users.
 */
static bool is_for_one_thread(const struct wf_frame *f)
{
	uintptr_t fn = (uintptr_t)lx_config.syscall_function;

	return fn && f->next - fn < SYSCALL_FUNCTION_BYTES;
}

long sysc_set_credentials(struct wf_frame *f)
{
	long ret;

	if (is_for_one_thread(f))
		return lx_bind_call(f);
	/* The holder waits for kernel threads that may be waiting here: answer while we wait. */
	for (uint32_t round = 0; !wf_spin_trylock(&broadcast.turn); round++) {
		lx_credentials_answer(wf_self_kthread());
		sys_relax(round);
	}
	ret = lx_raw(f);
	if (ret >= 0) {
		broadcast.nr = (long)f->nr;
		broadcast.args[0] = (long)WF_ARG0(f);
		broadcast.args[1] = (long)WF_ARG1(f);
		broadcast.args[2] = (long)WF_ARG2(f);
		ask_everybody(wf_self_kthread());
	}
	wf_spin_unlock(&broadcast.turn);
	return ret;
}

void lx_credentials_forget(void)
{
	__builtin_memset(&broadcast, 0, sizeof(broadcast));
}
