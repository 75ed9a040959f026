// SPDX-License-Identifier: Apache-2.0
/*
 * The threads that take tasks over; see task.c, which says how they are called.
 */
#ifndef WF_NATIVE_CREW_H
#define WF_NATIVE_CREW_H

#include "native/taskdeque.h"

struct wf_crew {
	uint32_t calls; /* (a) somebody may be called, and nobody is on the way */
	uint32_t width; /* (p) that many can run at a time */
};

extern struct wf_crew wf_crew;

/* Once, before the first task. */
WF_FACE_CODE void wf_crew_begin(void);
/* In a fork child: there is none, and other threads' tasks are gone. */
WF_FACE_CODE void wf_crew_forget(void);
/* There is a task, and wf_crew.calls was set. */
WF_FACE_CODE void wf_crew_call(void);
/* Until the task of that word, which was stolen, is done. */
WF_FACE_CODE void wf_crew_wait(uint64_t *word, bool is_crew);

#endif
