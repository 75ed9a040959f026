// SPDX-License-Identifier: Apache-2.0
/*
 * What the sanitizers and valgrind are told where the program is watched by them and the library is not.
 *
 * Called by: fiber.c and task.c, in the program's code. base/san.h is for the runtime's own builds; a program that is
 * compiled with -fsanitize links the library as it is, which finds the sanitizer's functions by their names: weak ones, so
 * that all other programs need none.
 *
 * Invariant: functions that announce a switch are neither instrumented nor inlined, as the sanitizer's own state changes in
 * the middle of them.
 */
#ifndef WF_NATIVE_WATCHED_H
#define WF_NATIVE_WATCHED_H

#include "base/san.h"
#include "native/face.h"

#ifndef WF_SAN_ADDRESS
void __asan_unpoison_memory_region(void const volatile *at, size_t bytes) WF_WEAK;
void __sanitizer_start_switch_fiber(void **out_fake, const void *low, size_t bytes) WF_WEAK;
void __sanitizer_finish_switch_fiber(void *fake, const void **out_low, size_t *out_bytes) WF_WEAK;
#endif
#ifndef WF_SAN_THREAD
void *__tsan_get_current_fiber(void) WF_WEAK;
void *__tsan_create_fiber(unsigned flags) WF_WEAK;
void __tsan_destroy_fiber(void *fiber) WF_WEAK;
void __tsan_switch_to_fiber(void *fiber, unsigned flags) WF_WEAK;
void __tsan_acquire(void *at) WF_WEAK;
void __tsan_release(void *at) WF_WEAK;
#endif

/* The same on some context of the same thread: what one did has happened before what the next does, so not "no sync". */
struct wf_watched {
	const void *low; /* of the stack; NULL: the thread's own, not known yet */
	size_t bytes;
	void *fake;   /* AddressSanitizer's frames of it, while it is left */
	void *thread; /* ThreadSanitizer's idea of it */
};

/* valgrind: a request is an instruction sequence that does nothing anywhere else. */
#define WF_VALGRIND_STACK_REGISTER 0x1501u
#define WF_VALGRIND_STACK_DEREGISTER 0x1502u
#define WF_VALGRIND_RUNNING 0x1001u

WF_INLINE uint64_t wf_watched_ask_valgrind(uint64_t request, uint64_t a, uint64_t b)
{
	const volatile uint64_t args[6] = { request, a, b };
	uint64_t answer = 0;

	__asm__ volatile("rolq $3, %%rdi; rolq $13, %%rdi; rolq $61, %%rdi; rolq $51, %%rdi\n\t"
			 "xchgq %%rbx, %%rbx"
			 : "+d"(answer)
			 : "a"(args)
			 : "cc", "memory", "rdi");
	return answer;
}

WF_INLINE bool wf_watched_has_address(void)
{
	return __sanitizer_start_switch_fiber != NULL;
}

WF_INLINE bool wf_watched_has_thread(void)
{
	return __tsan_switch_to_fiber != NULL;
}

/* What was done before a task is given away is seen by who runs it, and the other way round at its end. */
WF_INLINE void wf_watched_release(void *at)
{
	if (WF_UNLIKELY(__tsan_release != NULL))
		__tsan_release(at);
}

WF_INLINE void wf_watched_acquire(void *at)
{
	if (WF_UNLIKELY(__tsan_acquire != NULL))
		__tsan_acquire(at);
}

/* Nothing below need be called where this says no. */
WF_INLINE bool wf_watched_is_any(void)
{
	return wf_watched_has_address() || wf_watched_has_thread();
}

#endif
