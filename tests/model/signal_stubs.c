// SPDX-License-Identifier: Apache-2.0
/* Others that the files of src/linux ask that deliver signals; they have nothing to say here. */
#include "linux/bind.h"
#include "linux/calls.h"
#include "linux/credentials.h"
#include "linux/everybody.h"
#include "linux/comm.h"
#include "linux/overflow.h"
#include "linux/remote.h"
#include "linux/robust.h"
#include "linux/timercpu.h"
#include "linux/watchdog.h"
#include "signal_machine.h"
#include "linux/bindcalls.h"
#include "linux/ending.h"
#include "linux/futex_pi.h"
#include "linux/heir.h"
#include "linux/process.h"
#include "linux/sigfd.h"
#include "linux/timertable.h"

struct lx_process lx;
struct lx_gate_ops lx_gate;
struct lx_config lx_config;

struct lx_thread *lx_by_tid(uint32_t tid)
{
	struct wf_thread *t = wf_thread_by_tid(tid);

	return t ? lx_of(t) : NULL;
}

void lx_bind_rethink(struct lx_thread *t, bool may_switch)
{
}

long (*lx_bind_handler(long nr, long (*handler)(struct wf_frame *)))(struct wf_frame *)
{
	return handler;
}

void lx_everybody_answer(struct wf_kthread *k)
{
}

bool lx_credentials_is_round(const struct wf_frame *f, int sig)
{
	return false;
}

void lx_credentials_sent(void)
{
}

void lx_credentials_not_sent(void)
{
}

void lx_remote_answer(struct wf_kthread *k)
{
}

void lx_timer_drain_begin(void)
{
}

bool lx_timer_is_back(const struct wf_siginfo *info)
{
	return false;
}

void lx_timer_taken(const struct wf_siginfo *info)
{
}

static uint32_t timer_target;

void signal_timer_for(struct lx_thread *t)
{
	timer_target = t ? lx_tid(t) : 0;
}

uint32_t lx_timer_target(int timer_id)
{
	return timer_target;
}

void lx_timer_cpu_expired(int timer_id)
{
}

void lx_robust_walk_all(void (*died)(uint32_t *addr, bool is_pi, bool is_pending, uint32_t tid))
{
}

void lx_comm_lend(const struct lx_thread *t)
{
}

int lx_kernel_tid(void)
{
	return wf_own_kthread()->tid;
}

bool lx_ending_begin(void)
{
	return true;
}

void lx_ending_over(void)
{
}

void lx_ending_record(int sig)
{
}

void lx_ending_tell(int sig)
{
}

bool lx_overflow_find(struct lx_overflow *out, const struct lx_thread *t,
		      const struct wf_siginfo *info, const struct wf_ucontext *uc)
{
	return false;
}

bool lx_overflow_has_room(const struct lx_thread *t, const struct sys_sigaction *act,
			  const struct wf_ucontext *uc)
{
	return true;
}

void lx_futex_owner_died(uint32_t *addr, bool is_pi, bool is_pending, uint32_t tid)
{
}

void lx_heir_answer(void)
{
}

int64_t lx_watchdog_look(int64_t now)
{
	return WF_NEVER;
}

void lx_stay_native(const char *why)
{
}

void lx_filtered(void)
{
}

void lx_exec_notice(struct wf_frame *f)
{
}

bool lx_signalfd_shows(int sig)
{
	return false;
}

long sysc_new_fd(struct wf_frame *f)
{
	return -ENOSYS;
}
