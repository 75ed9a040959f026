// SPDX-License-Identifier: Apache-2.0
/* Threads that wait for descriptors; see fd.h. */
#include "io/fd.h"

#include "base/die.h"
#include "io/facts.h"
#include "io/pollset.h"
#include "sched/clock.h"
#include "sched/park.h"
#include "sched/runtime.h"

#include <errno.h>
#include <sys/epoll.h>

#define LOOK_AGAIN_NS (10 * WF_MS) /* at what the poller has no room for */
#define UNHEARD_MIN 8              /* see count_unheard() */

static uint32_t nr_waiters; /* (a) */

static bool is_awaited(const struct fd_entry *e)
{
	return e->waiters.next && !wf_list_is_empty(&e->waiters);
}

/* Under the entry's lock. */
static void unregister_fd(struct fd_entry *e, int fd)
{
	if (!e->is_registered)
		return;
	e->is_registered = false;
	wf_pollset_remove(fd);
}

void wf_fd_detach(struct fd_entry *e, int fd)
{
	struct wf_list *n, *tmp;

	wf_facts_reset(e);
	wf_store_relaxed(&e->kind, (uint8_t)WF_FD_UNKNOWN);
	wf_store_seq_cst(&e->generation, e->generation + 1);
	/* A duplicate elsewhere would keep the file registered under a number that is no longer ours. */
	unregister_fd(e, fd);
	e->unheard = 0;
	e->departures = 0;
	e->nr_uses = 0;
	if (!e->waiters.next)
		return;
	/* Those of poll() and its kin stay, as on Linux, until one of their other descriptors or time ends them. */
	wf_list_for_each_safe (n, tmp, &e->waiters) {
		struct wf_fd_waiter *w = container_of(n, struct wf_fd_waiter, link);

		if (!w->is_use)
			continue;
		wf_list_remove(&w->link);
		wf_fetch_sub(&nr_waiters, 1u);
		(void)wf_unpark(w->thread, WF_WAKE_EVENT);
	}
}

void wf_fd_forget(int fd)
{
	struct fd_entry *e = wf_fdtab_entry(fd);

	if (!e || wf_fdtab_is_blank(e))
		return;
	wf_spin_lock(&e->lock);
	wf_fd_detach(e, fd);
	wf_spin_unlock(&e->lock);
}

void wf_fd_made(int fd, bool is_nonblocking)
{
	struct fd_entry *e = wf_fdtab_entry(fd);

	if (!e)
		return;
	wf_spin_lock(&e->lock);
	if (!wf_fdtab_is_blank(e))
		wf_fd_detach(e, fd);
	wf_facts_begin(e, is_nonblocking);
	wf_spin_unlock(&e->lock);
}

/*
 * Under the entry's lock. Either operation raises an event at once if the descriptor is ready already. Room to write is
 * listened for from the first wait for it on: a local socket or pipe has some more whenever its peer reads.
 */
static int register_fd(struct fd_entry *e, int fd, bool hears_out)
{
	uint32_t events = EPOLLIN | EPOLLPRI | EPOLLRDHUP | (hears_out ? EPOLLOUT : 0);
	int ret = wf_pollset_add(fd, events, (uint64_t)e->generation << 32 | (uint32_t)fd);

	if (ret == 0) {
		e->is_registered = true;
		e->hears_out = hears_out;
		e->empty_at = e->seq - 1; /* what came before was not counted */
	}
	return ret;
}

/*
 * Under the entry's lock, an event has come and nobody waits. After some in a row the descriptor leaves the poller until
 * somebody waits again: a program that waits in an epoll set of its own and reads what it was told of would have the kernel
 * tell two sets of everything, and a worker woken for each. One that only had data in time a few times over comes back, and
 * pays two calls for it: so each time more are put up with.
 */
static void count_unheard(struct fd_entry *e, int fd)
{
	if (!e->is_registered || ++e->unheard < WF_MIN(UNHEARD_MIN << e->departures, UINT8_MAX))
		return;
	unregister_fd(e, fd);
	e->departures += e->departures < 7;
}

