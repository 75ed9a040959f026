// SPDX-License-Identifier: Apache-2.0
/*
 * Replacing system call instructions by jumps into trampolines, and telling where an interrupted
 * trampoline stands.
 *
 * Called by: attach.c (patching, at start-up and when a module appears); signal delivery,
 * preemption and dumps (the three questions at the end, in signal handlers: no lock, no libc, no
 * allocation).
 *
 * Invariant: all sites of a module that have a window are patched, or none. No page is writable and
 * executable at once. Trampolines that somebody may run are never touched again.
 */
#ifndef WF_GATE_PATCH_H
#define WF_GATE_PATCH_H

#include "gate/sites.h"

/*
 * Patch the wanted sites of one module.
 *
 * Where:   one caller at a time; no other thread may run in the module's text meanwhile: its pages
 *          are not executable for a moment. Not for the module that we are in ourselves.
 * Returns: 0, also when there was nothing to do; -errno with nothing changed. *out_counts is set in
 *          both cases: after an error nothing is patched and all that was wanted counts as left.
 */
int wf_gate_patch_module(const struct dl_phdr_info *module, bool (*wanted)(int nr),
			 struct wf_gate_counts *out_counts);

/* The module that was mapped in [start, end) is gone: what is mapped there next is not patched. */
void wf_gate_forget(uintptr_t start, uintptr_t end);

/*
 * Where execution that should go on at rip really continues: the trampoline if rip lies in an
 * overwritten window.
 */
uintptr_t wf_gate_to_tramp(uintptr_t rip);

/*
 * The original address that a rip in a trampoline stands for; 0 between entry and resume; others
 * unchanged.
 */
uintptr_t wf_gate_from_tramp(uintptr_t rip);

bool wf_gate_in_pool(uintptr_t rip);

#endif
