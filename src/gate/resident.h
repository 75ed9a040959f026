// SPDX-License-Identifier: Apache-2.0
/*
 * Memory that searching a module takes, and gives back. Called by: modules.c, around the search.
 *
 * Reading all of a large text maps all of it (184 MiB of ffmpeg and its libraries instead of 60), and most is never run.
 *
 * Invariant: a page is given back only if it was not there before, neither in memory nor in swap, and is the file's own
 * now: what a process has written to its text (our jumps, a debugger's breakpoints, code that rewrites itself) is a copy,
 * and stays. Nobody else writes to the module's text meanwhile: either no other thread runs, or the loader has only just
 * mapped it.
 */
#ifndef WF_GATE_RESIDENT_H
#define WF_GATE_RESIDENT_H

#include "base/base.h"

#include <link.h>

struct wf_resident {
	uintptr_t lo, hi;  /* pages of the module; both 0: nothing is given back */
	long fd;           /* of the kernel's list of pages */
	uint64_t identity; /* of that file */
	uint64_t *
		here; /* a bit for each page: it was there before, or is none that we may give back */
	size_t bytes;
};

/* Notes which of the module's pages are there. A small one is not worth the question, and where it cannot be asked all stays. */
void wf_resident_note(struct wf_resident *out, const struct dl_phdr_info *module);

/* Give back what has come since. Once after each note. */
void wf_resident_restore(struct wf_resident *r);

#endif
