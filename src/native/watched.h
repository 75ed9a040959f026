// SPDX-License-Identifier: Apache-2.0
/*
 * Telling the sanitizers and valgrind where the program is watched by them and the library is not.
 *
 * Called by: fiber.c, task.c, crew.c, and event.c, chan.c and select.c, in the program's code. base/san.h is for the runtime's own builds; a program that is
 * compiled with -fsanitize links the library as it is, which finds the sanitizer's functions by their names: weak ones, so
 * that all other programs need none.
 *
 * Invariant: each switch is announced just before it (wf_watched_leave) and just after it on the other side
 * (wf_watched_arrive). All that one fiber of a thread did has happened before what the next one does.
 */
#ifndef WF_NATIVE_WATCHED_H
#define WF_NATIVE_WATCHED_H

#include "native/face.h"

/* A stack that a switch may lead to. */
struct wf_watched {
	const void *low;
	size_t bytes;
	void *fake;   /* AddressSanitizer's frames of it, while it is left */
	void *thread; /* ThreadSanitizer's idea of it */
	uint64_t valgrind_id;
};

/* Nothing but wf_watched_init() and wf_watched_done() need be called where this says no. */
WF_FACE_CODE bool wf_watched_is_any(void);
WF_FACE_CODE void wf_watched_init(struct wf_watched *w, const void *low, size_t bytes);
/* The stack that the caller runs on. low: NULL if that is not known. */
WF_FACE_CODE void wf_watched_adopt(struct wf_watched *w, const void *low, size_t bytes);
WF_FACE_CODE void wf_watched_done(struct wf_watched *w);
WF_FACE_CODE void wf_watched_leave(struct wf_watched *self, const struct wf_watched *to,
				   bool is_last);
/* first: nobody has run on it yet. */
WF_FACE_CODE void wf_watched_arrive(struct wf_watched *self, bool is_first);

/*
 * After a wait in the kernel: ThreadSanitizer keeps a handler back until a function of libc's is called that it knows. One that
 * it has kept back since before the wait does not end it, so with it no wait lasts longer than WF_WATCHED_LOOK_NS at a time.
 */
#define WF_WATCHED_LOOK_NS (10 * WF_MS)
WF_FACE_CODE void wf_watched_run_handlers(void);

/*
 * The thread that runs a task sees all that was done before it was given away, and the other way round at its end. The next
 * user of a channel or an event sees all that was done before its use.
 */
extern bool wf_watched_by_threads; /* (p) before the program begins */
WF_FACE_CODE void wf_watched_tell_release(void *at);
WF_FACE_CODE void wf_watched_tell_acquire(void *at);

WF_INLINE void wf_watched_release(void *at)
{
	if (WF_UNLIKELY(wf_watched_by_threads))
		wf_watched_tell_release(at);
}

WF_INLINE void wf_watched_acquire(void *at)
{
	if (WF_UNLIKELY(wf_watched_by_threads))
		wf_watched_tell_acquire(at);
}

#endif
