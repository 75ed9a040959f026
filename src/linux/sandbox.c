// SPDX-License-Identifier: Apache-2.0
/*
 * Calls by which a thread gives up rights. The kernel keeps them for each kernel thread: a thread that makes one beside
 * others gets a kernel thread of its own (bind.c). One that is alone is the whole process, and the kernel threads that we
 * have beside it (the door, idle ones, spares, the poller, those of rings) must not keep what it gives up: a word in
 * memory is enough to have them make a call.
 *
 * A plain value everybody sets alike, and the thread is bound to nothing. A filter the kernel sets for all at once.
 * A Landlock domain is made by each for itself, as strict as the others; but such domains are strangers to one another (for
 * ptrace, signals and sockets that they keep apart), so the thread stays in one: it is bound, and what it makes inherits that.
 */
#include "linux/sandbox.h"
#include "linux/bind.h"
#include "linux/bindcalls.h"
#include "linux/call.h"
#include "linux/calls.h"
#include "linux/everybody.h"
#include "linux/remote.h"
#include "linux/ring.h"
#include "linux/sysfilter.h"

#include <linux/prctl.h>
#include <linux/seccomp.h>

enum kept {
	KEPT_BY_PROCESS,
	KEPT_ALIKE, /* by each kernel thread, and the same value means the same for each */
	KEPT_APART  /* something of that kernel thread alone */
};

static enum kept who_keeps(uint64_t option, uint64_t what)
{
	switch (option) {
	case PR_SET_KEEPCAPS:
	case PR_CAPBSET_DROP:
	case PR_SET_SECUREBITS:
	case PR_MCE_KILL:
	case PR_SET_NO_NEW_PRIVS:
	case PR_SET_SPECULATION_CTRL:
	case PR_SET_IO_FLUSHER:
		return KEPT_ALIKE;
	case PR_CAP_AMBIENT:
		return what == PR_CAP_AMBIENT_IS_SET ? KEPT_BY_PROCESS : KEPT_ALIKE;
	case PR_SET_FPEMU:
	case PR_SET_FPEXC:
	case PR_SET_TSC: /* the runtime reads that clock, too */
	case PR_SET_SYSCALL_USER_DISPATCH:
	case 62 /* PR_SCHED_CORE */:
		return KEPT_APART;
	default:
		return KEPT_BY_PROCESS;
	}
}

/* A kernel thread that its bound thread has left, with another filter, is still on its way out. */
static bool is_on_its_way_out(long tid)
{
	const struct wf_kthread *k = lx_remote_find((int)tid);

	return !k || wf_load_acquire(&k->is_ending);
}

#define ENDING_ROUNDS                                                                              \
	20000 /* of sys_relax(), a second or more: where the kernel does not say who has another filter */

/*
 * It is set for all, or for nobody: 0 (a descriptor if one is asked for) or -errno. -ESRCH: some kernel thread has a filter
 * that the caller does not have.
 */
static long set_filter_for_all(uint64_t flags, const void *prog)
{
	const bool listens = flags & SECCOMP_FILTER_FLAG_NEW_LISTENER;

	flags |= SECCOMP_FILTER_FLAG_TSYNC;
	if (listens)
		flags |= SECCOMP_FILTER_FLAG_TSYNC_ESRCH;
	for (uint32_t round = 0;; round++) {
		long ret = sys3(__NR_seccomp, SECCOMP_SET_MODE_FILTER, flags, prog);

		if (listens ? ret != -ESRCH || round == ENDING_ROUNDS : ret <= 0)
			return ret;
		if (!listens && !is_on_its_way_out(ret))
			return -ESRCH;
		sys_relax(round);
	}
}

/* One that kills whoever writes is told of before, though the kernel may refuse it; others when they are in force. */
static long filter_self(struct wf_frame *f, const void *prog, const char *why_not_all)
{
	bool may_say = lx_sysfilter_lets_say(prog);
	long ret;

	if (!may_say)
		lx_config.on_outside(why_not_all);
	ret = lx_blocking(f, false);
	if (may_say && ret >= 0)
		lx_config.on_outside(why_not_all);
	return ret;
}

