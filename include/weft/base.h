/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by all headers of libweft: how time is told, and how functions report.
 *
 * Time is in nanoseconds of CLOCK_MONOTONIC. A function that waits takes an absolute deadline, `until`, which the scopes of the
 * thread shorten. In the past it means one attempt and no wait. WEFT_NEVER: as long as it takes. In a structure 0 means none.
 *
 * Functions return 0 or a count, else -Exxx, and do not set errno; outputs are untouched on error. A mistake of the caller (a
 * thread joined twice, a channel freed under its waiters) ends the process with abort(), one line that says which, and a
 * picture of the scopes and groups of the thread that made it.
 * Structures are valid when zeroed. Names are borrowed: they must live as long as what they name.
 *
 * Each function has a comment of the same parts:
 *   Where:   who may call it. "Any thread": whoever made it, also in a task and on a fiber. "Parks": it may wait; a thread of
 *            weft's lets others run meanwhile, any other (an OS thread, all in native mode) blocks in the kernel. A kernel
 *            thread that a raw clone() has made may call what libc lets it call: it needs thread-local variables of its own.
 *   Order:   what is seen afterwards, and who is served first.
 *   Returns: the result, and each error.
 *   Owns:    whose the arguments are, and for how long.
 *   Cancel:  whether scopes end its wait, and pthread_cancel().
 *   After:   whose behaviour it follows.
 */
#ifndef WEFT_BASE_H
#define WEFT_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define WEFT_BEGIN extern "C" {
#define WEFT_END }
#else
#define WEFT_BEGIN
#define WEFT_END
#endif

/* Exported; everything else of the library is hidden. */
#define WEFT_API __attribute__((visibility("default")))

typedef int64_t weft_time;

#define WEFT_NEVER INT64_MAX
#define WEFT_NOW ((weft_time)1) /* long past: try, do not wait */

#define WEFT_US ((weft_time)1000)
#define WEFT_MS (1000 * WEFT_US)
#define WEFT_SEC (1000 * WEFT_MS)

#endif
