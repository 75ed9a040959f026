// SPDX-License-Identifier: Apache-2.0
/*
 * WEFT_PERF_MAP: /tmp/perf-PID.map, where perf looks for the names of code that is in no file: trampolines.
 *
 * Called by: attach.c, patch.c. Invariant: no link is followed and nobody else's file is written to.
 */
#ifndef WF_GATE_PERFMAP_H
#define WF_GATE_PERFMAP_H

#include <stdint.h>

void wf_perfmap_want(void);
/* These are the trampolines of that module: one more line, if the user wants it. */
void wf_perfmap_note(uintptr_t start, uintptr_t end, const char *module);

#endif
