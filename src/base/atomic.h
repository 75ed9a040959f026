// SPDX-License-Identifier: Apache-2.0
/*
 * The one doorway to atomic operations.
 *
 * Every shared word in weft is read and written through these names, so that the model checker
 * (tests/model) can replace them and ThreadSanitizer sees operations that it understands.
 * A fence names the word it protects: under ThreadSanitizer, which ignores bare fences, it becomes a
 * read-modify-write of that word.
 */
#ifndef WF_BASE_ATOMIC_H
#define WF_BASE_ATOMIC_H

#ifdef WF_MODEL_CHECKER
#include "model_atomic.h"
#else

#include "base/base.h"

#define wf_load_relaxed(p) __atomic_load_n((p), __ATOMIC_RELAXED)
#define wf_load_acquire(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define wf_load_seq_cst(p) __atomic_load_n((p), __ATOMIC_SEQ_CST)
#define wf_store_relaxed(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)
#define wf_store_release(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)
#define wf_store_seq_cst(p, v) __atomic_store_n((p), (v), __ATOMIC_SEQ_CST)
/* Like relaxed, for what may be wrong at any time: nothing but speed rests on it, and models need not try its moments. */
#define wf_load_hint(p) wf_load_relaxed(p)
#define wf_store_hint(p, v) wf_store_relaxed((p), (v))
#define wf_exchange(p, v) __atomic_exchange_n((p), (v), __ATOMIC_ACQ_REL)
#define wf_exchange_seq_cst(p, v) __atomic_exchange_n((p), (v), __ATOMIC_SEQ_CST)
#define wf_fetch_add(p, v) __atomic_fetch_add((p), (v), __ATOMIC_ACQ_REL)
#define wf_fetch_add_relaxed(p, v) __atomic_fetch_add((p), (v), __ATOMIC_RELAXED)
#define wf_fetch_sub(p, v) __atomic_fetch_sub((p), (v), __ATOMIC_ACQ_REL)
#define wf_fetch_or(p, v) __atomic_fetch_or((p), (v), __ATOMIC_SEQ_CST)
#define wf_fetch_and(p, v) __atomic_fetch_and((p), (v), __ATOMIC_SEQ_CST)

/* Compare and swap, seq_cst on success; *expected is updated on failure. */
#define wf_cas(p, expected, desired)                                                               \
	__atomic_compare_exchange_n((p), (expected), (desired), false, __ATOMIC_SEQ_CST,           \
				    __ATOMIC_ACQUIRE)

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
#define wf_fence_seq_cst(p) ((void)__atomic_fetch_add((p), 0, __ATOMIC_SEQ_CST))
#else
#define wf_fence_seq_cst(p) ((void)(p), __atomic_thread_fence(__ATOMIC_SEQ_CST))
#endif

/*
 * Right after an exchange that takes a lock: three bytes that do nothing, and a fence on processors whose locked instructions
 * do not order what follows; arch/x86_64/erratum.c puts it there. The section lists the places.
 */
#if defined(__x86_64__)
#define wf_lock_taken()                                                                            \
	__asm__ volatile("1: .byte 0x0f, 0x1f, 0x00\n\t"                                           \
			 ".pushsection weft_fences, \"a\"\n\t"                                     \
			 ".long 1b - .\n\t"                                                        \
			 ".popsection" ::                                                          \
				 : "memory")
#else
#define wf_lock_taken() ((void)0)
#endif

#endif
#endif
