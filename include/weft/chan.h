/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Channels: items of one size from thread to thread.
 *
 *	weft_chan *jobs = weft_chan_new(sizeof(struct job), 16, "jobs");
 *
 *	weft_chan_send(jobs, &job, WEFT_NEVER);                 // waits while 16 of them are in it
 *	while (weft_chan_recv(jobs, &job, WEFT_NEVER) == 0)     // until it is closed, and empty
 *		work(&job);
 *
 * Capacity 0: a rendezvous, a sender waits for a receiver. Item size 0: tokens, which are nothing but a number; such a channel
 * is a semaphore, see weft_chan_give(). Items are copied, in the order in which they were sent; waiters are served first come,
 * first served, and an item goes to a receiver that waits without lying in the channel.
 *
 * A channel may be freed by whoever knows that no further call will name it: when the last item has been received, say, even
 * though the call that sent it has not returned yet. A weft_select() that names it must have returned, if something else ended it.
 */
#ifndef WEFT_CHAN_H
#define WEFT_CHAN_H

#include <weft/base.h>

WEFT_BEGIN

typedef struct weft_chan weft_chan;

/*
 * A channel for up to capacity items of item_bytes bytes each.
 *
 * Where:   any thread, not in a signal handler. Never waits.
 * Order:   none.
 * Returns: the channel; NULL: no memory.
 * Owns:    the caller frees it with weft_chan_free(). name, which may be NULL, is borrowed: it is shown in dumps and messages.
 * Cancel:  no.
 * After:   make() of Go.
 */
WEFT_API weft_chan *weft_chan_new(size_t item_bytes, size_t capacity, const char *name);

/*
 * Free ch, and forget what is in it. NULL: nothing. A channel for which a thread waits ends the process.
 *
 * Where:   any thread, not in a signal handler. Never waits.
 * Order:   after the exchange of every call that names ch.
 * Returns: nothing; cannot fail.
 * Owns:    ch is gone.
 * Cancel:  no.
 * After:   none.
 */
WEFT_API void weft_chan_free(weft_chan *ch);

/*
 * Close ch: nothing can be sent any more, and what is in it can still be received. By anybody, as often as they like.
 *
 * Where:   any thread, not in a signal handler. Never waits.
 * Order:   what was sent before is received first.
 * Returns: nothing; cannot fail. All that wait to send, or to receive, return -EPIPE.
 * Owns:    ch stays the caller's.
 * Cancel:  no.
 * After:   close() of Go, but as often as one likes.
 */
WEFT_API void weft_chan_close(weft_chan *ch);

/*
 * Send *item, of so many bytes, through ch, or wait for room, or for a receiver. until: when to give up, in nanoseconds of
 * weft_now(). Usually by the macro, which passes the size; a size that is not the channel's ends the process.
 *
 * Where:   any thread, not in a signal handler. Parks. A handler that interrupts it runs and returns,
 *          and the wait goes on behind the others; one that leaves by longjmp() must not.
 * Order:   items are received in the order in which they were sent; waiters are served first come, first served.
 * Returns: 0; -EPIPE: closed; -ETIMEDOUT; -ECANCELED.
 * Owns:    item is borrowed for the call. On any error nothing was sent.
 * Cancel:  ends with its scopes; is no cancellation point of pthread_cancel().
 * After:   a send of Go, but closed is an error, as in crossbeam-channel of Rust.
 */
WEFT_API int weft_chan_send_bytes(weft_chan *ch, const void *item, size_t bytes, weft_time until);
#define weft_chan_send(ch, item, until) weft_chan_send_bytes((ch), (item), sizeof(*(item)), (until))

/*
 * Receive an item of so many bytes from ch into *out, or wait for one. Usually by the macro. until: when to give
 * up, in nanoseconds of weft_now().
 *
 * Where:   any thread, not in a signal handler. Parks. Handlers: as weft_chan_send_bytes().
 * Order:   as weft_chan_send_bytes().
 * Returns: 0; -EPIPE: closed and empty; -ETIMEDOUT; -ECANCELED.
 * Owns:    on 0 the item is the caller's. On any error *out is untouched.
 * Cancel:  ends with its scopes; is no cancellation point of pthread_cancel().
 * After:   a receive of Go.
 */
WEFT_API int weft_chan_recv_bytes(weft_chan *ch, void *out, size_t bytes, weft_time until);
#define weft_chan_recv(ch, out, until) weft_chan_recv_bytes((ch), (out), sizeof(*(out)), (until))

/* A channel of tokens (item size 0): send one, receive one. As a semaphore, these are post and wait. */
#define weft_chan_give(ch, until) weft_chan_send_bytes((ch), NULL, 0, (until))
#define weft_chan_take(ch, until) weft_chan_recv_bytes((ch), NULL, 0, (until))

/*
 * How many items are in ch: up to its capacity, not counting what those that wait would send.
 *
 * Where:   any thread, also in signal handlers. Never waits.
 * Order:   none: a moment later it may be another number.
 * Returns: the number.
 * Owns:    ch stays the caller's.
 * Cancel:  no.
 * After:   len() of Go.
 */
WEFT_API size_t weft_chan_count(const weft_chan *ch);

WEFT_END

#endif
