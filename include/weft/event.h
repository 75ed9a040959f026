/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events: something has happened, and everybody may know.
 *
 *	static weft_event stop;                         // zero: clear
 *
 *	while (weft_event_wait(&stop, weft_now() + WEFT_SEC) == -ETIMEDOUT)
 *		refresh();
 *
 * An event is clear or set, and stays what it is until it is cleared or set: nobody can come too late. All that a thread did
 * before it set the event is seen by all that find it set. It needs no release, and may be freed, or leave the stack, as soon
 * as a wait for it has returned 0, whether or not weft_event_set() has returned by then; not while others wait for it.
 */
#ifndef WEFT_EVENT_H
#define WEFT_EVENT_H

#include <weft/base.h>

WEFT_BEGIN

typedef struct weft_event {
	uint64_t opaque[2];
} weft_event;

/*
 * Set e: all that wait for it go on, and nobody waits for it until it is cleared. Setting a set event does nothing.
 *
 * Where:   any thread, also in signal handlers. Never waits.
 * Order:   waiters go on in the order in which they came.
 * Returns: nothing; cannot fail, and needs no memory.
 * Owns:    e may be gone when it returns: see above.
 * Cancel:  no.
 * After:   set() of Python's threading.Event.
 */
WEFT_API void weft_event_set(weft_event *e);

/*
 * Clear e: from now on there is something to wait for. A thread that was waiting when it was set goes on all the same.
 *
 * Where:   any thread, also in signal handlers. Never waits.
 * Order:   against a set at the same time, either may come first.
 * Returns: nothing; cannot fail.
 * Owns:    e stays the caller's.
 * Cancel:  no.
 * After:   clear() of Python's threading.Event.
 */
WEFT_API void weft_event_clear(weft_event *e);

/*
 * Is e set?
 *
 * Where:   any thread, also in signal handlers. Never waits.
 * Order:   true: what was done before it was set is seen.
 * Returns: true or false.
 * Owns:    e stays the caller's.
 * Cancel:  no.
 * After:   is_set() of Python's threading.Event.
 */
WEFT_API bool weft_event_is_set(const weft_event *e);

/*
 * Wait until e is set, or until then.
 *
 * Where:   any thread, not in a signal handler. Parks. A handler that interrupts it runs and returns,
 *          and the wait goes on; one that leaves by longjmp() must not.
 * Order:   waiters go on in the order in which they came.
 * Returns: 0; -ETIMEDOUT; -ECANCELED. An event that is set gives 0, whatever the time.
 * Owns:    e stays the caller's.
 * Cancel:  ends with its scopes; is no cancellation point of pthread_cancel().
 * After:   wait() of Python's threading.Event.
 */
WEFT_API int weft_event_wait(weft_event *e, weft_time until);

WEFT_END

#endif
