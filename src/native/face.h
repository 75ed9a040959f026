// SPDX-License-Identifier: Apache-2.0
/*
 * The functions that a program calls: from its code into the runtime's, and back.
 *
 *	WF_FACE int weft_event_wait(weft_event *e, weft_time until)
 *	{
 *		struct wf_thread *self = wf_face_enter();
 *		int ret = wf_event_wait(self, e, until);
 *
 *		wf_face_leave(self);
 *		return ret;
 *	}
 *
 * The inner function is the runtime's: a kick that finds it only sets a bit of the attention word. The outer one lies in
 * a section of its own and counts as the program's code: it may call libc, is preempted anywhere, and looks at that word
 * once the inner one is done. So no kick is left unanswered, and there is no window between the look and the return.
 *
 * Invariant: no function of the outer kind holds a lock of the runtime, or uses what belongs to a kernel thread.
 */
#ifndef WF_NATIVE_FACE_H
#define WF_NATIVE_FACE_H

#include "arch/arch.h"
#include "sched/self.h"
#include "weft/base.h"

/* Of everything in src/native/ that is not the runtime's: exported functions, and their helpers that call libc. */
#define WF_FACE_CODE __attribute__((section("weft_face")))
#define WF_FACE WEFT_API WF_FACE_CODE

/* The thread that we are; NULL where none of weft's is: before the first thread, on foreign kernel threads, in native mode. */
WF_INLINE struct wf_thread *wf_face_enter(void)
{
	uint32_t on = wf_load_acquire(&wf_arch_gate_on);

	if (on == WF_GATE_OFF)
		return NULL;
	if (WF_UNLIKELY(on == WF_GATE_SHARED))
		return wf_self_find();
	return wf_self_kthread() ? wf_self() : NULL;
}

/* Signals that came meanwhile, a slice that is over. Errno is kept. */
WF_FACE_CODE void wf_face_attend(void);

WF_INLINE void wf_face_leave(const struct wf_thread *self)
{
	if (self && WF_UNLIKELY(wf_load_relaxed(&self->attention)))
		wf_face_attend();
}

#endif
