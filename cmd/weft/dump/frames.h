// SPDX-License-Identifier: Apache-2.0
/*
 * A stack, as text.
 *
 * Used by: print.c, fibers.c. Invariant: that of print.h.
 */
#ifndef WF_DUMP_FRAMES_H
#define WF_DUMP_FRAMES_H

#include "dump/view.h"

/* A line for each frame of a thread, or of a fiber. */
void wf_frames_print(const struct wf_dump_view *v, const struct wf_dump_thread *d, int indent);

#endif
