/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All of libweft, and what is the process's: the clock, and what runs its threads. See weft(7).
 *
 * A program whose executable is linked with libweft runs on it: every thread of the process, whoever makes it, is one of
 * weft's. Where that cannot be, each function does the same with threads of the kernel: native mode.
 */
#ifndef WEFT_WEFT_H
#define WEFT_WEFT_H

#include <weft/base.h>
#include <weft/chan.h>
#include <weft/event.h>
#include <weft/fiber.h>
#include <weft/group.h>
#include <weft/scope.h>
#include <weft/select.h>
#include <weft/task.h>
#include <weft/thread.h>

WEFT_BEGIN

/*
 * The time now, in nanoseconds of CLOCK_MONOTONIC.
 *
 * Where:   any thread, also in signal handlers. Never waits.
 * Order:   never goes back.
 * Returns: the time; cannot fail.
 * Owns:    nothing.
 * Cancel:  no.
 * After:   clock_gettime().
 */
WEFT_API weft_time weft_now(void);

/*
 * Sleep until `when`, through signals. A ticker: weft_sleep_until(t += period).
 *
 * Where:   any thread, not in a signal handler. Parks.
 * Order:   none.
 * Returns: 0; at once if it is past. -ECANCELED, -ETIMEDOUT: a scope of the thread's is over.
 * Owns:    nothing.
 * Cancel:  ends with its scopes; is a cancellation point of pthread_cancel().
 * After:   clock_nanosleep() with TIMER_ABSTIME.
 */
WEFT_API int weft_sleep_until(weft_time when);

/*
 * For a library, or a program that loads one that is linked with libweft, which alone changes nothing: the threads
 * of this process shall be weft's from the first one on. To be called before there is one.
 *
 * Where:   the main thread, while it is alone, not in a signal handler. Never waits.
 * Order:   none.
 * Returns: 0, also when they are already; -EBUSY: there are threads; -ENOTSUP: cannot be here, weft_mode() says
 *          why.
 * Owns:    nothing.
 * Cancel:  no.
 * After:   none.
 */
WEFT_API int weft_attach(void);

enum weft_mode {
	WEFT_MODE_NATIVE,   /* threads are the kernel's */
	WEFT_MODE_ATTACHED, /* the first thread starts the runtime, or has */
};

/*
 * Which mode the process is in. out_why: NULL, or where to put why it is native, NULL if it is not.
 *
 * Where:   any thread, not in a signal handler. Never waits.
 * Order:   after weft_attach() and the first thread it is always the same.
 * Returns: the mode; cannot fail.
 * Owns:    the text lives as long as the process.
 * Cancel:  no.
 * After:   none.
 */
WEFT_API enum weft_mode weft_mode(const char **out_why);

WEFT_END

#endif
