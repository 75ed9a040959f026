// SPDX-License-Identifier: Apache-2.0
/*
 * The event rings as text: WEFT_TRACE=FILE.
 *
 * Called by: attach.c at start, linux/ on the way out of the process (through a hook). Freestanding, like everything that
 * runs there.
 *
 * Invariant: nothing is written but to the file that had the name when the process began, or to one that is made for it.
 * No symbolic link is followed then, and what another process has written stays.
 */
#ifndef WF_OBS_EVENTS_H
#define WF_OBS_EVENTS_H

/*
 * The rings are to be written to this file in the end. %p in its name is the pid; the path is copied. Without %p a process
 * that finds the file written by another one writes to FILE.PID.
 */
void wf_events_to(const char *path);
const char *wf_events_file(void);

/*
 * Write what the rings hold: one line per event, oldest first within a kernel thread. Returns NULL, or why it cannot be
 * done; a child forked from the program writes nothing.
 */
const char *wf_events_write(void);

#endif
