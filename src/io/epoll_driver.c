// SPDX-License-Identifier: Apache-2.0
/* Descriptor table and poller on edge-triggered epoll; see fd.h. */
#include "base/die.h"
#include "io/fdtab.h"
#include "sched/clock.h"
#include "sched/park.h"
#include "sched/runtime.h"
#include "sched/timers.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/stat.h>

#define WAKE_TAG (~0ull)
#define TIMER_TAG (~1ull)
#define CLOCK_MONOTONIC 1
#define TFD_TIMER_ABSTIME 1
#define OWN_FD_LIMIT 1024
#define ENTRIES_PER_STEP 1024u /* whole pages */
#define BYTES_BESIDE                                                                               \
	(8ul                                                                                       \
	 << 10) /* what a descriptor comes with, where the addresses are limited: a buffer or two */
#define LOOK_AGAIN_NS (10 * WF_MS) /* at what the poller has no room for */
#define UNHEARD_MIN 8              /* see count_unheard() */
#define EVENTS_PER_POLL 24         /* 288 bytes: the call is also made on a program's stack */

struct wf_fdtab wf_fdtab;

static struct {
	int epoll_fd, wake_fd; /* (c) */
	int timer_fd;          /* (c) in the set; -1: none could be made */
	uint32_t nr_waiters;   /* (a) */
	bool has_clock;        /* (a) timer_fd can be set */
	struct wf_spin timer_lock;
	int64_t armed; /* (a) when timer_fd makes one poll() return; written under timer_lock */
} io = { .epoll_fd = -1, .wake_fd = -1, .timer_fd = -1, .armed = WF_NEVER };

/* Several threads may do so at once: what is memory already stays as it is. */
struct fd_entry *wf_fdtab_entry_behind_end(int fd)
{
	uint32_t nr = wf_load_relaxed(&wf_fdtab.nr_entries);
	uint32_t enough = WF_ALIGN_UP((uint32_t)fd + 1, ENTRIES_PER_STEP);

	if (fd < 0 || (uint32_t)fd >= wf_fdtab.max_entries || !wf_fdtab.entries ||
	    sys_commit(wf_fdtab.entries, enough * sizeof(*wf_fdtab.entries)) < 0)
		return NULL;
	while (nr < enough && !wf_cas(&wf_fdtab.nr_entries, &nr, enough))
		;
	return &wf_fdtab.entries[fd];
}

uint32_t wf_fd_seq(int fd)
{
	struct fd_entry *e = wf_fdtab_entry(fd);

	return e ? wf_load_acquire(&e->seq) : 0;
}

bool wf_fd_has_room(int fd)
{
	return wf_fdtab_entry(fd) != NULL;
}

bool wf_fd_is_own(int fd)
{
	struct fd_entry *e = wf_fdtab_entry(fd);

	return fd >= 0 && (fd == io.epoll_fd || fd == io.wake_fd || fd == io.timer_fd ||
			   (e && wf_load_relaxed(&e->file_notes) & WF_FD_NOTE_OWN));
}

void wf_fd_make_private(void)
{
	wf_fd_all_shared(); /* what it tells a file is told to ours */
	wf_self()->has_own_files = true;
	wf_store_release(&wf_fdtab.has_private, 1u);
}

bool wf_fd_is_private(void)
{
	const struct wf_kthread *k = wf_self_kthread();

	return k && k->bound && k->bound->has_own_files;
}

static enum wf_fd_kind ask_kind(int fd)
{
	struct stat st;

	if (sys2(__NR_fstat, fd, &st) < 0)
		return WF_FD_UNKNOWN;
	if (S_ISSOCK(st.st_mode))
		return WF_FD_SOCKET;
	if (S_ISFIFO(st.st_mode))
		return WF_FD_PIPE;
	if (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode) || S_ISBLK(st.st_mode))
		return WF_FD_FILE;
	return S_ISCHR(st.st_mode) ? WF_FD_CHAR : WF_FD_OTHER;
}

enum wf_fd_kind wf_fd_kind(int fd)
{
	struct fd_entry *e = wf_fdtab_entry(fd);
	enum wf_fd_kind kind;

