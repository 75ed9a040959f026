// SPDX-License-Identifier: Apache-2.0
/*
 * Opening files whose names somebody else chose: the mappings of a process, the notes of a core, the debug
 * links of a program.
 *
 * Used by: target.c, core.c, unwind.c, and libdw without its knowledge. Invariant: nothing but
 * a regular file of a file system that stores files is opened, so no pipe blocks, no device does
 * what it does when it is opened, and nothing is used up by reading it, as /proc/kmsg.
 */
#ifndef WF_TARGET_FILE_H
#define WF_TARGET_FILE_H

#include <stdbool.h>
#include <sys/types.h>

/* A descriptor for reading, or -errno; -EMEDIUMTYPE if it is no regular file. */
int wf_file_open(const char *path);

/* A file of /proc/PID, by a name of our own making. */
int wf_file_open_proc(const char *path);

bool wf_file_is_elf(int fd);

/* From now on open() of the libraries that we load goes through wf_file_open(), too. */
void wf_file_guard_libraries(void);

#endif
