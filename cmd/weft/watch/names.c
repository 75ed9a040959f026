// SPDX-License-Identifier: Apache-2.0
/*
 * The processes of a name: found when they start, by the kernel's word or by looking once a second, and held until their
 * end has been told.
 *
 * Called by: helper.c while it waits, by_name.c. Invariant: each process is held by a pidfd, and it had the name at a time
 * when that pidfd was open and its number was still its own. The place of a process in the table changes only in
 * wf_watch_names_tidy(), so by_name.c may keep a pointer over a wait.
 */
#include "watch/watch.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "target/find.h"

#define LOOK_EVERY WF_WATCH_S
#define LOOK_AFTER WF_WATCH_S /* of a stall: a new program has not loaded weft yet */
#define STATUS_PATIENCE                                                                            \
	(100 * WF_WATCH_MS) /* for the kernel's message, or the parent that fetches the status */
#define OTHER_FILES 32      /* beside the processes */
#define NEWS_MAX 512        /* in one round */

/* In the epoll set; other numbers are process IDs. */
#define TAG_CONNECTOR 0
#define TAG_TIMER UINT64_MAX

static bool is_held(const struct wf_watch_process *p)
{
	return !p->is_dropped && p->over_at == WF_WATCH_NEVER;
}

static struct wf_watch_process *find(struct wf_watch_names *n, pid_t pid)
{
	for (size_t i = 0; i < n->nr; i++) {
		if (n->processes[i].pid == pid && is_held(&n->processes[i]))
			return &n->processes[i];
	}
	return NULL;
}

static bool listen_to(const struct wf_watch_names *n, int fd, uint64_t tag)
{
	struct epoll_event e = { .events = EPOLLIN, .data.u64 = tag };

	return epoll_ctl(n->wake, EPOLL_CTL_ADD, fd, &e) == 0;
}

static void set_timer(const struct wf_watch_names *n, int64_t at)
{
	const struct itimerspec when = { .it_value = { at / WF_WATCH_S, at % WF_WATCH_S } };

	(void)timerfd_settime(n->timer, TFD_TIMER_ABSTIME, &when, NULL);
}

/* All processes, but not more often than each second. */
static void look_soon(struct wf_watch_names *n)
{
	set_timer(n, n->looked_at + LOOK_EVERY);
}

/* It may have become another program, or the same one anew. */
static void look_again(struct wf_watch_names *n, struct wf_watch_process *p,
		       const struct wf_find_process *found, bool is_new_program)
{
	if (wf_find_is_named(found, n->name)) {
		if (is_new_program)
			p->look_from = wf_watch_now() + LOOK_AFTER;
	} else if (!wf_watch_ended(p->pidfd)) {
		(void)epoll_ctl(n->wake, EPOLL_CTL_DEL, p->pidfd, NULL);
		p->is_dropped = true;
	}
}

static bool has_name(const struct wf_watch_names *n, struct wf_find_process *p)
{
	return wf_find_read(p) && wf_find_is_named(p, n->name);
}

static void hold(struct wf_watch_names *n, pid_t pid)
{
	struct wf_find_process found = { .pid = pid };
	int64_t now = wf_watch_now();
	int fd = -1;

	n->is_full |= n->nr >= n->max;
	if (n->nr < n->max)
		fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (fd < 0)
		return;
	/* Once more, since the number may have become another process's before the descriptor was open. */
	if (!has_name(n, &found) || !wf_watch_ended_is_there(fd) ||
	    !listen_to(n, fd, (uint64_t)pid)) {
		close(fd);
		return;
	}
	n->processes[n->nr++] = (struct wf_watch_process){
		.pid = pid,
		.pidfd = fd,
		.seen_at = now,
		.look_from = now + LOOK_AFTER,
		.over_at = WF_WATCH_NEVER,
	};
}

static void consider(struct wf_watch_names *n, pid_t pid, bool is_new_program)
{
	struct wf_find_process found = { .pid = pid };
	struct wf_watch_process *p = find(n, pid);

	if (p && wf_find_read(&found))
		look_again(n, p, &found, is_new_program);
	else if (!p && has_name(n, &found) && pid != getpid() && !wf_watch_is_ours(pid))
		hold(n, pid);
}

static bool consider_each(int pid, void *arg)
{
	consider(arg, pid, false);
	return true;
}

bool wf_watch_names_look(struct wf_watch_names *n)
{
	bool is_good = wf_find_each(consider_each, n);

	n->looked_at = wf_watch_now();
	if (n->connector < 0)
		look_soon(n);
	return is_good;
}

/* The connector's word for it. Of two processes of one number the older one ends first. */
static void note_exit(struct wf_watch_names *n, const struct wf_watch_news *news)
{
	for (size_t i = 0; i < n->nr; i++) {
		struct wf_watch_process *p = &n->processes[i];

		if (p->pid != news->pid || p->is_dropped || p->told_at)
			continue;
		p->told_at = wf_watch_now();
		p->told_status = news->status;
		return;
	}
}

