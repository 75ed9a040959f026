// SPDX-License-Identifier: Apache-2.0
/*
 * Dispatch: from the gate to the handler of a system call, and what the gate asks around it.
 *
 * Called by: gate.S.
 */
#include "linux/dispatch.h"
#include "linux/abi.h"
#include "linux/bind.h"
#include "linux/bindcalls.h"
#include "linux/call.h"
#include "linux/process.h"
#include "linux/sigdeliver.h"
#include "linux/table.h"
#include "linux/scope.h"
#include "sched/park.h"
#include "sched/shuffle.h"

#include <linux/prctl.h>

#ifndef PR_SET_MDWE
#define PR_SET_MDWE 65
#endif

/* Calls that nobody answers: whatever they do, the monitor sees to it that nobody waits for them. */
static long pass_through(struct wf_frame *f)
{
	return lx_blocking(f, false);
}

_Static_assert(ERESTARTSYS == WF_RESTART_FIRST && ERESTART_RESTARTBLOCK == WF_RESTART_LAST &&
		       EINTR == WF_EINTR,
	       "gate.S relies on it");

typedef long (*handler_fn)(struct wf_frame *f);

static handler_fn handler_of(const struct wf_kthread *k, uint64_t nr)
{
	handler_fn handler = nr < LX_MAX_NR ? lx_table[nr].handler : NULL;

	if (WF_UNLIKELY(k->bound))
		handler = lx_bind_handler((long)nr, handler);
	return handler ? handler : pass_through;
}

static WF_NOINLINE long enter_shuffled(struct wf_frame *f)
{
	struct wf_kthread *k;
	long ret;

	if (wf_shuffle_enters())
		wf_yield();
	k = wf_own_kthread();
	wf_store_relaxed(&k->call_nr, (uint32_t)f->nr);
	ret = handler_of(k, f->nr)(f);
	wf_shuffle_leave();
	return ret;
}

/* A call that does not return has no second event: it ends its thread, or goes back to what a signal interrupted. */
static WF_NOINLINE long enter_traced(struct wf_frame *f)
{
	struct wf_kthread *k = wf_own_kthread();
	uint64_t nr = f->nr;
	long ret;

	WF_TRACE(k, WF_EV_SYSCALL, nr, WF_ARG0(f));
	ret = wf_is_shuffled() ? enter_shuffled(f) : handler_of(k, nr)(f);
	WF_TRACE(wf_own_kthread(), WF_EV_RETURN, nr, ret);
	return ret;
}

/*
 * The handler is called last, and returns to the gate: on its way through the kernel a call has made the processor forget
 * where we return to, so that each level of calls above it costs a misprediction.
 */
long wf_linux_enter(struct wf_frame *f)
{
	struct wf_kthread *k = wf_own_kthread();

	k->cur->keeps_vectors = false;
	if (WF_UNLIKELY(f->resume & 1ull << WF_FRAME_KEEPS_BIT)) {
		k->cur->keeps_vectors = true;
		f->resume &= ~(1ull << WF_FRAME_KEEPS_BIT);
	}
	wf_store_relaxed(&k->call_nr, (uint32_t)f->nr);
	if (WF_UNLIKELY(wf_load_hint(&wf_trace.wanted) & (WF_TRACE_CALLS | WF_TRACE_PROBES)))
		return enter_traced(f);
	if (wf_is_shuffled())
		return enter_shuffled(f);
	return handler_of(k, f->nr)(f);
}

/* A handler starts from here, not from the exit: the bit would end its own waits at once. EINTR is decided, but for scopes. */
void wf_linux_interrupted(struct wf_frame *f)
{
	if (wf_frame_result(f) == -EINTR) {
		long error = lx_scope_error(f);

		wf_frame_answer(f, error ? error : -EINTR);
		return;
	}
	(void)wf_fetch_and(&wf_self()->attention, ~WF_ATT_SIGNAL);
	lx_signal_exit(f);
}

static bool sets_filter(const struct wf_frame *f)
{
	return f->nr == __NR_seccomp ? WF_ARG0(f) <= 1
	       : f->nr == __NR_prctl ? WF_ARG0(f) == PR_SET_SECCOMP
				     : false;
}

/*
 * A program that limits itself before its first thread. Its filter was made for the calls of plain threads,
 * and may answer a call that it does not know with death: such a program stays native, and so do children of one that
 * filters itself later. A call that forbids to write text only from now on comes after the writing. One that serves its own page faults tells us before they begin.
 */
static long limit_self(struct wf_frame *f)
{
	long ret;

	if (f->nr == __NR_prctl && WF_ARG0(f) == PR_SET_MDWE && lx_config.prepare)
		(void)lx_config.prepare();
	ret = lx_raw(f);
	if (sets_filter(f) && ret >= 0)
		lx_stay_native(LX_WHY_FILTERED);
	if (f->nr == __NR_userfaultfd && ret >= 0)
		lx.has_userfaults = true;
	return ret;
}

/* The calls that gate.S picks out, by a kernel thread that is not ours, or not yet. */
void wf_linux_make(struct wf_frame *f)
{
	if (sets_filter(f))
		lx_filtered();
	if (f->nr == __NR_execve || f->nr == __NR_execveat) {
		lx_exec_notice(f);
		wf_frame_answer(f, lx_raw(f));
	} else if (f->nr == __NR_clone || f->nr == __NR_clone3) {
		wf_frame_answer(f, lx_table[f->nr].handler(f));
	} else if (wf_self_kthread() || wf_load_acquire(&wf_rt.started)) {
		wf_frame_answer(f, lx_raw(f));
	} else {
		wf_frame_answer(f, limit_self(f));
	}
}

/* The gate's exit found the attention word set. */
void wf_linux_attention(struct wf_frame *f)
{
	struct wf_thread *self = wf_self();
	uint32_t seen = wf_fetch_and(&self->attention,
				     ~(WF_ATT_RESCHED | WF_ATT_SIGNAL | WF_ATT_BIND));

	if (seen & WF_ATT_BIND)
		lx_bind_rethink(lx_of(self), true);
	if (seen & WF_ATT_SIGNAL)
		lx_signal_exit(f);
	if (seen & WF_ATT_RESCHED)
		wf_give_way();
}

bool lx_wants(int nr)
{
	return nr >= 0 && nr < LX_MAX_NR && lx_table[nr].handler;
}

bool lx_wants_at_start(int nr)
{
	return nr == __NR_clone || nr == __NR_clone3 || nr == __NR_prctl || nr == __NR_seccomp ||
	       nr == __NR_userfaultfd || nr == __NR_execve || nr == __NR_execveat;
}
