/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Select: wait for the first of several things, and do that one.
 *
 *	struct weft_op ops[] = {
 *		WEFT_ON(&stop),
 *		WEFT_RECV(jobs, &job),
 *		WEFT_FD(fd, POLLIN),
 *	};
 *
 *	switch (weft_select(ops, 3, weft_now() + WEFT_SEC)) {
 *	case 0: return;
 *	case 1: if (ops[1].result == 0) work(&job); break;      // else -EPIPE: closed
 *	case 2: accept_one(fd); break;
 *	}
 *
 * Of several that are ready the first in the order written is done, so what must not be kept waiting stands first. Channels and
 * events are looked at in one moment: one that was ready before another became so is seen. Descriptors are asked for just before,
 * by themselves. Exactly one is done: the others have had no effect. An operation whose channel or event is NULL, or whose
 * descriptor is negative, is never ready. The same channel may stand in several, also in both directions: a select does not send
 * to itself.
 */
#ifndef WEFT_SELECT_H
#define WEFT_SELECT_H

#include <weft/chan.h>
#include <weft/event.h>

WEFT_BEGIN

enum {
	WEFT_OP_NONE, /* never ready: zero */
	WEFT_OP_RECV,
	WEFT_OP_SEND,
	WEFT_OP_ON,
	WEFT_OP_FD
};

struct weft_op {
	int kind;      /* WEFT_OP_* */
	int fd;        /* WEFT_OP_FD */
	short events;  /* POLLIN, POLLOUT, POLLPRI, ...: see poll(2) */
	short revents; /* out, of a descriptor that is done: what it is ready for */
	int result;    /* out, of the operation that is done: 0, or -EPIPE: the channel is closed */
	void *object;  /* the channel or the event */
	void *item;    /* where the item is, or is put */
	size_t bytes;
	uint64_t opaque[2];
};

#ifdef __cplusplus
/* Expressions in C++, too, without designators. */
#define WEFT_OP_(kind, fd, events, object, item, bytes)                                            \
	weft_op                                                                                    \
	{                                                                                          \
		(kind), (fd), (short)(events), 0, 0, (void *)(object), (void *)(item), (bytes),    \
		{                                                                                  \
			0, 0                                                                       \
		}                                                                                  \
	}
#else
#define WEFT_OP_(kind, fd, events, object, item, bytes)                                            \
	{                                                                                          \
		(kind), (fd), (short)(events), 0, 0, (void *)(object), (void *)(item), (bytes),    \
		{                                                                                  \
			0, 0                                                                       \
		}                                                                                  \
	}
#endif

/* Initializers of a weft_op. Receive into *p; send *p, which must stay as it is until weft_select() returns; a token of each. */
#define WEFT_RECV(ch, p) WEFT_OP_(WEFT_OP_RECV, -1, 0, (ch), (p), sizeof(*(p)))
#define WEFT_SEND(ch, p) WEFT_OP_(WEFT_OP_SEND, -1, 0, (ch), (p), sizeof(*(p)))
#define WEFT_TAKE(ch) WEFT_OP_(WEFT_OP_RECV, -1, 0, (ch), 0, 0)
#define WEFT_GIVE(ch) WEFT_OP_(WEFT_OP_SEND, -1, 0, (ch), 0, 0)
/* The event is set. */
#define WEFT_ON(event) WEFT_OP_(WEFT_OP_ON, -1, 0, (event), 0, 0)
/* The descriptor is ready; as with poll(), errors, hang-ups and a descriptor that is not open count, and show in revents. */
#define WEFT_FD(fd, events) WEFT_OP_(WEFT_OP_FD, (fd), (events), 0, 0, 0)

/*
 * Do the first of the nr ops that is ready, or wait until one is, or until then. In the past: one attempt at each, no wait.
 *
 * Where:   any thread, not in a signal handler. Parks. A handler that interrupts it runs and returns,
 *          and the wait goes on behind the others; one that leaves by longjmp() must not.
 * Order:   of several that are ready the first in ops. While it waits, it is in turn at each channel as any other waiter.
 * Returns: the index of the one that is done, whose result is set; -ETIMEDOUT; -ECANCELED; -ENOMEM, with more than 8 ops;
 *          -EMFILE, -ENFILE, of an OS thread that waits for descriptors, which takes one more; -ENOTSUP: descriptors of a
 *          thread that has a table of them to itself.
 * Owns:    ops and items are borrowed for the call. On an error no item was moved.
 * Cancel:  ends with its scopes; is no cancellation point of pthread_cancel().
 * After:   select of Go, in the order written as choose() of libdill.
 */
WEFT_API int weft_select(struct weft_op *ops, unsigned nr, weft_time until);

WEFT_END

#endif