static void note_over(struct wf_watch_names *n, pid_t pid)
{
	struct wf_watch_process *p = find(n, pid);

	if (!p)
		return;
	(void)epoll_ctl(n->wake, EPOLL_CTL_DEL, p->pidfd, NULL);
	p->over_at = wf_watch_now();
	p->has_status = wf_watch_ended_status(p->pidfd, pid, &p->status);
}

static bool connect_again(struct wf_watch_names *n)
{
	n->connector = wf_watch_connector_open(&n->why_looking);
	if (n->connector >= 0 && !listen_to(n, n->connector, TAG_CONNECTOR)) {
		n->why_looking = strerror(errno);
		wf_watch_connector_close(n->connector);
		n->connector = -1;
	}
	return n->connector >= 0;
}

static void take_news(struct wf_watch_names *n)
{
	struct wf_watch_news news;

	for (int i = 0; i < NEWS_MAX && wf_watch_connector_next(n->connector, &news); i++) {
		if (news.kind == WF_WATCH_NEWS_EXIT) {
			note_exit(n, &news);
		} else if (news.kind == WF_WATCH_NEWS_LOST) {
			n->has_lost = true;
			look_soon(n);
		} else {
			consider(n, news.pid, news.kind == WF_WATCH_NEWS_EXEC);
		}
	}
}

/* A look at all makes good what was lost; on a new socket, since a full one may have made the kernel stop. */
static void take_timer(struct wf_watch_names *n)
{
	uint64_t nr;

	(void)!read(n->timer, &nr, sizeof(nr));
	if (n->has_lost && n->connector >= 0) {
		wf_watch_connector_close(n->connector);
		(void)connect_again(n);
	}
	n->nr_lost += n->has_lost;
	n->has_lost = false;
	(void)wf_watch_names_look(n);
}

void wf_watch_names_take(struct wf_watch_names *n)
{
	struct epoll_event events[64];
	int nr = epoll_wait(n->wake, events, sizeof(events) / sizeof(events[0]), 0);

	for (int i = 0; i < nr; i++) {
		if (events[i].data.u64 == TAG_CONNECTOR && n->connector >= 0)
			take_news(n);
		else if (events[i].data.u64 == TAG_TIMER)
			take_timer(n);
		else
			note_over(n, (pid_t)events[i].data.u64);
	}
}

/* The connector said it at that time: the first thread may have ended long before its process. */
static bool has_word(const struct wf_watch_process *p)
{
	return p->told_at && p->told_at >= p->over_at - STATUS_PATIENCE;
}

int64_t wf_watch_names_due(const struct wf_watch_process *p)
{
	int64_t known_at = p->over_at, born_at = p->seen_at + WF_WATCH_NAMED_PAUSE;

	if (p->over_at == WF_WATCH_NEVER || p->is_dropped)
		return WF_WATCH_NEVER;
	if (!p->has_status && !has_word(p))
		known_at += STATUS_PATIENCE;
	return known_at > born_at ? known_at : born_at;
}

bool wf_watch_names_status(struct wf_watch_process *p, int *out)
{
	if (!p->has_status)
		p->has_status = wf_watch_ended_status(p->pidfd, p->pid, &p->status);
	if (!p->has_status && has_word(p)) {
		p->has_status = true;
		p->status = p->told_status;
	}
	*out = p->status;
	return p->has_status;
}

void wf_watch_names_tidy(struct wf_watch_names *n)
{
	size_t left = 0;

	for (size_t i = 0; i < n->nr; i++) {
		if (n->processes[i].is_dropped)
			close(n->processes[i].pidfd);
		else
			n->processes[left++] = n->processes[i];
	}
	/* There is room for some of those that were left out. */
	if (n->is_full && left < n->nr) {
		n->is_full = false;
		look_soon(n);
	}
	n->nr = left;
}

/* Some descriptors are for all else. */
static size_t max_held(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0 ||
	    files.rlim_cur >= WF_WATCH_NAMED_MAX + OTHER_FILES)
		return WF_WATCH_NAMED_MAX;
	return files.rlim_cur > OTHER_FILES ? files.rlim_cur - OTHER_FILES : 1;
}

/* Before Linux 5.3, and under filters of calls, a process cannot be held. */
static bool can_hold(void)
{
	int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);

	return fd >= 0 && close(fd) == 0;
}

bool wf_watch_names_open(struct wf_watch *w)
{
	static struct wf_watch_names names;
	struct wf_watch_names *n = &names;

	n->name = w->process;
	n->max = max_held();
	n->wake = epoll_create1(EPOLL_CLOEXEC);
	n->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	n->connector = -1;
	if (!can_hold() || n->wake < 0 || n->timer < 0 || !listen_to(n, n->timer, TAG_TIMER))
		return false;
	(void)connect_again(n);
	w->names = n;
	/* After that, so that none can start in between. */
	return wf_watch_names_look(n);
}

void wf_watch_names_close(struct wf_watch_names *n)
{
	if (n->connector >= 0)
		wf_watch_connector_close(n->connector);
	n->connector = -1;
}
