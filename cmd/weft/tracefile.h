// SPDX-License-Identifier: Apache-2.0
/* The file that events will be written to when the program ends. Used by: run.c. */
#ifndef WF_TRACEFILE_H
#define WF_TRACEFILE_H

/*
 * Finds out now whether it will be possible, which may be asked in a month. A file is made, for its owner alone, or emptied,
 * unless it is outer, that of the run that we are part of (NULL: of none), whose programs share it; with %p, the pid of each
 * program, none is.
 * Returns its absolute name, which the program's own change of directory does not touch; or says why not and returns NULL.
 */
char *wf_tracefile_prepare(const char *file, const char *outer);

#endif
