// SPDX-License-Identifier: Apache-2.0
/*
 * set*id: credentials belong to kernel threads, POSIX gives them to the process.
 *
 * libc changes them for the process: the thread that is called signals all others (33, SIGSETXID), each makes the call in the
 * handler, then it makes the call itself. It does so under a lock of its own, and waits for each signal's call. Our threads
 * share kernel threads, so here the first call of such a round that succeeds is made by everybody (everybody.c), and the
 * others are told what it did on the kernel thread where they find themselves: on one that a thread owns that may be
 * something else, and libc ends a process whose threads do not agree.
 *
 * Invariant: a call by libc belongs to the round that is open, as long as signals of the round have been sent for which no call
 * has come; the one that comes when there is none left is that of the thread that began, and ends the round. So a round
 * is told from the next one, though that may have the same arguments and is another call: setreuid(), setgroups().
 *
 * Any other call, by syscall() or by an instruction of the program's own, means the calling thread, as servers do that act
 * for many users. It gets a kernel thread of its own. One that is alone is the process.
 */
#include "linux/bind.h"
#include "linux/bindcalls.h"
#include "linux/calls.h"
#include "linux/credentials.h"
#include "linux/everybody.h"
#include "sched/insys.h"

#define SYSCALL_FUNCTION_BYTES 64

/* All but the first under the lock of everybody.c. */
static struct {
	uint32_t nr_sent; /* (a) signals, for each of which a call has yet to come */
	bool is_made;     /* this call of the round that goes on, by everybody: */
	struct lx_everybody call;
	uint32_t seq; /* as which request */
	long ret;
} change;

static bool is_by_libc(const struct wf_frame *f)
{
	uintptr_t fn = (uintptr_t)lx_config.syscall_function;

	return lx_gate.in_libc(f->next) && !(fn && f->next - fn < SYSCALL_FUNCTION_BYTES);
}

bool lx_credentials_is_round(const struct wf_frame *f, int sig)
{
	return sig == LX_SIG_SETXID && is_by_libc(f);
}

void lx_credentials_sent(void)
{
	wf_fetch_add(&change.nr_sent, 1u);
}

static bool take_sent(void)
{
	uint32_t nr = wf_load_acquire(&change.nr_sent);

	while (nr && !wf_cas(&change.nr_sent, &nr, nr - 1))
		;
	return nr;
}

void lx_credentials_not_sent(void)
{
	(void)take_sent();
}

static int nr_args(long nr)
{
	switch (nr) {
	case __NR_setuid:
	case __NR_setgid:
		return 1;
	case __NR_setreuid:
	case __NR_setregid:
	case __NR_setgroups:
		return 2;
	default:
		return 3;
	}
}

static bool is_same(const struct lx_everybody *a, const struct lx_everybody *b)
{
	for (int i = 0; i < nr_args(a->nr); i++)
		if (a->args[i] != b->args[i])
			return false;
	return a->nr == b->nr;
}

static long change_all(const struct wf_frame *f)
{
	const struct lx_everybody call = {
		.nr = (long)f->nr,
		.args = { (long)WF_ARG0(f), (long)WF_ARG1(f), (long)WF_ARG2(f) },
		.is_own_state = lx_has_own_state(),
	};
	long ret;

	wf_call_enter(false);
	lx_everybody_lock();
	/* A thread that sends 33 by itself has libc's handler make its last call once more: the next call is no part of that. */
	if (change.is_made && is_same(&call, &change.call)) {
		ret = lx_everybody_answer_of(change.seq, change.ret);
	} else {
		ret = change.ret = lx_everybody_make(&call, &change.seq);
		change.is_made = ret >= 0; /* else each thread tries for itself */
		change.call = call;
	}
	if (!take_sent())
		change.is_made = false;
	lx_everybody_unlock();
	wf_call_leave();
	return ret;
}

long sysc_set_credentials(struct wf_frame *f)
{
	return is_by_libc(f) ? change_all(f) : lx_bind_call_unless_alone(f);
}

void lx_credentials_forget(void)
{
	__builtin_memset(&change, 0, sizeof(change));
}
