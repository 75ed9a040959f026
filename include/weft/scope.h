/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scopes: deadlines and cancellation that reach into whatever is called, libraries and libc included. See weft_scope(3).
 *
 *	WEFT_SCOPE(s, weft_now() + 50 * WEFT_MS);
 *	if (getaddrinfo(host, "https", NULL, &ai) || (fd = dial(ai)) < 0 || read(fd, buf, n) < 0)
 *		return -EIO;
 *
 * A scope is over when its deadline has passed, when it was cancelled, or when the scope around it is over, but for a shield.
 * A call of the thread that waits then, or would have to, ends as a signal handler without SA_RESTART would end it: with the
 * count of what was transferred, else with -1 and ETIMEDOUT, or ECANCELED if a scope was cancelled. Each one does, not the
 * first alone. A call that needs no wait is made as ever. Waits that no signal ends, no scope ends: mutexes, reads from a disk.
 * Waits of pthread_cond_wait(), sem_wait() and pthread_join() end with ETIMEDOUT, once for each scope, also those of semaphores
 * and conditions that processes share.
 *
 * In native mode only the functions of libweft are reached.
 */
#ifndef WEFT_SCOPE_H
#define WEFT_SCOPE_H

#include <weft/base.h>

WEFT_BEGIN

/* Lives where the program puts it, on the stack as a rule, until it is closed. Only weft writes to it. */
typedef struct weft_scope {
	weft_time deadline;
	const char *name;
	uint64_t opaque[6];
} weft_scope;

/*
 * Open s around what the thread does from here on. deadline: WEFT_NEVER for one that only ends by
 * weft_scope_cancel(). name: NULL, or what reports call it. One that was left by longjmp() is closed at the next
 * open or wait of its thread that finds it below the stack pointer, or overwritten; those around it stay.
 *
 * Where:   any thread, also in signal handlers, but for the first scope of a thread. Never waits; the first one of
 *          a program that has made no thread starts the runtime.
 * Order:   none.
 * Returns: nothing; cannot fail.
 * Owns:    s and name are borrowed until the close.
 * Cancel:  no.
 * After:   CancelScope of Trio (Python), with EINTR's rules of signal(7).
 */
WEFT_API void weft_scope_open(weft_scope *s, weft_time deadline, const char *name);

/*
 * The same, but the scopes around s do not reach into it: for cleanup that has to wait, with a deadline and a name
 * of its own.
 *
 * Where:   any thread, also in signal handlers, as weft_scope_open(). Never waits.
 * Order:   none.
 * Returns: nothing; cannot fail.
 * Owns:    as weft_scope_open().
 * Cancel:  no.
 * After:   CancelScope(shield=True) of Trio.
 */
WEFT_API void weft_scope_shield(weft_scope *s, weft_time deadline, const char *name);

/*
 * Close s, and those inside of it that are still open. A group in it that nobody has waited for ends the process.
 *
 * Where:   the thread that has opened it, also in signal handlers. Never waits.
 * Order:   none.
 * Returns: 0; -ETIMEDOUT or -ECANCELED: it has ended a call. Not said of calls that a scope around it has ended.
 * Owns:    s is the caller's again.
 * Cancel:  no.
 * After:   CancelScope.cancelled_caught of Trio.
 */
WEFT_API int weft_scope_close(weft_scope *s);

/*
 * s is over from now on. If it is not open nothing happens.
 *
 * Where:   any thread, also in signal handlers, while the memory of s is there. Never waits.
 * Order:   what was done before it is seen by a thread that the cancellation ends.
 * Returns: nothing; cannot fail.
 * Owns:    s stays its owner's.
 * Cancel:  no.
 * After:   CancelScope.cancel() of Trio.
 */
WEFT_API void weft_scope_cancel(weft_scope *s);

/*
 * Is a scope of the thread's over? For loops that compute.
 *
 * Where:   any thread, also in signal handlers. Never waits.
 * Order:   none.
 * Returns: 0, or why to stop: -ETIMEDOUT, -ECANCELED.
 * Owns:    nothing.
 * Cancel:  it is what asks for it.
 * After:   trio.lowlevel.checkpoint_if_cancelled().
 */
WEFT_API int weft_scope_check(void);

/*
 * Where s ended a call, last: "lookup: its time was over in poll(), of fd 17". Also after the close. len: bytes of
 * buf, of which the last that is written is zero; what does not fit is cut off.
 *
 * Where:   any thread, also in signal handlers. Never waits.
 * Order:   none.
 * Returns: 0, or -ENOENT: it has ended none, and buf is empty.
 * Owns:    s and buf are borrowed for the call.
 * Cancel:  no.
 * After:   none.
 */
WEFT_API int weft_scope_why(const weft_scope *s, char *buf, size_t len);

static inline void weft_scope_leave_(weft_scope *s)
{
	(void)weft_scope_close(s);
}

/* Declares s, which is closed where its block ends. */
#define WEFT_SCOPE(s, deadline)                                                                    \
	weft_scope s __attribute__((cleanup(weft_scope_leave_)));                                  \
	weft_scope_open(&s, (deadline), #s)

WEFT_END

#endif
