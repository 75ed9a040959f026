// SPDX-License-Identifier: Apache-2.0
/*
 * One wait of one call on one descriptor: what rw.c, sock.c, move.c and queue.c share.
 *
 *	lx_fdwait_init(&w, fd, EPOLLIN);
 *	do
 *		ret = LX_TRY(&w, a call that does not block);
 *	while (!lx_fdwait_is_over(&w, f, &ret));
 *	return ret;
 *
 * No event is missed: w.seq is read before the attempt, see io/fd.h.
 */
#ifndef WF_LINUX_FDWAIT_H
#define WF_LINUX_FDWAIT_H

#include "io/facts.h"
#include "io/uses.h"
#include "linux/abi.h"
#include "linux/msg.h"
#include "linux/signals.h"
#include "sched/park.h"
#include "sched/peer.h"
#include "sched/width.h"

#define RWF_NOWAIT 8
#define MSG_PEEK 0x2
#define MSG_DONTWAIT 0x40
#define MSG_WAITALL 0x100
#define MSG_ERRQUEUE 0x2000
#define MSG_NOSIGNAL 0x4000

struct lx_fdwait {
	struct wf_fd_use use;
	uint32_t events;
	uint32_t seq;
	int64_t deadline;
	bool has_deadline; /* the descriptor's flags and timeouts were asked for */
	bool has_waited, is_late;
	bool is_drained; /* the last attempt has left nothing to read behind */
};

WF_INLINE void lx_fdwait_init(struct lx_fdwait *w, int fd, uint32_t events)
{
	*w = (struct lx_fdwait){ .events = events, .deadline = WF_NEVER };
	w->seq = wf_fd_use_init(&w->use, fd);
}

/*
 * The attempt would block: park. 0: try again; else what the call returns: -EAGAIN for O_NONBLOCK or when
 * the socket's own timeout is over, -ERESTARTSYS or -EINTR for a signal. -EPERM: cannot be waited for, make
 * the real call. When the timeout is over there is one more attempt: what came in time counts, though its
 * event may still be on the way.
 */
WF_PARKS long lx_fdwait_park(struct lx_fdwait *w);
/* The real call, after -EPERM. */
WF_PARKS long lx_fdwait_give_up(struct lx_fdwait *w, struct wf_frame *f);
/* An attempt gave *ret. True: that is over, and *ret what the call returns; false: it has waited, try again. */
WF_PARKS bool lx_fdwait_is_over(struct lx_fdwait *w, struct wf_frame *f, long *ret);
/* The answer of poll() at this moment. */
bool lx_fdwait_is_ready(int fd, uint32_t events);
/* An attempt would find nothing: wait before it. 0: attempt; else what the call returns. */
WF_PARKS long lx_fdwait_first(struct lx_fdwait *w);
/* The call is over: what it left reaches the next waiter. */
WF_INLINE long lx_fdwait_done(struct lx_fdwait *w, long ret)
{
	if (ret > 0)
		wf_width_served();
	if (w->has_waited) {
		wf_fd_pass_on(w->use.fd, w->events);
		if (w->is_drained)
			wf_fd_use_done_drained(&w->use, w->seq);
		else
			wf_fd_use_done(&w->use);
		return ret;
	}
	if (w->is_drained)
		wf_fd_drained(w->use.fd, w->seq);
	if (ret > 0)
		wf_found_ready();
	return ret;
}

/* After a wait the file may have another number: the call is to be made with w->use.fd. */
WF_INLINE void lx_fdwait_try(struct lx_fdwait *w)
{
	int fd = w->use.fd;

	if (!w->has_waited)
		return;
	wf_fd_use_try(&w->use);
	if (w->use.fd != fd)
		w->seq = wf_fd_seq(w->use.fd);
}

#define LX_TRY(w, call)                                                                            \
	__extension__({                                                                            \
		lx_fdwait_try(w);                                                                  \
		long ret_ = (call);                                                                \
		wf_fd_use_tried(&(w)->use);                                                        \
		ret_;                                                                              \
	})

/* A call that sends to fd without blocking; see peer.h. */
#define LX_SEND(fd, call)                                                                          \
	__extension__({                                                                            \
		struct wf_kthread *k_ = wf_own_kthread();                                          \
		wf_peer_before_send(k_);                                                           \
		long sent_ = (call);                                                               \
		wf_peer_after_send(k_, (fd));                                                      \
		sent_;                                                                             \
	})

/*
 * For calls without a non-blocking form. 1: ready now; 0: it is not for us to wait (O_NONBLOCK, a file); else
 * what the call returns.
 */
WF_PARKS long lx_fdwait_until_ready(struct lx_fdwait *w);
/* Poll, then the real call; and again should somebody else have been faster. */
WF_PARKS long lx_fdwait_poll_then_call(struct wf_frame *f, int fd, uint32_t events);
/* The same for calls on descriptors that may never become ready: may_wait is asked before the first wait. */
WF_PARKS long lx_fdwait_poll_then_call_if(struct wf_frame *f, int fd, uint32_t events,
					  bool (*may_wait)(const struct wf_frame *f));

bool lx_fdwait_is_nonblocking(int fd);

/* A write whose reader is gone raises SIGPIPE, on the kernel thread, which blocks it: pass it to the thread. */
WF_INLINE long lx_fdwait_check_sigpipe(long ret)
{
	if (WF_UNLIKELY(ret < 0))
		lx_signal_take_raised(ret);
	return ret;
}

/* Element i of the program's vector: 0 or -EFAULT. */
WF_INLINE long lx_fdwait_load_iovec(const struct iovec_k *user, size_t i, struct iovec_k *out)
{
	return wf_arch_copy(out, user + i, sizeof(*out));
}

#endif
