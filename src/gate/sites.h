// SPDX-License-Identifier: Apache-2.0
/*
 * The system call instructions of one loaded module, and the few bytes around each that a jump may
 * replace.
 *
 * Called by: patch.c, and the tests, which also give it modules that are only mapped and never run.
 *
 * Invariant: a site that is listed may be patched. Its window holds whole instructions that run
 * equally well at another address, and no jump that can be known lands inside it. Any doubt leaves
 * the site out and counts it.
 */
#ifndef WF_GATE_SITES_H
#define WF_GATE_SITES_H

#include "gate/scan.h"

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wf_site {
	uintptr_t addr;   /* the syscall instruction */
	uintptr_t window; /* the first byte that is replaced */
	uintptr_t tramp;  /* the copies of the instructions before the system call */
	uintptr_t entry;  /* in the trampoline, stands for rip == addr */
	uintptr_t resume; /* stands for rip == addr + 2; the copies of the instructions after it */
	uintptr_t tramp_end;
	int nr; /* number of the system call, or -1: known only when it runs */
	uint8_t window_len;
};

/* Counts of one module. found = wanted + not wanted; wanted = patched + left. */
struct wf_gate_counts {
	unsigned int found;   /* real syscall instructions */
	unsigned int unknown; /* of these: without a static number */
	unsigned int wanted;
	unsigned int patched;
	unsigned int left; /* wanted, but no window was safe */
	unsigned int
		doubtful; /* bytes of a system call in code that could not be decoded up to there */
};

struct wf_site_list {
	struct wf_site *sites; /* sorted by addr, hence by window; windows do not overlap */
	size_t nr;
	size_t bytes; /* of the mapping that holds them */
	int entry;    /* as the wish said: enum wf_gate_entry */
};

/*
 * List the sites of a module that are wanted and can be patched. Addresses of trampolines are left
 * 0. nr -1 is always wanted, rt_sigreturn never. Returns 0; -ENOMEM. The list is released by
 * wf_sites_free().
 */
int wf_sites_find(const struct dl_phdr_info *module, const struct wf_scan_wish *wish,
		  struct wf_gate_counts *out_counts, struct wf_site_list *out_list);

void wf_sites_free(struct wf_site_list *list);

#endif
