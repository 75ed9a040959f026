// SPDX-License-Identifier: Apache-2.0
/*
 * set*id: credentials belong to kernel threads, POSIX gives them to the process.
 *
 * The caller makes the call itself; if it succeeds, every other kernel thread of ours (idle, spare, in a call,
 * the door) is kicked and makes it too, and the caller waits for all of them before it returns. A kernel
 * thread that is made meanwhile inherits from one that may not have changed yet; see ask_everybody().
 *
 * libc makes every thread make the call, one after the other, as it must natively. All kernel threads have made it
 * with the first of them; made once more by all it would change nothing, so the others make it for themselves only.
 */
#include "linux/abi.h"
#include "linux/bind.h"
#include "linux/calls.h"

#define SYSCALL_FUNCTION_BYTES 64

static struct {
	struct wf_spin turn; /* one broadcast at a time */
	long nr, args[3];    /* (p) before seq */
	uint32_t seq;        /* (a) grows with every broadcast */
	uint32_t is_open;    /* (a) some have yet to answer */
	bool is_last; /* (q) by turn: it is the last change of any kernel thread's credentials */
} broadcast;

void lx_credentials_answer(struct wf_kthread *k)
{
	uint32_t seq = wf_load_acquire(&broadcast.seq);
	uint32_t last = wf_load_acquire(&k->request_claimed);

	/*
	 * A kick may interrupt this very function on the same kernel thread and answer a later broadcast: so the
	 * CAS claims the answer, and only forward.
	 */
	if (!wf_load_acquire(&broadcast.is_open) || (int32_t)(seq - last) <= 0 ||
	    !wf_cas(&k->request_claimed, &last, seq))
		return;
	(void)sys3(broadcast.nr, broadcast.args[0], broadcast.args[1], broadcast.args[2]);
	wf_store_release(&k->request_answered, seq);
}

static bool owes_answer(struct wf_kthread *k, uint32_t seq)
{
	return wf_load_acquire(&k->tid) > 0 && wf_load_acquire(&k->request_answered) != seq;
}

/*
 * A kernel thread that is made meanwhile has inherited the change, answers by itself when it begins, or is asked:
 * a new one stands behind its maker, who is waited for first; an ended one that comes back is counted, and while
 * one was on its way the round is repeated. A spare may end meanwhile; its tid is 0 then.
 */
static void ask_everybody(struct wf_kthread *self)
{
	uint32_t revivals, seq = broadcast.seq + 1;

	wf_store_relaxed(&self->request_claimed, seq);
	wf_store_release(&self->request_answered, seq);
	wf_store_release(&broadcast.seq, seq);
	wf_store_seq_cst(&broadcast.is_open, 1u);
	do {
		revivals = wf_load_seq_cst(&wf_rt.revivals);
		for (uint32_t round = 0; wf_load_seq_cst(&wf_rt.nr_reviving); round++)
			sys_relax(round);
		/* All at once, then one after the other. */
		for (uint32_t i = 0; i < wf_load_acquire(&wf_rt.nr_kthreads); i++) {
			struct wf_kthread *k = wf_load_acquire(&wf_rt.kthreads[i]);

			if (owes_answer(k, seq))
				(void)sys_tgkill(wf_rt.pid, k->tid, WF_SIG_KICK);
		}
		for (uint32_t i = 0; i < wf_load_acquire(&wf_rt.nr_kthreads); i++) {
			struct wf_kthread *k = wf_load_acquire(&wf_rt.kthreads[i]);

			for (uint32_t round = 0; owes_answer(k, seq); round++)
				sys_relax(round);
		}
	} while (wf_load_seq_cst(&wf_rt.revivals) != revivals);
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

/* The holder waits for kernel threads that may be waiting here: answer while we wait. */
void lx_credentials_lock(void)
{
	for (uint32_t round = 0; !wf_spin_trylock(&broadcast.turn); round++) {
		lx_credentials_answer(wf_self_kthread());
		sys_relax(round);
	}
}

void lx_credentials_unlock(void)
{
	wf_spin_unlock(&broadcast.turn);
}

static int nr_args(long nr)
{
	switch (nr) {
	case __NR_setuid:
	case __NR_setgid:
		return 1;
	case __NR_setreuid:
	case __NR_setregid:
		return 2;
	default:
		return 3;
	}
}

/* All of them have made this very call, and none since. What an address leads to may have changed. */
static bool is_repeated(const struct wf_frame *f)
{
	const uint64_t args[] = { WF_ARG0(f), WF_ARG1(f), WF_ARG2(f) };

	if (!broadcast.is_last || broadcast.nr != (long)f->nr || f->nr == __NR_setgroups)
		return false;
	for (int i = 0; i < nr_args((long)f->nr); i++)
		if (broadcast.args[i] != (long)args[i])
			return false;
	return true;
}

static long change_one_thread(struct wf_frame *f)
{
	lx_credentials_lock();
	broadcast.is_last = false;
	lx_credentials_unlock();
	return lx_bind_call(f);
}

long sysc_set_credentials(struct wf_frame *f)
{
	long ret;

	if (is_for_one_thread(f))
		return change_one_thread(f);
	lx_credentials_lock();
	ret = lx_raw(f);
	if (ret >= 0 && !is_repeated(f)) {
		broadcast.nr = (long)f->nr;
		broadcast.args[0] = (long)WF_ARG0(f);
		broadcast.args[1] = (long)WF_ARG1(f);
		broadcast.args[2] = (long)WF_ARG2(f);
		ask_everybody(wf_self_kthread());
		broadcast.is_last = true;
	}
	lx_credentials_unlock();
	return ret;
}

void lx_credentials_forget(void)
{
	__builtin_memset(&broadcast, 0, sizeof(broadcast));
}
