// SPDX-License-Identifier: Apache-2.0
/*
 * "Sleep until my word is set": how every wait of libweft is made, by a thread of ours or by any other kernel thread.
 *
 * Called by: event.c, chan.c and select.c; native/select.c for waits that descriptors end, too.
 *
 *	the waiter:	put a node on the list of each object, under its lock;
 *			wf_wait_park(); give up, and take the nodes away again, if nobody came.
 *	the waker:	under the object's lock take a node off the list and claim it;
 *			give up the lock; move the item; wf_wait_serve().
 *
 * Invariant: the word leaves PENDING once, by a compare-and-swap: a waker has claimed the wait, or the waiter has given it up.
 * A claimed waiter does not return before its waker has served it, which is the last that a waker does with anything of the
 * waiter's; so no waker of this wait can reach the thread's next one (see sched/park.h), and the nodes may lie on its stack.
 *
 * A waker has given up the object's lock when it serves, and a waiter that was served does not touch the object again: so
 * either side may free the object as soon as its call has returned.
 */
#ifndef WF_SYNC_WAIT_H
#define WF_SYNC_WAIT_H

#include "base/die.h"
#include "sched/park.h"
#include "sys/syscall.h"

/*
 * The word:
 *   PENDING -> OVER          the waiter   CAS: time, a signal, a scope, or it found something itself
 *   PENDING -> claimed       a waker      CAS, under the lock of the node's object; says which node
 *   claimed -> served        that waker   store, its last access
 */
#define WF_WAIT_PENDING 0u
#define WF_WAIT_OVER 1u
#define WF_WAIT_SERVED 1u /* in a claimed word */

struct wf_waiter {
	struct wf_thread
		*thread; /* (c) NULL: a kernel thread that sleeps on the word, or that polls fd */
	uint32_t word;   /* (a) */
	int fd;          /* (c) an eventfd for whoever claims it, or -1 */
};

/* One object of one wait. */
struct wf_wait_node {
	struct wf_list link;       /* (q) */
	struct wf_waiter *waiter;  /* (c) */
	void *item;                /* (c) where it is taken from, or put */
	struct wf_wait_node *next; /* of the waker that has claimed it */
	/* (c) of the same wait on the lists of the same object, which a claim takes off them as well; or NULL */
	struct wf_wait_node *sibling;
	uint32_t index; /* (c) among the nodes of its wait */
	int result;     /* (p) of the waker, before it serves */
};

WF_INLINE void wf_waiter_init(struct wf_waiter *w, struct wf_thread *self)
{
	w->thread = self;
	w->word = WF_WAIT_PENDING;
	w->fd = -1;
}

WF_INLINE void wf_wait_node_init(struct wf_wait_node *n, struct wf_waiter *w, uint32_t index,
				 void *item)
{
	wf_list_init(&n->link);
	n->waiter = w;
	n->item = item;
	n->sibling = NULL;
	n->index = index;
	n->result = 0;
}

WF_INLINE bool wf_wait_is_claimed(uint32_t word)
{
	return word > WF_WAIT_OVER;
}

/* Of a claimed word: which node. */
WF_INLINE uint32_t wf_wait_index(uint32_t word)
{
	return word / 2 - 1;
}

/* Under the lock of the node's object. False: its waiter is somebody else's, or has given up. */
WF_INLINE bool wf_wait_claim(struct wf_wait_node *n)
{
	uint32_t pending = WF_WAIT_PENDING;

	return wf_cas(&n->waiter->word, &pending, 2 * (n->index + 1));
}

/* By the waiter itself. False: somebody has claimed it. */
WF_INLINE bool wf_wait_give_up(struct wf_waiter *w)
{
	uint32_t pending = WF_WAIT_PENDING;

	return wf_cas(&w->word, &pending, WF_WAIT_OVER);
}

/* By a waiter that has given up and is on no list any more: nobody has claimed it all the same. */
WF_INLINE void wf_wait_done(struct wf_waiter *w)
{
	WF_ASSERT(wf_load_relaxed(&w->word) == WF_WAIT_OVER);
}

/* Under no lock, by the one who has claimed it: n is the waiter's again. self: as in native/face.h. */
void wf_wait_serve(struct wf_thread *self, struct wf_wait_node *n, int result);
/* All of a chain. */
void wf_wait_serve_all(struct wf_thread *self, struct wf_wait_node *first, int result);

/* Before the first node is where a waker finds it; a spin lock is taken in between. */
WF_INLINE void wf_wait_begin(struct wf_thread *self, enum wf_wait kind, uint64_t what)
{
	if (self)
		wf_park_begin_before_lock(WF_INTR | WF_REACHED, kind, what);
}

/* Instead of wf_wait_park(): nothing has to be waited for. */
WF_INLINE void wf_wait_abort(struct wf_thread *self)
{
	if (self)
		(void)wf_park_abort();
}

/*
 * Sleep. 0: served, by the node that wf_wait_index(w->word) says. Else the waiter has given up, and takes its nodes away:
 * -ETIMEDOUT; -ECANCELED: a scope of the caller's, as -ETIMEDOUT may be, too; -EINTR: a signal is due, which the program's way
 * out of the runtime sees to, and then the wait begins anew.
 */
WF_PARKS int wf_wait_park(struct wf_thread *self, struct wf_waiter *w, int64_t until);

/*
 * The same for a thread that has put something beside its nodes that wakes it, too: after wf_wait_begin_again(), which is
 * false when it was served meanwhile. -EAGAIN: woken by that, or for nothing.
 */
bool wf_wait_begin_again(struct wf_waiter *w, enum wf_wait kind, uint64_t what);
WF_PARKS int wf_wait_park_beside(struct wf_thread *self, struct wf_waiter *w, int64_t until);

/* Of a claimed waiter: until it is served, which is at once. */
void wf_wait_settle(struct wf_waiter *w);
/* Something else has ended the wait: why; or 0, served, since a waker came first. */
int wf_wait_over(struct wf_waiter *w, int why);

bool wf_wait_is_past(const struct wf_thread *self, int64_t until);
/* The deadline has passed: there is nothing to wait for. */
WF_INLINE bool wf_wait_is_late(const struct wf_thread *self, int64_t until)
{
	return until != WF_NEVER && wf_wait_is_past(self, until);
}

/*
 * A lock that handlers want, too: the program's handlers interrupt no code of ours on a thread of ours, but that of any other
 * kernel thread. Returns what wf_wait_unblock() is to restore.
 */
WF_INLINE uint64_t wf_wait_block(const struct wf_thread *self)
{
	const uint64_t all = ~0ull;
	uint64_t old = 0;

	if (WF_UNLIKELY(!self))
		(void)sys_sigprocmask(2 /* SIG_SETMASK */, &all, &old);
	return old;
}

WF_INLINE void wf_wait_unblock(const struct wf_thread *self, uint64_t old)
{
	if (WF_UNLIKELY(!self))
		(void)sys_sigprocmask(2 /* SIG_SETMASK */, &old, NULL);
}

/* (p) before main(): how a kernel thread that is not ours waits, by libc. */
struct wf_wait_outside {
	/* Sleeps while the word is what is expected, timeout_ns or for ever, or for nothing. True: a scope of its is over. */
	bool (*sleep)(uint32_t *word, uint32_t expected, int64_t timeout_ns);
	/* Such a scope ends the wait: its error. 0: it does not, after all. */
	int (*end)(void);
};
extern struct wf_wait_outside wf_wait_outside;

#endif
