// SPDX-License-Identifier: Apache-2.0
/*
 * Waiting for any of several descriptors; see pollwait.c.
 *
 * Called by: poll.c, select.c, epoll.c, native/select.c; masked.c for the mask.
 */
#ifndef WF_LINUX_POLLWAIT_H
#define WF_LINUX_POLLWAIT_H

#include "io/fd.h"
#include "linux/abi.h"

/* One descriptor of one wait. */
struct lx_poll_slot {
	struct wf_fd_waiter waiter;
	uint32_t seq; /* (o) events seen on it before we looked */
};

/* Those of EPOLLIN, EPOLLOUT, EPOLLPRI that tell of poll()'s events. */
uint32_t lx_poll_events(uint32_t events);
/* events: EPOLLIN, EPOLLOUT, EPOLLPRI; errors and hang-ups always count. */
void lx_poll_slot_init(struct lx_poll_slot *slot, int fd, uint32_t events, bool is_exclusive);

/* First arm, then look without blocking, then sleep: see pollwait.c. */
void lx_poll_arm(struct lx_poll_slot *slots, uint32_t nr);
/*
 * Until a descriptor moves (EVENT: look again), the deadline passes (TIMEOUT: look once more) or a
 * signal interrupts (INTERRUPTED: look, then ask lx_signal_is_wanted()).
 */
WF_PARKS enum wf_reason lx_poll_sleep(struct lx_poll_slot *slots, uint32_t nr, int64_t deadline);

/*
 * The same in parts, for waits that other things end, too; in state PARKING. True: one has moved since it was armed. In any
 * case the first *out_nr are to be dequeued again. *out_refused: the poller does not take one of them (no memory, epoll sets
 * nested too deep, a number beyond our table), which cannot wake us: look for ourselves so often.
 */
bool lx_poll_enqueue(struct lx_poll_slot *slots, uint32_t nr, uint32_t *out_nr, bool *out_refused);
void lx_poll_dequeue(struct lx_poll_slot *slots, uint32_t nr);
#define LX_POLL_LOOK_AGAIN_NS (10 * WF_MS)

/*
 * For who has a table of descriptors of its own, of which the poller knows nothing: the real call, with the time that is
 * left as argument time_arg. Signals are looked for before it.
 */
WF_PARKS long lx_poll_in_kernel(long nr, long args[6], int time_arg, int64_t deadline);

/* A deadline that always has passed: the call only looks. */
#define LX_POLL_NOW 0

/* Relative time -> deadline, LX_POLL_NOW for none at all. -EINVAL as in the kernel. */
long lx_poll_deadline(int64_t sec, int64_t nsec, int64_t *out_deadline);
int64_t lx_poll_deadline_ms(int ms);
/* NULL: WF_NEVER. -EFAULT or -EINVAL. */
long lx_poll_deadline_timespec(const void *user_timespec, int64_t *out_deadline);

/*
 * Store what is left of the time, in a timespec (unit 1) or a timeval (unit 1000 ns), and return
 * ret. Memory that cannot be written is no error, but the call cannot be restarted then.
 */
long lx_poll_time_left(void *user, int64_t unit_ns, int64_t deadline, long ret);

/* The mask of ppoll() and its kin, or NULL. Interrupted: the signal's delivery restores the old. */
long lx_poll_mask_enter(const void *user_mask, size_t bytes);
void lx_poll_mask_leave(long ret);

#endif
