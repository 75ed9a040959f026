// SPDX-License-Identifier: Apache-2.0
/*
 * The one file that knows AddressSanitizer and ThreadSanitizer.
 *
 * Called by: whoever switches stacks in a build with sanitizers; the release build compiles to nothing.
 *
 * Invariant: each switch is announced just before it (wf_san_leave) and just after it on the other side
 * (wf_san_arrive). ThreadSanitizer is told that a switch synchronises nothing: or else it would excuse every
 * race between two threads that shared a kernel thread. The announcing functions are neither instrumented
 * nor inlined, since the sanitizer's own state changes in the middle of them.
 */
#ifndef WF_BASE_SAN_H
#define WF_BASE_SAN_H

#include "base/base.h"

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define WF_SAN_ADDRESS 1
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
#define WF_SAN_THREAD 1
#include <sanitizer/tsan_interface.h>
#endif

#ifdef __clang__
/* no_sanitize alone still counts entry and exit, which happen on two stacks here. */
#define WF_SAN_PLAIN __attribute__((noinline, unused, disable_sanitizer_instrumentation))
#else
#define WF_SAN_PLAIN __attribute__((noinline, unused, no_sanitize_address, no_sanitize_thread))
#endif

/* A stack that a switch may lead to. Zeroed: nobody has run on it. */
struct wf_san_stack {
	const void *bottom;
	size_t bytes;
	void *fiber; /* ThreadSanitizer's idea of a context */
};

#define WF_SAN_NO_SYNC 1u /* __tsan_switch_to_fiber_no_sync */

/* A stack is used for the first time or again: what its last user left poisoned is forgotten. */
static WF_SAN_PLAIN void wf_san_stack_init(struct wf_san_stack *s, const void *bottom, size_t bytes)
{
	s->bottom = bottom;
	s->bytes = bytes;
#ifdef WF_SAN_ADDRESS
	__asan_unpoison_memory_region(bottom, bytes);
#endif
#ifdef WF_SAN_THREAD
	if (!s->fiber)
		s->fiber = __tsan_create_fiber(0);
#endif
}

/* The stack that the caller runs on. */
static WF_SAN_PLAIN void wf_san_stack_adopt(struct wf_san_stack *s, const void *bottom,
					    size_t bytes)
{
	*s = (struct wf_san_stack){ .bottom = bottom, .bytes = bytes };
#ifdef WF_SAN_THREAD
	s->fiber = __tsan_get_current_fiber();
#endif
}

static WF_SAN_PLAIN void wf_san_stack_done(struct wf_san_stack *s)
{
#ifdef WF_SAN_THREAD
	if (s->fiber)
		__tsan_destroy_fiber(s->fiber);
#endif
	*s = (struct wf_san_stack){ 0 };
}

/* out_fake: NULL when the stack we leave is never run again. */
static WF_SAN_PLAIN void wf_san_leave(void **out_fake, const struct wf_san_stack *to)
{
	(void)out_fake;
	(void)to;
#ifdef WF_SAN_ADDRESS
	__sanitizer_start_switch_fiber(out_fake, to->bottom, to->bytes);
#endif
#ifdef WF_SAN_THREAD
	__tsan_switch_to_fiber(to->fiber, WF_SAN_NO_SYNC);
#endif
}

/* fake: what wf_san_leave() stored on this stack; NULL on a stack's first use. */
static WF_SAN_PLAIN void wf_san_arrive(void *fake)
{
	(void)fake;
#ifdef WF_SAN_ADDRESS
	__sanitizer_finish_switch_fiber(fake, NULL, NULL);
#endif
}

/*
 * A kernel thread's own data pass from one of its contexts to the next without an atomic: it is the same
 * kernel thread. The scheduler's own tests say so around their switches; programs get no such excuse.
 */
static WF_SAN_PLAIN void wf_san_hand_over(void *owner)
{
	(void)owner;
#ifdef WF_SAN_THREAD
	__tsan_release(owner);
#endif
}

static WF_SAN_PLAIN void wf_san_take_over(void *owner)
{
	(void)owner;
#ifdef WF_SAN_THREAD
	__tsan_acquire(owner);
#endif
}

#endif
