// SPDX-License-Identifier: Apache-2.0
/*
 * The words that every file uses: attributes, small helpers, compile-time checks.
 *
 * Included by everything; includes nothing of weft.
 */
#ifndef WF_BASE_BASE_H
#define WF_BASE_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WF_CACHE_LINE 64
#define WF_PAGE 4096ul

#define WF_LIKELY(x) __builtin_expect(!!(x), 1)
#define WF_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define WF_NOINLINE __attribute__((noinline))
#define WF_INLINE static inline __attribute__((always_inline))
#define WF_NORETURN __attribute__((noreturn))
#define WF_PRINTF(a, b) __attribute__((format(printf, a, b)))
#define WF_ALIGNED(n) __attribute__((aligned(n)))
#define WF_HIDDEN __attribute__((visibility("hidden")))
#define WF_WEAK __attribute__((weak))
#define WF_EXPORT __attribute__((visibility("default"), used))

/* The function may park: never keep the result of wf_self() or a worker pointer across a call of it. */
#define WF_PARKS

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

#define WF_MIN(a, b) ((a) < (b) ? (a) : (b))
#define WF_MAX(a, b) ((a) > (b) ? (a) : (b))
#define WF_ALIGN_UP(x, n) (((x) + (n)-1) & ~((__typeof__(x))(n)-1))
#define WF_ALIGN_DOWN(x, n) ((x) & ~((__typeof__(x))(n)-1))

#define WF_US 1000ll
#define WF_MS 1000000ll
#define WF_SEC 1000000000ll
#define WF_NEVER INT64_MAX

#endif
