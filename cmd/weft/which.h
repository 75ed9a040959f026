// SPDX-License-Identifier: Apache-2.0
/*
 * Which process, or which core file, a command line means.
 *
 * Used by: dump/, trace/.
 */
#ifndef WF_WHICH_H
#define WF_WHICH_H

/*
 * Behind its options (from optind on) a line names a process, unless core is given; exe goes with core. 0 and the process's
 * ID, or 0 without a process; else WF_EXIT_REFUSED, and it is said in the name of command why.
 */
int wf_which(const char *command, int argc, char **argv, const char *core, const char *exe,
	     int *out_pid);

#endif
