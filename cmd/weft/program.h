// SPDX-License-Identifier: Apache-2.0
/*
 * From the name on the command line to the file that the kernel will run, and whether weft can run it.
 *
 * Used by: run.c (refuses before the exec), report.c (`weft doctor --program`).
 */
#ifndef WF_PROGRAM_H
#define WF_PROGRAM_H

#include <limits.h>

#include "binary.h"

#define WF_PROGRAM_SHELL "/bin/sh"

struct wf_program {
	char path[PATH_MAX]; /* what to exec: the name as found through PATH */
	char target
		[PATH_MAX]; /* the ELF file behind it: path itself, or the last interpreter of #! lines */
	struct wf_binary binary; /* of target; valid where is_read */
	bool is_read;
	bool needs_shell; /* a script without #!: the shell below runs path, and is the target */
	int exit_code;    /* 0: can run; else WF_EXIT_*, and the two below say why */
	char what[256];   /* "it is statically linked" */
	char advice[256]; /* why that matters and what to do */
};

/* Finds name as execvp() does. Returns 0, or -errno as execvp() would set it. */
int wf_program_find(const char *name, char out_path[PATH_MAX]);

/* Fills *out_p; the answer is in exit_code. Release with wf_program_done() in any case. */
void wf_program_examine(struct wf_program *out_p, const char *name);
void wf_program_done(struct wf_program *p);

#endif
