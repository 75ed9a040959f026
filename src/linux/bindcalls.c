// SPDX-License-Identifier: Apache-2.0
/*
 * Calls whose effect stays with the kernel thread, and how a bound thread makes its calls. Binding itself: bind.c.
 */
#include "linux/bindcalls.h"
#include "arch/arch.h"
#include "io/fdtab.h"
#include "linux/bind.h"
#include "linux/call.h"
#include "linux/calls.h"
#include "linux/everybody.h"
#include "linux/signals.h"

#include <linux/keyctl.h>
#include <linux/personality.h>

#define ARCH_SET_GS 0x1001
#define ARCH_SET_FS 0x1002
#define ARCH_GET_GS 0x1004
#define ARCH_SET_CPUID 0x1012

long lx_bind_call(struct wf_frame *f)
{
	bool was_bound = lx_has_own_state();
	long ret = lx_bind_for(LX_BIND_STATE);

	if (ret < 0)
		return ret;
	ret = lx_blocking(f, false);
	if (ret < 0 && !was_bound)
		lx_bind_no_longer_for(LX_BIND_STATE); /* nothing has changed */
	return ret;
}

long lx_bind_call_unless_alone(struct wf_frame *f)
{
	return lx_is_alone() ? lx_everybody_call(f, lx_has_own_state()) : lx_bind_call(f);
}

/* Nobody else waits for this kernel thread; and a filter of the program's may know only what it calls itself. */
static long call_for_real(struct wf_frame *f)
{
	long ret = lx_blocking(f, false);

	lx_signal_take_raised(ret);
	return ret;
}

long (*lx_bind_handler(long nr, long (*usual)(struct wf_frame *)))(struct wf_frame *)
{
	switch (nr) {
	case __NR_read:
	case __NR_readv:
	case __NR_recvfrom:
	case __NR_write:
	case __NR_writev:
	case __NR_sendto:
	case __NR_sendmsg:
		return call_for_real;
	case __NR_accept:
	case __NR_accept4:
	case __NR_connect:
	case __NR_mq_timedreceive:
	case __NR_mq_timedsend:
	case __NR_preadv2:
	case __NR_pwritev2:
	case __NR_recvmmsg:
	case __NR_recvmsg:
	case __NR_sendfile:
	case __NR_sendmmsg:
	case __NR_splice:
	case __NR_tee:
	case __NR_vmsplice:
		return wf_fd_is_private() ? call_for_real : usual;
	default:
		return usual;
	}
}

long sysc_binds(struct wf_frame *f)
{
	return lx_bind_call(f);
}

static long ring_id(int ring)
{
	return sys3(__NR_keyctl, KEYCTL_GET_KEYRING_ID, ring, 0);
}

/* The kernel makes these when they are first named, for the kernel thread that does it; before, all have the same. */
static bool makes_ring(int ring)
{
	switch (ring) {
	case KEY_SPEC_THREAD_KEYRING:
		return true;
	case KEY_SPEC_PROCESS_KEYRING:
		return ring_id(ring) < 0;
	case KEY_SPEC_SESSION_KEYRING:
		return ring_id(ring) == ring_id(KEY_SPEC_USER_SESSION_KEYRING);
	default:
		return false;
	}
}

/* keyctl, add_key, request_key: those that change what the thread itself has. Any number of keyctl may be a ring. */
long sysc_keys(struct wf_frame *f)
{
	int op = (int)WF_ARG0(f);
	bool is_own;

	switch (f->nr) {
	case __NR_add_key:
		is_own = makes_ring((int)WF_ARG4(f));
		break;
	case __NR_request_key:
		is_own = makes_ring((int)WF_ARG3(f));
		break;
	default:
		is_own = op == KEYCTL_JOIN_SESSION_KEYRING || op == KEYCTL_SET_REQKEY_KEYRING ||
			 op == KEYCTL_ASSUME_AUTHORITY || makes_ring((int)WF_ARG1(f)) ||
			 makes_ring((int)WF_ARG2(f)) || makes_ring((int)WF_ARG3(f)) ||
			 makes_ring((int)WF_ARG4(f));
	}
	return is_own ? lx_bind_call(f) : lx_blocking(f, false);
}

long sysc_personality(struct wf_frame *f)
{
	if ((uint32_t)WF_ARG0(f) == LX_PERSONALITY_QUERY)
		return lx_raw(f);
	if (WF_ARG0(f) & STICKY_TIMEOUTS)
		wf_store_release(&lx.has_sticky_timeouts, true);
	return lx_bind_call(f);
}

/* The kernel says what may be there. It is put there for a moment, in which a kick finds it as in the program's code. */
static long set_base(struct lx_thread *self, struct wf_frame *f)
{
	struct wf_kthread *k = wf_own_kthread();
	long ret;

	if (!WF_ARG1(f) && !self->base.user_base)
		return 0;
	lx_share_base();
	ret = lx_raw(f);
	wf_arch_set_self(k);
	if (ret == 0)
		self->base.user_base = WF_ARG1(f);
	return ret;
}

long sysc_arch_prctl(struct wf_frame *f)
{
	struct lx_thread *self = lx_self();
	long ret;

	switch (WF_ARG0(f)) {
	case ARCH_SET_FS:
		ret = lx_raw(f);
		if (ret == 0)
			self->base.tls = wf_own_kthread()->tls = WF_ARG1(f);
		return ret;
	case ARCH_SET_GS:
		return set_base(self, f);
	case ARCH_GET_GS:
		return wf_arch_copy((void *)WF_ARG1(f), &self->base.user_base,
				    sizeof(self->base.user_base));
	case ARCH_SET_CPUID:
		return lx_bind_call(f);
	default:
		return lx_raw(f);
	}
}