/* Under the entry's lock. */
static void append_waiter(struct fd_entry *e, struct wf_fd_waiter *w)
{
	e->unheard = 0;
	wf_list_push_tail(&e->waiters, &w->link);
	wf_fetch_add(&nr_waiters, 1u); /* before the look in direct.h */
}

/*
 * Under the entry's lock. The use is counted from its first wait on. 1: the number was closed, and the next attempt finds
 * the file elsewhere; -EBADF: that was before the first wait.
 */
static int hold(struct fd_entry *e, struct wf_fd_use *u)
{
	if (u->fd != u->number)
		return 0;
	if (e->generation != u->generation)
		return u->is_held ? 1 : -EBADF;
	e->nr_uses += !u->is_held;
	u->is_held = true;
	return 0;
}

int wf_fd_enqueue(struct wf_fd_waiter *w, uint32_t seq, struct wf_fd_use *use)
{
	struct fd_entry *e = wf_fdtab_entry(w->fd);
	bool needs_out = w->events & EPOLLOUT;
	int ret = 0;

	wf_list_init(&w->link);
	if (!e)
		return -EPERM;
	wf_spin_lock(&e->lock);
	if (!e->waiters.next)
		wf_list_init(&e->waiters);
	if (use)
		ret = hold(e, use);
	if (ret == 0 && (!e->is_registered || needs_out > e->hears_out))
		ret = register_fd(e, w->fd, needs_out);
	else if (ret == 0 && e->seq != seq)
		ret = 1;
	if (ret == 0)
		append_waiter(e, w);
	wf_spin_unlock(&e->lock);
	return ret;
}

void wf_fd_dequeue(struct wf_fd_waiter *w)
{
	struct fd_entry *e = wf_fdtab_entry(w->fd);

	if (!e || !w->link.next)
		return;
	wf_spin_lock(&e->lock);
	if (!wf_list_is_empty(&w->link)) {
		wf_list_remove(&w->link);
		wf_fetch_sub(&nr_waiters, 1u);
	}
	wf_spin_unlock(&e->lock);
}

static struct wf_fd_waiter waiter_for(const struct wf_fd_use *u, uint32_t events)
{
	return (struct wf_fd_waiter){ .thread = wf_self(),
				      .events = events,
				      .fd = u->fd,
				      .is_exclusive = true,
				      .is_use = true };
}

/* On the list. A waker with WF_WAKE_EVENT has taken w off it before, and looks at w no more. */
static int park_enqueued(struct wf_fd_waiter *w, int64_t deadline)
{
	enum wf_reason reason = wf_park(deadline);

	if (WF_UNLIKELY(reason != WF_WAKE_EVENT))
		wf_fd_dequeue(w);
	if (reason == WF_WAKE_TIMEOUT)
		return -ETIMEDOUT;
	return reason == WF_WAKE_INTERRUPTED ? -EINTR : 0;
}

int wf_fd_wait(struct wf_fd_use *u, uint32_t events, uint32_t seq, int64_t deadline)
{
	struct wf_fd_waiter w = waiter_for(u, events);
	enum wf_reason reason;
	int ret;

	wf_park_begin_before_lock(WF_INTR | WF_REACHED, WF_WAIT_FD, (uint64_t)u->fd);
	ret = wf_fd_enqueue(&w, seq, u);
	if (ret == -ENOMEM || ret == -ENOSPC) {
		/* Nobody can wake us: look again soon. */
		reason = wf_park(WF_MIN(deadline, wf_now() + LOOK_AGAIN_NS));
		if (reason == WF_WAKE_TIMEOUT)
			return deadline > wf_now() ? 0 : -ETIMEDOUT;
		return reason == WF_WAKE_INTERRUPTED ? -EINTR : 0;
	}
	if (ret) {
		(void)wf_park_abort();
		return ret > 0 ? 0 : ret;
	}
	return park_enqueued(&w, deadline);
}