	if (!e)
		return ask_kind(fd);
	kind = (enum wf_fd_kind)wf_load_relaxed(&e->kind);
	if (kind != WF_FD_UNKNOWN)
		return kind;
	kind = ask_kind(fd);
	if (kind != WF_FD_UNKNOWN)
		wf_store_relaxed(&e->kind, (uint8_t)kind);
	return kind;
}

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
	(void)sys4(__NR_epoll_ctl, io.epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

void wf_fdtab_detach(struct fd_entry *e, int fd)
{
	struct wf_list *n, *tmp;

	wf_fdtab_reset_facts(e);
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
		wf_fetch_sub(&io.nr_waiters, 1u);
		(void)wf_unpark(w->thread, WF_WAKE_EVENT);
	}
}

void wf_fd_forget(int fd)
{
	struct fd_entry *e = wf_fdtab_entry(fd);

	if (!e || wf_fdtab_is_blank(e))
		return;
	wf_spin_lock(&e->lock);
	wf_fdtab_detach(e, fd);
	wf_spin_unlock(&e->lock);
}

/*
 * Under the entry's lock. Either operation raises an event at once if the descriptor is ready already. Room to write is
 * listened for from the first wait for it on: a local socket or pipe has some more whenever its peer reads.
 */
static int register_fd(struct fd_entry *e, int fd, bool hears_out)
{
	struct epoll_event ev = {
		.events = EPOLLIN | EPOLLPRI | EPOLLRDHUP | EPOLLET | (hears_out ? EPOLLOUT : 0),
		.data.u64 = (uint64_t)e->generation << 32 | (uint32_t)fd,
	};
	long ret = sys4(__NR_epoll_ctl, io.epoll_fd, EPOLL_CTL_ADD, fd, &ev);

	if (ret == -EEXIST)
		ret = sys4(__NR_epoll_ctl, io.epoll_fd, EPOLL_CTL_MOD, fd, &ev);
	if (ret == 0) {
		e->is_registered = true;
		e->hears_out = hears_out;
		e->empty_at = e->seq - 1; /* what came before was not counted */
	}
	return (int)ret;
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
	wf_fetch_add(&io.nr_waiters, 1u); /* before the look in direct.h */
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
		wf_fetch_sub(&io.nr_waiters, 1u);
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
	is_empty = wf_fdtab_is_empty_for_good(e, seq) && hold(e, u) == 0;
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
		wf_fetch_sub(&io.nr_waiters, 1u);
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

static void on_event(uint64_t tag, uint32_t events)
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

/* Without slack, unlike the time-out of epoll_wait: that one is late by a thousandth of its length. */
static bool set_timer(int fd, int64_t deadline)
{
	const struct __kernel_itimerspec at = {
		.it_value = { deadline / WF_SEC, deadline % WF_SEC },
	};

	return sys4(__NR_timerfd_settime, fd, TFD_TIMER_ABSTIME, &at, NULL) == 0;
}

static bool arm_timer(int64_t deadline)
{
	int fd = wf_load_relaxed(&io.timer_fd);
	bool is_armed = true;

	if (fd < 0 || !wf_load_relaxed(&io.has_clock))
		return false;
	if (deadline >= wf_load_seq_cst(&io.armed))
		return true;
	wf_spin_lock(&io.timer_lock);
	if (deadline < io.armed) {
		is_armed = set_timer(fd, WF_MAX(deadline, 1)); /* 0 would stop it */
		if (is_armed)
			wf_store_seq_cst(&io.armed, deadline);
		else /* a filter that the program has set: time-outs will have to do */
			wf_store_relaxed(&io.has_clock, false);
	}
	wf_spin_unlock(&io.timer_lock);
	return is_armed;
}

static void on_timer(void)
{
	wf_spin_lock(&io.timer_lock);
	wf_store_seq_cst(&io.armed, WF_NEVER);
	wf_spin_unlock(&io.timer_lock);
	wf_timers_due();
}

/* Of a thousand descriptors each has left the caches when its event comes: fetch what on_event() will need, for all at once. */
static void prepare(const struct epoll_event *events, long n)
{
	struct fd_entry *e[EVENTS_PER_POLL];

	for (long i = 0; i < n; i++) {
		uint32_t fd = (uint32_t)events[i].data.u64;

		e[i] = fd < wf_load_relaxed(&wf_fdtab.nr_entries) ? &wf_fdtab.entries[fd] : NULL;
		__builtin_prefetch(e[i]);
	}
	for (long i = 0; i < n; i++)
		if (e[i])
			__builtin_prefetch(wf_load_relaxed(&e[i]->waiters.next));
}

static bool poll_epoll(int64_t timeout_ns)
{
	struct epoll_event events[EVENTS_PER_POLL];
	struct __kernel_timespec ts = { timeout_ns / WF_SEC, timeout_ns % WF_SEC };
	bool is_woken = false;
	long n;

	n = sys6(__NR_epoll_pwait2, io.epoll_fd, events, EVENTS_PER_POLL,
		 timeout_ns < 0 ? NULL : &ts, NULL, 0);
	if (n == -ENOSYS) {
		int64_t ms = timeout_ns < 0 ? -1 : (timeout_ns + WF_MS - 1) / WF_MS;

		n = sys6(__NR_epoll_pwait, io.epoll_fd, events, EVENTS_PER_POLL,
			 WF_MIN(ms, 1 << 30), NULL, 0);
	}
	if (n > 1)
		prepare(events, n);
	for (long i = 0; i < n; i++) {
		if (events[i].data.u64 == WAKE_TAG)
			is_woken = true;
		else if (events[i].data.u64 == TIMER_TAG)
			on_timer();
		else
			on_event(events[i].data.u64, events[i].events);
	}
	return is_woken;
}

static void wake_epoll(void)
{
	uint64_t one = 1;

	(void)sys_write(io.wake_fd, &one, sizeof(one));
}

static bool has_waiters(void)
{
	return wf_load_seq_cst(&io.nr_waiters) != 0;
}

const struct wf_io_driver wf_epoll_driver = {
	.poll = poll_epoll,
	.wake = wake_epoll,
	.has_waiters = has_waiters,
	.arm = arm_timer,
	.may_sleep_beside = true,
};

/* Programs count on low numbers being handed out in order, and close all from 3 up: keep out of their way. */
int wf_fdtab_dup_high(int fd)
{
	uint64_t limit[2] = { 0, 0 };

	(void)sys4(__NR_prlimit64, 0, 7 /* RLIMIT_NOFILE */, NULL, limit);
	if (limit[0] <= 64)
		return -EMFILE;
	return (int)sys3(__NR_fcntl, fd, F_DUPFD_CLOEXEC,
			 WF_MIN(limit[0], (uint64_t)OWN_FD_LIMIT) - 16);
}

static int move_high(int fd)
{
	int high;

	if (fd < 0)
		return fd;
	high = wf_fdtab_dup_high(fd);
	if (high < 0)
		return fd;
	(void)sys_close(fd);
	return high;
}

static void make_timer(void)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET, .data.u64 = TIMER_TAG };
	int fd = move_high((int)sys2(__NR_timerfd_create, CLOCK_MONOTONIC, O_CLOEXEC | O_NONBLOCK));

	if (fd >= 0 && sys4(__NR_epoll_ctl, io.epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0) {
		(void)sys_close(fd);
		fd = -1;
	}
	io.timer_fd = WF_MAX(fd, -1);
	io.has_clock = fd >= 0;
}

