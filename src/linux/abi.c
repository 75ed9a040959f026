// SPDX-License-Identifier: Apache-2.0
/*
 * The process, what the gate and its settings told us, and which thread a tid names: what all files of linux/ share.
 */
#include "linux/abi.h"
#include "arch/arch.h"

struct lx_process lx;
struct lx_config lx_config;
struct lx_gate_ops lx_gate;

static const char *native_why; /* decided before the first thread; NULL: not so */
static bool shares_base;

struct lx_thread *lx_by_tid(uint32_t tid)
{
	struct wf_thread *t;

	if (!tid)
		return lx_self();
	if (tid == (uint32_t)wf_rt.pid) {
		enum wf_state s = wf_state_of(wf_load_acquire(&lx.main->base.state));

		return lx_tid(lx.main) == tid && s != WF_FREE && s != WF_DEAD ? lx.main : NULL;
	}
	t = wf_thread_by_tid(tid);
	return t ? lx_of(t) : NULL;
}

int lx_kernel_tid(void)
{
	const struct wf_kthread *k = wf_self_kthread();

	return k ? wf_load_relaxed(&k->tid) : (int)sys0(__NR_gettid);
}

void lx_stay_native(const char *why)
{
	native_why = why;
}

const char *lx_why_native(void)
{
	return native_why;
}

void lx_filtered(void)
{
	lx_config.before_exec = NULL;
}

void lx_share_base(void)
{
	uint32_t on = WF_GATE_ON;

	shares_base = true;
	(void)wf_cas(&wf_arch_gate_on, &on, (uint32_t)WF_GATE_SHARED);
}

bool lx_shares_base(void)
{
	return shares_base;
}