int wf_fd_wait_if_empty(struct wf_fd_use *u, uint32_t seq)
{
	struct fd_entry *e = wf_fdtab_entry(u->fd);
	struct wf_fd_waiter w;
	bool is_empty;

	if (!e || wf_load_relaxed(&e->empty_at) != seq)
		return 1;
	w = waiter_for(u, EPOLLIN);
	wf_park_begin_before_lock(WF_INTR | WF_REACHED, WF_WAIT_FD, (uint64_t)u->fd);
	wf_spin_lock(&e->lock);
	/* A registered descriptor has a list. */
	is_empty = wf_facts_is_empty_for_good(e, seq) && hold(e, u) == 0;
	if (is_empty)
		append_waiter(e, &w);
	wf_spin_unlock(&e->lock);
	if (!is_empty) {
		(void)wf_park_abort();
		return 1;
	}
	return park_enqueued(&w, WF_NEVER);
}

/*
 * Under the entry's lock, if anybody waits. A woken waiter leaves the list here, so that the next event finds the next one.
 * Errors and hang-ups concern everybody.
 */
static void wake_waiters(struct fd_entry *e, uint32_t events)
{
	struct wf_list *n, *tmp;
	uint32_t taken = 0;

	if (events & (EPOLLERR | EPOLLHUP))
		events |= EPOLLIN | EPOLLOUT | EPOLLPRI;
	if (events & EPOLLRDHUP)
		events |= EPOLLIN;
	wf_list_for_each_safe (n, tmp, &e->waiters) {
		struct wf_fd_waiter *w = container_of(n, struct wf_fd_waiter, link);
		uint32_t hit = w->events & events;
		bool is_exclusive = w->is_exclusive;

		if (!hit || (is_exclusive && (hit & taken) == hit))
			continue;
		wf_list_remove(&w->link);
		wf_fetch_sub(&nr_waiters, 1u);
		/* From here on w may be gone: its owner does not wait for our lock. */
		if (wf_unpark(w->thread, WF_WAKE_EVENT) && is_exclusive &&
		    !(events & (EPOLLERR | EPOLLHUP)))
			taken |= hit;
	}
}

void wf_fd_pass_on(int fd, uint32_t events)
{
	struct fd_entry *e = wf_fdtab_entry(fd);

	if (!e || !is_awaited(e))
		return;
	wf_spin_lock(&e->lock);
	wake_waiters(e, events);
	wf_spin_unlock(&e->lock);
}

bool wf_fd_leave_poller(int fd)
{
	struct fd_entry *e = wf_fdtab_entry(fd);
	bool has_waiters;

	if (!e)
		return false;
	wf_spin_lock(&e->lock);
	has_waiters = is_awaited(e);
	if (!has_waiters)
		unregister_fd(e, fd);
	wf_spin_unlock(&e->lock);
	return !has_waiters;
}

bool wf_fd_touch(int fd)
{
	struct fd_entry *e = wf_fdtab_entry(fd);
	bool has_waiters;

	if (!e)
		return false;
	wf_spin_lock(&e->lock);
	wf_store_release(&e->seq, e->seq + 1);
	has_waiters = is_awaited(e);
	wf_spin_unlock(&e->lock);
	return has_waiters;
}

void wf_fd_on_event(uint64_t tag, uint32_t events)
{
	struct fd_entry *e = wf_fdtab_entry((int)(uint32_t)tag);

	if (!e)
		return;
	wf_spin_lock(&e->lock);
	if (e->generation == tag >> 32) {
		if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR | EPOLLPRI))
			e->is_ended = true;
		wf_store_release(&e->seq, e->seq + 1);
		if (is_awaited(e))
			wake_waiters(e, events);
		else
			count_unheard(e, (int)(uint32_t)tag);
	}
	wf_spin_unlock(&e->lock);
}

bool wf_fd_has_waiters(void)
{
	return wf_load_seq_cst(&nr_waiters) != 0;
}

void wf_fd_forget_waiters(void)
{
	nr_waiters = 0;
}
