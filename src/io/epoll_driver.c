// SPDX-License-Identifier: Apache-2.0
/*
 * The poller on edge-triggered epoll: the set, an eventfd that wakes one who sleeps in it, a timerfd for the first deadline.
 * The highest step of io/.
 */
#include "io/epoll_driver.h"

#include "base/die.h"
#include "io/fd.h"
#include "io/pollset.h"
#include "io/uses.h"
#include "sched/clock.h"
#include "sched/runtime.h"
#include "sched/timers.h"

#include <fcntl.h>
#include <sys/epoll.h>

#define WAKE_TAG (~0ull)
#define TIMER_TAG (~1ull)
#define CLOCK_MONOTONIC 1
#define TFD_TIMER_ABSTIME 1
#define EVENTS_PER_POLL 24 /* 288 bytes: the call is also made on a program's stack */

static struct {
	int wake_fd;    /* (c) */
	int timer_fd;   /* (c) in the set; -1: none could be made */
	bool has_clock; /* (a) timer_fd can be set */
	struct wf_spin timer_lock;
	int64_t armed; /* (a) when timer_fd makes one poll() return; written under timer_lock */
} io = { .wake_fd = -1, .timer_fd = -1, .armed = WF_NEVER };

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

/* Of a thousand descriptors each has left the caches when its event comes: fetch what wf_fd_on_event() will need, for all at once. */
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
	long n = wf_pollset_wait(events, EVENTS_PER_POLL, timeout_ns);
	bool is_woken = false;

	if (n > 1)
		prepare(events, n);
	for (long i = 0; i < n; i++) {
		if (events[i].data.u64 == WAKE_TAG)
			is_woken = true;
		else if (events[i].data.u64 == TIMER_TAG)
			on_timer();
		else
			wf_fd_on_event(events[i].data.u64, events[i].events);
	}
	return is_woken;
}

static void wake_epoll(void)
{
	uint64_t one = 1;

	(void)sys_write(io.wake_fd, &one, sizeof(one));
}

const struct wf_io_driver wf_epoll_driver = {
	.poll = poll_epoll,
	.wake = wake_epoll,
	.has_waiters = wf_fd_has_waiters,
	.arm = arm_timer,
	.may_sleep_beside = true,
};

bool wf_fd_is_own(int fd)
{
	struct fd_entry *e = wf_fdtab_entry(fd);

	return fd >= 0 && (wf_pollset_is(fd) || fd == io.wake_fd || fd == io.timer_fd ||
			   (e && wf_load_relaxed(&e->file_notes) & WF_FD_NOTE_OWN));
}

static void make_timer(void)
{
	int fd = wf_fdtab_move_high(
		(int)sys2(__NR_timerfd_create, CLOCK_MONOTONIC, O_CLOEXEC | O_NONBLOCK));

	if (fd >= 0 && wf_pollset_add(fd, EPOLLIN, TIMER_TAG) < 0) {
		(void)sys_close(fd);
		fd = -1;
	}
	io.timer_fd = WF_MAX(fd, -1);
	io.has_clock = fd >= 0;
}

int wf_epoll_init(const char **out_call)
{
	int ret;

	*out_call = "mmap";
	ret = wf_fdtab_init();
	if (ret < 0)
		return ret;
	*out_call = "epoll_create1";
	ret = wf_pollset_init();
	if (ret < 0)
		return ret;
	*out_call = "eventfd2";
	io.wake_fd = wf_fdtab_move_high((int)sys2(__NR_eventfd2, 0, O_CLOEXEC | O_NONBLOCK));
	if (io.wake_fd < 0)
		return io.wake_fd;
	make_timer();
	*out_call = "epoll_ctl";
	return wf_pollset_add(io.wake_fd, EPOLLIN, WAKE_TAG);
}

static void forget_fd(int fd, bool is_others)
{
	if (fd >= 0 && !is_others)
		(void)sys_close(fd);
}

void wf_epoll_forget(bool are_others)
{
	wf_uses_forget(are_others);
	wf_fd_forget_waiters();
	wf_pollset_forget(are_others);
	forget_fd(io.wake_fd, are_others);
	forget_fd(io.timer_fd, are_others);
	wf_fdtab_forget();
	io = (typeof(io)){ .wake_fd = -1, .timer_fd = -1, .armed = WF_NEVER };
}
