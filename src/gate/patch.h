// SPDX-License-Identifier: Apache-2.0
/*
 * Replacing system call instructions by jumps into trampolines.
 *
 * Called by: modules.c and attach.c, when a module is there and nobody runs its text yet.
 *
 * Invariant: all sites of a module that were chosen and have a window are patched, or none. No page
 * is writable and executable at once.
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
int wf_gate_patch_module(const struct dl_phdr_info *module, const struct wf_scan_wish *wish,
			 struct wf_gate_counts *out_counts);

/* Make the first five bytes of a function a jump to another. 0 or -errno, as above. */
int wf_gate_redirect(uintptr_t function, uintptr_t to);

#endif
