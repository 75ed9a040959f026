// SPDX-License-Identifier: Apache-2.0
/*
 * timer_create(2): kernel timers whose signal is for one thread.
 *
 * The kernel knows no weft thread: such a timer signals the door's kernel thread, and the door passes the
 * signal on by the timer's number. libc's SIGEV_THREAD helper is such a thread.
 */
#include "linux/abi.h"
#include "linux/calls.h"

#define SIGEV_THREAD_ID 4
#define MAX_TIMERS 1024

struct sigevent_k {
	uint64_t value;
	int signo, notify, tid, pad[11];
};

static struct {
	struct wf_spin lock;
	uint32_t tid[MAX_TIMERS]; /* (q) by timer number; 0: not for one thread */
} timers;

long sysc_timer_create(struct wf_frame *f)
{
	struct sigevent_k ev;
	uint32_t tid;
	int id = 0;
	long ret;

	if (!WF_ARG1(f))
		return lx_raw(f);
	if (wf_arch_copy(&ev, (const void *)WF_ARG1(f), sizeof(ev)) < 0)
		return -EFAULT;
	if (ev.notify != SIGEV_THREAD_ID)
		return lx_raw(f);
	tid = (uint32_t)ev.tid;
	if (!tid || !lx_by_tid(tid))
		return -EINVAL;
	ev.tid = wf_rt.door->tid;
	ret = sys3(__NR_timer_create, WF_ARG0(f), &ev, &id);
	if (ret < 0)
		return ret;
	if (id >= MAX_TIMERS) {
		(void)sys1(__NR_timer_delete, id);
		return -EAGAIN;
	}
	wf_spin_lock(&timers.lock);
	timers.tid[id] = tid;
	wf_spin_unlock(&timers.lock);
	return wf_arch_copy((void *)WF_ARG2(f), &id, sizeof(id));
}

long sysc_timer_delete(struct wf_frame *f)
{
	uint32_t id = (uint32_t)WF_ARG0(f);
	long ret = lx_raw(f);

	if (ret == 0 && id < MAX_TIMERS) {
		wf_spin_lock(&timers.lock);
		timers.tid[id] = 0;
		wf_spin_unlock(&timers.lock);
	}
	return ret;
}

struct lx_thread *lx_timer_target(int timer_id)
{
	uint32_t tid = 0;

	if (timer_id < 0 || timer_id >= MAX_TIMERS)
		return NULL;
	wf_spin_lock(&timers.lock);
	tid = timers.tid[timer_id];
	wf_spin_unlock(&timers.lock);
	return tid ? lx_by_tid(tid) : NULL;
}

void lx_timer_forget(void)
{
	__builtin_memset(&timers, 0, sizeof(timers));
}