int wf_epoll_init(const char **out_call)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET, .data.u64 = WAKE_TAG };

	*out_call = "mmap";
	wf_fdtab.max_entries = sys_room_for(BYTES_BESIDE, ENTRIES_PER_STEP, WF_MAX_FDS);
	wf_fdtab.entries = sys_reserve(sizeof(struct fd_entry) * wf_fdtab.max_entries);
	if (!wf_fdtab.entries)
		return -ENOMEM;
	*out_call = "epoll_create1";
	io.epoll_fd = move_high((int)sys1(__NR_epoll_create1, EPOLL_CLOEXEC));
	if (io.epoll_fd < 0)
		return io.epoll_fd;
	*out_call = "eventfd2";
	io.wake_fd = move_high((int)sys2(__NR_eventfd2, 0, O_CLOEXEC | O_NONBLOCK));
	if (io.wake_fd < 0)
		return io.wake_fd;
	make_timer();
	*out_call = "epoll_ctl";
	return (int)sys4(__NR_epoll_ctl, io.epoll_fd, EPOLL_CTL_ADD, io.wake_fd, &ev);
}

static void forget_fd(int fd, bool is_others)
{
	if (fd >= 0 && !is_others)
		(void)sys_close(fd);
}

void wf_epoll_forget(bool are_others)
{
	wf_uses_forget(are_others);
	forget_fd(io.epoll_fd, are_others);
	forget_fd(io.wake_fd, are_others);
	forget_fd(io.timer_fd, are_others);
	sys_unmap(wf_fdtab.entries, sizeof(struct fd_entry) * wf_fdtab.max_entries);
	wf_fdtab = (struct wf_fdtab){ 0 };
	io = (typeof(io)){ .epoll_fd = -1, .wake_fd = -1, .timer_fd = -1, .armed = WF_NEVER };
}
