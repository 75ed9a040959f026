// SPDX-License-Identifier: Apache-2.0
/* The loop of a kernel thread, between the threads that it runs; see carrier.h. */
#include "sched/carrier.h"
#include "arch/arch.h"
#include "base/fmt.h"
#include "sched/bind.h"
#include "sched/crowd.h"
#include "sched/idle.h"
#include "sched/peer.h"
#include "sched/preempt.h"
#include "sched/runtime.h"
#include "sched/staff.h"
#include "sched/worker.h"

#include <errno.h>

/* A burst of calls that block may leave many spares; those of the next burst come at once. */
#define SPARE_LIFE_NS (5 * WF_SEC)

/* True: nobody needed us for long, and the kernel thread is to end. */
static bool wait_as_spare(struct wf_kthread *k)
{
	int64_t life = k->is_tied ? -1 : SPARE_LIFE_NS;

	if (WF_UNLIKELY(wf_load_relaxed(&wf_rt.is_stopping)))
		return true;
	wf_staff_add_spare(k);
	while (wf_load_acquire(&k->sleep_word)) {
		if (sys_futex_wait(&k->sleep_word, 1, life) != -ETIMEDOUT)
			continue;
		if (wf_staff_retire_spare(k))
			return true;
		life = -1; /* one of the few that stay, or just taken */
	}
	return false;
}

/* By number of the kernel thread: it carries now this worker and now that one, or waits for one. */
static void name_carrier(const struct wf_kthread *k)
{
	char role[16];
	struct wf_fmt f;

	wf_fmt_init(&f, role, sizeof(role));
	wf_fmt_str(&f, "weft/");
	wf_fmt_u64(&f, k->index);
	wf_staff_name(role);
}

void wf_carrier_loop(void *arg)
{
	struct wf_kthread *k = arg;

	wf_arch_set_self(k);
	wf_preempt_init_kthread(k);
	wf_crowd_begin_carrier();
	if (!k->bound) { /* that one has the name of its thread, which made it */
		name_carrier(k);
		wf_peer_watch(k);
	}
	for (;;) {
		struct wf_thread *t;

		wf_worker_finish_switch(k);
		if (WF_UNLIKELY(k->bound)) {
			wf_worker_enter_bound(k);
			continue;
		}
		if (WF_UNLIKELY(k->is_ending))
			wf_bind_exit(k);
		if (!wf_load_acquire(&k->worker)) {
			if (wait_as_spare(k))
				return;
			continue;
		}
		t = wf_idle_find_work(k);
		if (t)
			wf_worker_enter(k, t);
	}
}

void wf_carrier_loop_later(void *arg)
{
	struct wf_kthread *k = arg;

	while (wf_load_acquire(&k->sleep_word))
		(void)sys_futex_wait(&k->sleep_word, 1, -1);
	wf_carrier_loop(k);
}
