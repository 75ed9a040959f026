// SPDX-License-Identifier: Apache-2.0
/*
 * Waiting until a descriptor is ready: who waits, and who is woken by an event.
 *
 * Called by: linux/ for every call that would block on a descriptor.
 *
 * A descriptor is registered with the poller once, edge-triggered, when somebody first waits on it. Every
 * event bumps seq. The pattern that cannot miss an edge:
 *
 *	seq = wf_fd_seq(fd);
 *	try the call without blocking;
 *	if it would block: wf_fd_wait(fd, events, seq, deadline) returns at once if seq moved meanwhile.
 *
 * One event wakes one waiter of those that want the same thing; a waiter that was woken calls
 * wf_fd_pass_on() when it is done, so that what it left over reaches the next.
 */
#ifndef WF_IO_FD_H
#define WF_IO_FD_H

#include "io/fdtab.h"

struct wf_thread;

struct wf_fd_waiter {
	struct wf_list link;      /* (q) */
	struct wf_thread *thread; /* (c) */
	/* (c) EPOLLIN, EPOLLOUT, EPOLLPRI; errors and hang-ups count as any of them */
	uint32_t events;
	int fd;            /* (c) */
	bool is_exclusive; /* (c) one event wakes one of these */
	bool is_use; /* (c) of wf_fd_wait(): the call goes on with its file when the number is closed */
};

/*
 * A call that waits for the file behind a number, and keeps it: when the number is closed meanwhile, or made
 * to mean another file, the call goes on with the one that it had, as a call inside the kernel would. uses.h has its life.
 */
struct wf_fd_use {
	int fd;     /* the number; after a close, a private one; then again after another */
	int number; /* what the program said */
	uint32_t generation; /* of number */
	bool is_held;        /* counted in nr_uses of number */
	uint32_t *tries;     /* nr_tries of number, where it is counted for an attempt; or NULL */
};

/*
 * Park until fd has one of events, or deadline. 0: something happened, try again; -ETIMEDOUT; -EINTR: a
 * signal may want the thread; -EPERM: this descriptor cannot be polled; other -errno of epoll_ctl.
 */
int wf_fd_wait(struct wf_fd_use *u, uint32_t events, uint32_t seq, int64_t deadline);
/*
 * The same without a deadline, for data, if it is known that nothing can be read before the next event. 1: it is not,
 * and nobody has waited.
 */
int wf_fd_wait_if_empty(struct wf_fd_use *u, uint32_t seq);
void wf_fd_pass_on(int fd, uint32_t events);
/* The poller forgets fd until somebody waits for it again. False: somebody does. */
bool wf_fd_leave_poller(int fd);
/* Count an event, so that a thread that is about to wait tries again first. True: a thread waits already. */
bool wf_fd_touch(int fd);

/* For waiting on several: between wf_park_begin() and wf_park(). 0, -EPERM, or -errno; seq as above (1: moved). */
int wf_fd_enqueue(struct wf_fd_waiter *w, uint32_t seq, struct wf_fd_use *use);
void wf_fd_dequeue(struct wf_fd_waiter *w);

/* The number was just handed out: what we know of it is void. */
void wf_fd_forget(int fd);
/* A file was just made, with this number and no other: the same, and better. */
void wf_fd_made(int fd, bool is_nonblocking);

/* Under the entry's lock: the number loses its file. Threads that wait without a wf_fd_use stay, the others are woken. */
void wf_fd_detach(struct fd_entry *e, int fd);
/* By the poller: events of the file that had this tag. */
void wf_fd_on_event(uint64_t tag, uint32_t events);
/* Somebody waits for any descriptor. */
bool wf_fd_has_waiters(void);
void wf_fd_forget_waiters(void);

#endif
