// SPDX-License-Identifier: Apache-2.0
/* Telling the sanitizers and valgrind; see watched.h. */
#include "native/watched.h"
#include "sched/group.h"

#include <time.h>

void __asan_unpoison_memory_region(void const volatile *at, size_t bytes) WF_WEAK;
void __sanitizer_start_switch_fiber(void **out_fake, const void *low, size_t bytes) WF_WEAK;
void __sanitizer_finish_switch_fiber(void *fake, const void **out_low, size_t *out_bytes) WF_WEAK;
void *__tsan_get_current_fiber(void) WF_WEAK;
void *__tsan_create_fiber(unsigned flags) WF_WEAK;
void __tsan_destroy_fiber(void *fiber) WF_WEAK;
void __tsan_switch_to_fiber(void *fiber, unsigned flags) WF_WEAK;
void __tsan_acquire(void *at) WF_WEAK;
void __tsan_release(void *at) WF_WEAK;

#define STACK_REGISTER 0x1501u
#define STACK_DEREGISTER 0x1502u

bool wf_watched_by_threads;

__attribute__((constructor)) static void begin(void)
{
	wf_watched_by_threads = __tsan_acquire && __tsan_release;
	if (wf_watched_by_threads)
		wf_group_look_ns = WF_WATCHED_LOOK_NS;
}

void wf_watched_run_handlers(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
}

WF_FACE_CODE static uint64_t ask_valgrind(uint64_t request, uint64_t a, uint64_t b)
{
	const volatile uint64_t args[6] = { request, a, b };

	return wf_cpu_ask_valgrind(args);
}

WF_FACE_CODE bool wf_watched_is_any(void)
{
	return __sanitizer_start_switch_fiber || __tsan_switch_to_fiber;
}

WF_FACE_CODE void wf_watched_init(struct wf_watched *w, const void *low, size_t bytes)
{
	*w = (struct wf_watched){ .low = low, .bytes = bytes };
	w->valgrind_id = ask_valgrind(STACK_REGISTER, (uint64_t)low, (uint64_t)low + bytes);
	if (__asan_unpoison_memory_region)
		__asan_unpoison_memory_region(low, bytes);
	if (__tsan_create_fiber)
		w->thread = __tsan_create_fiber(0);
}

WF_FACE_CODE void wf_watched_adopt(struct wf_watched *w, const void *low, size_t bytes)
{
	*w = (struct wf_watched){ .low = low, .bytes = bytes };
	if (__tsan_get_current_fiber)
		w->thread = __tsan_get_current_fiber();
}

WF_FACE_CODE void wf_watched_done(struct wf_watched *w)
{
	if (__tsan_destroy_fiber)
		__tsan_destroy_fiber(w->thread);
	(void)ask_valgrind(STACK_DEREGISTER, w->valgrind_id, 0);
}

WF_FACE_CODE void wf_watched_leave(struct wf_watched *self, const struct wf_watched *to,
				   bool is_last)
{
	if (__sanitizer_start_switch_fiber)
		__sanitizer_start_switch_fiber(is_last ? NULL : &self->fake, to->low, to->bytes);
	if (__tsan_switch_to_fiber)
		__tsan_switch_to_fiber(to->thread, 0);
}

WF_FACE_CODE void wf_watched_arrive(struct wf_watched *self, bool is_first)
{
	if (__sanitizer_finish_switch_fiber)
		__sanitizer_finish_switch_fiber(is_first ? NULL : self->fake, NULL, NULL);
}

/*
 * In place of what lies at an address, which may be freed by whoever it was exchanged with: ThreadSanitizer throws away what it
 * knows of memory that is freed, and must not be asked of it at that moment. Two objects that share a place excuse a race
 * between their users, now and then.
 */
#define PLACE_BITS 12
static uint64_t places[1u << PLACE_BITS];

static WF_FACE_CODE void *place_of(const void *at)
{
	return &places[(uintptr_t)at * 0x9e3779b97f4a7c15ull >> (64 - PLACE_BITS)];
}

WF_FACE_CODE void wf_watched_tell_release(void *at)
{
	__tsan_release(place_of(at));
}

WF_FACE_CODE void wf_watched_tell_acquire(void *at)
{
	__tsan_acquire(place_of(at));
}
