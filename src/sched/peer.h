// SPDX-License-Identifier: Apache-2.0
/*
 * Does the peer of a thread, who answers what it sends, run on the same processor?
 *
 * A client on the same machine often does: the kernel moves it to whoever wakes it. Then sending to it and waiting for what
 * it sends back are switches of one processor. Apart, each of them is a wake-up of the other one, 10 us and more for both,
 * until the two meet again by chance. So a thread whose peer is here should not be moved without need.
 *
 * To send wakes the peer, and when that one is here and its turn has come, the kernel takes the processor from us before the
 * call returns. It tells us so: outside of the sequence that rseq.sequence points to, it stores NULL there. Ours points to
 * one that nobody executes. Where rseq(2) is refused nobody's peer is ever here, and all is as without this.
 */
#ifndef WF_SCHED_PEER_H
#define WF_SCHED_PEER_H

#include "sched/worker.h"

extern const struct sys_rseq_cs wf_peer_sequence;

/* The calling kernel thread, k, will run threads. */
void wf_peer_watch(struct wf_kthread *k);
/* In the child of a fork by k. */
void wf_peer_unwatch(struct wf_kthread *k);

/* Around a system call that sends, and that does not block: k is the same before and after. */
WF_INLINE void wf_peer_before_send(struct wf_kthread *k)
{
	wf_store_relaxed(&k->rseq.sequence, (uint64_t)(uintptr_t)&wf_peer_sequence);
}

/* It rises by two, since an answer may be sent in two parts, of which one wakes the peer. */
WF_INLINE unsigned wf_peer_learn(unsigned before, bool is_here)
{
	return is_here ? wf_habit_rise(WF_HABIT_PEER_HERE, before, 1)
		       : wf_habit_fall(WF_HABIT_PEER_HERE, before);
}

/* It went to fd. A thread that sends to one after the other serves many, and has no peer. */
WF_INLINE void wf_peer_after_send(struct wf_kthread *k, int fd)
{
	struct wf_worker *w = wf_load_relaxed(&k->worker);
	struct wf_thread *self = k->cur;
	bool is_same = self->peer_fd == ((unsigned)fd & 0xffff);
	bool is_here = is_same && !wf_load_relaxed(&k->rseq.sequence);

	self->peer_fd = (unsigned)fd & 0xffff;
	self->peer_here = is_same ? wf_peer_learn(self->peer_here, is_here) & 15u : 0;
	if (w)
		wf_store_hint(&w->peers_here, (uint8_t)wf_peer_learn(w->peers_here, is_here));
}

/* Others have a use for w's processor when it sleeps: peers of the threads that ran on it lately. */
WF_INLINE bool wf_peer_is_any(const struct wf_worker *w)
{
	return wf_habit_holds(WF_HABIT_PEER_HERE, wf_load_hint(&w->peers_here));
}

/* w has not run for a while: peers that were here may be elsewhere by now. */
WF_INLINE void wf_peer_forget(struct wf_worker *w)
{
	wf_store_hint(&w->peers_here, w->peers_here / 2);
}

#endif
