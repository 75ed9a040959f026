// SPDX-License-Identifier: Apache-2.0
/* The poller's own kernel thread; see poller.h. */
#include "sched/poller.h"
#include "arch/arch.h"
#include "sched/clock.h"
#include "sched/kick.h"
#include "sched/preempt.h"
#include "sched/runtime.h"
#include "sched/staff.h"
#include "sched/worker.h"
#include "sys/slice.h"

/* So long nothing but computing, then it comes; so long something else, then it goes. */
#define COMES_AFTER_NS (5 * WF_MS)
#define GOES_AFTER_NS (20 * WF_MS)
/* So many events in a row that nobody waited for: a registered descriptor of threads that are busy. */
#define FRUITLESS_MAX 16
#define PAUSE_MIN_NS (10 * WF_MS)
#define PAUSE_MAX_NS (640 * WF_MS)

static void leave(uint32_t state)
{
	(void)wf_cas(&wf_rt.poller.state, &state, (uint32_t)WF_POLLER_AWAY);
}

static void poll_beside(void *arg)
{
	struct wf_kthread *k = arg;
	uint32_t fruitless = 0;
	int64_t pause = PAUSE_MIN_NS;

	wf_arch_set_self(k);
	wf_preempt_init_kthread(k);
	k->is_poller = true;
	wf_staff_name("weft-poll");
	(void)sys_slice_ask(SYS_SLICE_SHORT_NS);
	wf_store_release(&wf_rt.poller.kthread, k);
	while (!wf_load_relaxed(&wf_rt.is_stopping)) {
		uint32_t state = wf_load_seq_cst(&wf_rt.poller.state);
		uint64_t unparks = k->count.unparks;

		if (state == WF_POLLER_AWAY) {
			(void)sys_futex_wait(&wf_rt.poller.state, WF_POLLER_AWAY, -1);
			continue;
		}
		/* The kernel wakes who came last: we must not stand before a worker. */
		if (state == WF_POLLER_LEAVES || wf_load_seq_cst(&wf_rt.nr_idle)) {
			leave(state);
			continue;
		}
		if (fruitless == FRUITLESS_MAX) {
			fruitless = 0;
			wf_store_relaxed(&wf_rt.poller.not_before, wf_now() + pause);
			pause = WF_MIN(2 * pause, PAUSE_MAX_NS);
			leave(state);
			continue;
		}
		wf_worker_pass_wake_on(wf_rt_poll(-1));
		fruitless++;
		if (k->count.unparks != unparks) {
			fruitless = 0;
			pause = PAUSE_MIN_NS;
		}
	}
}

static bool computes(struct wf_worker *w)
{
	const struct wf_kthread *k = wf_load_acquire(&w->kthread);
	bool has_idled = wf_load_hint(&w->has_idled);

	wf_store_hint(&w->has_idled, false);
	return !has_idled && k && wf_load_relaxed(&k->cur) && !wf_load_relaxed(&k->insys) &&
	       !wf_load_relaxed(&k->direct) && wf_load_hint(&w->turn_ns) > WF_MOVE_NS;
}

static bool do_all_compute(void)
{
	bool do_all = !wf_load_relaxed(&wf_rt.nr_idle);

	for (uint32_t i = 0; i < wf_rt.nr_workers; i++)
		do_all &= computes(&wf_rt.workers[i]);
	return do_all;
}

static void come(uint32_t state, int64_t now)
{
	if (now < wf_load_relaxed(&wf_rt.poller.not_before) ||
	    !wf_cas(&wf_rt.poller.state, &state, (uint32_t)WF_POLLER_STAYS))
		return;
	if (state == WF_POLLER_AWAY) {
		(void)sys_futex_wake(&wf_rt.poller.state, 1);
	} else if (state == WF_POLLER_NONE && !wf_staff_spawn_helper(poll_beside, NULL)) {
		wf_store_relaxed(&wf_rt.poller.not_before, now + WF_SEC);
		wf_store_release(&wf_rt.poller.state, (uint32_t)WF_POLLER_NONE);
	}
}

static void send_away(uint32_t state)
{
	struct wf_kthread *k = wf_load_acquire(&wf_rt.poller.kthread);

	if (state == WF_POLLER_STAYS &&
	    !wf_cas(&wf_rt.poller.state, &state, (uint32_t)WF_POLLER_LEAVES))
		return;
	if (k)
		wf_kick(k);
}

void wf_poller_look(int64_t now)
{
	struct wf_poller *p = &wf_rt.poller;
	uint32_t state = wf_load_acquire(&p->state);
	bool is_here = state == WF_POLLER_STAYS || state == WF_POLLER_LEAVES, is_wanted;

	if (!wf_rt.io->may_sleep_beside)
		return;
	is_wanted = do_all_compute() && wf_rt.io->has_waiters();
	if (is_wanted != p->is_wanted) {
		p->is_wanted = is_wanted;
		p->since = now;
	}
	if (is_wanted && state == WF_POLLER_LEAVES)
		(void)wf_cas(&p->state, &state, (uint32_t)WF_POLLER_STAYS);
	else if (is_wanted && !is_here && now - p->since >= COMES_AFTER_NS)
		come(state, now);
	else if (!is_wanted && is_here && now - p->since >= GOES_AFTER_NS)
		send_away(state);
}
