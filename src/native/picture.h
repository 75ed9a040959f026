// SPDX-License-Identifier: Apache-2.0
/*
 * The surroundings of a mistake: the scopes of the thread that makes it, its groups with their threads, and who waits for the
 * channel that it is about; indented as `weft dump --tree` has it. The runtime's code: locks are held in between.
 *
 * Called by: misuse.c.
 *
 * Invariant: it ends, whatever is damaged. Locks are only tried, each so many times; lists are left at the first link that
 * does not lead back; there is room for so many lines, and no memory is allocated. Of other threads only what the lock of a
 * list keeps there is read, and what they wait for is shown as a number, never followed.
 */
#ifndef WF_NATIVE_PICTURE_H
#define WF_NATIVE_PICTURE_H

#include "native/face.h"
#include "sched/scope.h"
#include "sync/chan.h"

#define WF_PICTURE_LINES 40
#define WF_PICTURE_BYTES 4096 /* as much as a pipe takes at once */

struct wf_picture {
	const struct wf_scopes *sc; /* NULL: the thread has no scopes */
	struct wf_chan *ch;         /* NULL: the mistake is about none */
	const char *name;           /* of the thread */
	uint64_t tid;
};

/* The name that a thread which is not weft's was given, or NULL; native/thread.c stores it before the program begins. */
extern const char *(*wf_picture_name)(const struct wf_scopes *sc);

/* out: WF_PICTURE_BYTES. How many of them are used. */
size_t wf_picture_draw(struct wf_thread *self, const struct wf_picture *p, char *out);

#endif
