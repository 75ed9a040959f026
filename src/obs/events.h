// SPDX-License-Identifier: Apache-2.0
/*
 * The event rings as text: WEFT_TRACE=FILE.
 *
 * Called by: linux/ on the way out of the process (through a hook). Freestanding, like everything that runs there.
 */
#ifndef WF_OBS_EVENTS_H
#define WF_OBS_EVENTS_H

/*
 * Write what the rings hold to path, which is created or truncated: one line per event, oldest first within a
 * kernel thread. Returns 0 or -errno; a child forked from the program writes nothing.
 */
int wf_events_write(const char *path);

#endif
