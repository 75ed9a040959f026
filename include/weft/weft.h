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

/* The time now. */
WEFT_API weft_time weft_now(void);

/*
 * Sleep until `when`, through signals. A ticker: weft_sleep_until(t += period).
 *
 * Returns: 0; at once if it is past. -ECANCELED, -ETIMEDOUT: a scope of the thread's is over.
 */
WEFT_API int weft_sleep_until(weft_time when);

/*
 * For a library, or a program that loads one that is linked with libweft, which alone changes nothing: the threads of this
 * process shall be weft's from the first one on. To be called before there is one.
 *
 * Returns: 0, also when they are already. -EBUSY: there are threads. -ENOTSUP: cannot be here, weft_mode() says why.
 */
WEFT_API int weft_attach(void);

enum weft_mode {
	WEFT_MODE_NATIVE,   /* threads are the kernel's */
	WEFT_MODE_ATTACHED, /* the first thread starts the runtime, or has */
};

/* Which one this is. out_why: NULL, or where to put why it is native, NULL if it is not. */
WEFT_API enum weft_mode weft_mode(const char **out_why);

WEFT_END

#endif