static long filter_alone(struct wf_frame *f, uint64_t flags, const void *prog)
{
	bool had_state = lx_has_own_state();
	/* Its calls are real from now on: a filter may know only those that the program makes. */
	long ret = lx_bind_for(LX_BIND_STATE);

	if (ret < 0)
		return ret;
	lx_ring_end();
	if (!lx_sysfilter_lets_runtime(prog))
		ret = filter_self(f, prog, "its filter forbids what they need");
	else if ((ret = set_filter_for_all(flags, prog)) == -ESRCH)
		ret = filter_self(f, prog, "one of them has another filter");
	if (ret < 0 && !had_state)
		lx_bind_no_longer_for(LX_BIND_STATE);
	return ret;
}

/* As for all threads natively. */
static long filter_all(struct wf_frame *f, uint64_t flags)
{
	long ret;

	lx_ring_end();
	wf_store_release(&wf_rt.is_filtered, true);
	ret = lx_raw(f);
	/* Else it is a thread that has another filter. */
	if (ret == 0 || (ret > 0 && flags & SECCOMP_FILTER_FLAG_NEW_LISTENER))
		wf_store_release(&lx.is_filtered, true);
	return ret;
}

static long filter(struct wf_frame *f, uint64_t flags, const void *prog)
{
	long ret;

	lx_filtered();
	if (flags & SECCOMP_FILTER_FLAG_TSYNC)
		return filter_all(f, flags);
	if (lx_is_alone())
		wf_store_release(&wf_rt.is_filtered, true);
	ret = lx_is_alone() ? filter_alone(f, flags, prog) : lx_bind_call(f);
	if (ret >= 0)
		lx_self()->is_filtered = true;
	return ret;
}

long sysc_seccomp(struct wf_frame *f)
{
	switch (WF_ARG0(f)) {
	case SECCOMP_SET_MODE_FILTER:
		return filter(f, WF_ARG1(f), (const void *)WF_ARG2(f));
	case SECCOMP_SET_MODE_STRICT:
		lx_filtered();
		return lx_bind_call(f);
	default:
		return lx_raw(f);
	}
}

long lx_sandbox_prctl(struct wf_frame *f)
{
	if (WF_ARG0(f) == PR_SET_SECCOMP) {
		if (WF_ARG1(f) == SECCOMP_MODE_FILTER)
			return filter(f, 0, (const void *)WF_ARG2(f));
		lx_filtered();
		return lx_bind_call(f);
	}
	switch (who_keeps(WF_ARG0(f), WF_ARG1(f))) {
	case KEPT_ALIKE:
		return lx_bind_call_unless_alone(f);
	case KEPT_APART:
		return lx_bind_call(f);
	default:
		return lx_blocking(f, false);
	}
}

long sysc_landlock_restrict_self(struct wf_frame *f)
{
	const struct lx_everybody no_new_privs = { .nr = __NR_prctl,
						   .args = { PR_SET_NO_NEW_PRIVS, 1 },
						   .is_own_state = lx_has_own_state() };
	bool had_state = lx_has_own_state();
	long ret;

	if (!lx_is_alone())
		return lx_bind_call(f);
	/* A thread that has it from before it was alone could be let in where the others are not. */
	if (sys2(__NR_prctl, PR_GET_NO_NEW_PRIVS, 0) == 1)
		(void)lx_everybody_request(&no_new_privs);
	ret = lx_bind_for(LX_BIND_STATE);
	if (ret < 0)
		return ret;
	ret = lx_everybody_call(f, had_state);
	if (ret < 0 && !had_state)
		lx_bind_no_longer_for(LX_BIND_STATE);
	return ret;
}

/* setfsuid, setfsgid: of one thread only, in libc too. They never fail; -1 asks. */
long sysc_setfsid(struct wf_frame *f)
{
	uint32_t id = (uint32_t)WF_ARG0(f);

	if (id == ~0u || sys1(f->nr, -1) == id)
		return lx_raw(f);
	return lx_bind_call_unless_alone(f);
}
