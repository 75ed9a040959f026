// SPDX-License-Identifier: Apache-2.0
/*
 * The past of a process, before weft looks: it may have run for a while when a library of its attaches it.
 *
 * Called by: attach.c, while the calls of libc are not seen yet.
 */
#ifndef WF_GATE_BEFORE_H
#define WF_GATE_BEFORE_H

#include <stdbool.h>
#include <stdint.h>

/* False where that cannot be seen. */
bool wf_before_has_threads(void);

/* How many filters of system calls there are, those of a container among them. */
uint64_t wf_before_nr_filters(void);

/* It serves its own page faults, or those of a process beside it. */
bool wf_before_has_userfaults(void);

#endif
