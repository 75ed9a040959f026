// SPDX-License-Identifier: Apache-2.0
/*
 * Per-descriptor state, and waiting until a descriptor is ready.
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

#include "base/atomic.h"
#include "base/list.h"

#include <stdint.h>

#define WF_MAX_FDS (1 << 20)

struct wf_thread;

enum wf_fd_kind {
	WF_FD_UNKNOWN,
	WF_FD_SOCKET,
	WF_FD_PIPE,
	WF_FD_FILE,  /* regular file, directory, block device: never waits in the poller */
	WF_FD_CHAR,  /* character device: a terminal, /dev/null, ... */
	WF_FD_OTHER, /* eventfd, timerfd, ... */
};

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
 * to mean another file, the call goes on with the one that it had, as a call inside the kernel would.
 */
struct wf_fd_use {
	int fd;     /* the number; after a close, a private one; then again after another */
	int number; /* what the program said */
	uint32_t generation; /* of number */
	bool is_held;        /* counted in nr_uses of number */
	uint32_t *tries;     /* nr_tries of number, where it is counted for an attempt; or NULL */
};

/* Returns wf_fd_seq(fd). */
uint32_t wf_fd_use_init(struct wf_fd_use *u, int fd);
/* Around every attempt on u->fd, which may change here. -EBADF: closed before the call had waited. */
void wf_fd_use_try(struct wf_fd_use *u);
WF_INLINE void wf_fd_use_tried(struct wf_fd_use *u)
{
	if (!u->tries)
		return;
	(void)wf_fetch_sub(u->tries, 1u);
	u->tries = NULL;
}
void wf_fd_use_done(struct wf_fd_use *u);
/* The same, and wf_fd_drained(u->fd, seq). */
void wf_fd_use_done_drained(struct wf_fd_use *u, uint32_t seq);

/* Number of events seen on fd so far; 0 for a descriptor out of range. */
uint32_t wf_fd_seq(int fd);

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

enum wf_fd_kind wf_fd_kind(int fd);
/* The number was just handed out: what we know of it is void. */
void wf_fd_forget(int fd);
/* It is about to be closed: the same, and calls that wait on it keep its file. */
void wf_fd_closing(int fd);

/*
 * The file was told this. Kept as long as nobody else can have told it something else; facts.c says when, and
 * the five calls below keep it true.
 */
struct wf_fd_facts {
	bool is_nonblocking;
	int64_t timeout_ns; /* of a socket, in the direction of events; 0: none */
};
struct wf_fd_facts wf_fd_facts(int fd, uint32_t events);
/* A file was just made, with this number and no other: as wf_fd_forget(), and better. */
void wf_fd_made(int fd, bool is_nonblocking);
/* The file is a TCP socket, or something is put between TCP and its readers. */
void wf_fd_note_tcp(int fd, bool is_tcp);
bool wf_fd_is_tcp(int fd);
/* The program has told the file something: its flags, its timeouts. */
void wf_fd_changed(int fd);
/* The file has another number too, or an owner elsewhere; all files have, when the process forks. */
void wf_fd_shared(int fd);
void wf_fd_all_shared(void);
/* The file was opened with O_DIRECT; it refuses RWF_NOWAIT. Hints for speed, which may be out of date. */
bool wf_fd_is_direct(int fd);
bool wf_fd_lacks_nowait(int fd);
void wf_fd_note_lacks_nowait(int fd);
/* A read, begun when seq events were seen, got less than it asked for. */
void wf_fd_drained(int fd, uint32_t seq);
/* The same, and it said EAGAIN. */
void wf_fd_found_empty(int fd, uint32_t seq);
/*
 * Nothing can be read before the next event: an attempt would say EAGAIN, and may wait instead, unless the file is
 * non-blocking.
 */
bool wf_fd_is_empty(int fd, uint32_t seq);
/* A hang-up, an error or urgent data was seen. */
bool wf_fd_is_ended(int fd);
/* Nothing can be read, and nothing has gone wrong, before the next event: poll() would say so. */
bool wf_fd_is_quiet(int fd, uint32_t seq);

/*
 * The caller, which is bound, has a table of descriptors of its own from now on (unshare, close_range). It keeps the
 * runtime's numbers there, too. Has it?
 */
void wf_fd_make_private(void);
bool wf_fd_is_private(void);

/* One of the runtime's own descriptors: the program must not close or replace it. */
bool wf_fd_is_own(int fd);
/* The table has room for it: it can be waited for. */
bool wf_fd_has_room(int fd);
void wf_fd_set_own(int fd, bool is_own);

struct wf_io_driver;
extern const struct wf_io_driver wf_epoll_driver;
/* 0, or -errno of the call that is named. In a fork child: wf_epoll_forget() first. */
int wf_epoll_init(const char **out_call);
/* are_others: a process with the same table goes on using the descriptors, so they stay open. */
void wf_epoll_forget(bool are_others);

#endif
