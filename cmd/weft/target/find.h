// SPDX-License-Identifier: Apache-2.0
/*
 * The processes that have weft's library mapped, wherever they run: found in /proc.
 *
 * Used by: dump/, look/, watch/, and layout.c for the library's name. Invariant: nobody is stopped, and no memory is read; a
 * process that may not be looked at is left out, and counted.
 */
#ifndef WF_TARGET_FIND_H
#define WF_TARGET_FIND_H

#include <stdbool.h>
#include <stddef.h>

struct wf_find_process {
	int pid;
	char name[256]; /* of the program's file, without folders; as it is: see text.h */
	char comm[16];  /* what the process calls itself */
};

struct wf_find {
	struct wf_find_process *processes; /* by pid */
	size_t nr_processes;
	size_t nr_hidden; /* that may not be looked at */
};

/* Is this the file of weft's library, by its name? */
bool wf_find_is_library(const char *path);

/* Is it mapped? False, and errno: the process may not be looked at. */
bool wf_find_has_library(int pid, bool *out);

/* Both names of p->pid. False: it has no program, since it has ended or is the kernel's own. */
bool wf_find_read(struct wf_find_process *p);
bool wf_find_is_named(const struct wf_find_process *p, const char *name);

/* Every process, until one call returns false. False: there is no /proc. */
bool wf_find_each(bool (*each)(int pid, void *arg), void *arg);

/* False: out of memory, or there is no /proc. Release with wf_find_done() in any case. */
bool wf_find_all(struct wf_find *out);
void wf_find_done(struct wf_find *f);

/* A process ID, or the name of the one process under weft that has it. 0, and why in error: there is none. */
int wf_find_pid(const char *text, char *error, size_t bytes);

#endif
