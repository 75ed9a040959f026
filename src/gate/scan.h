// SPDX-License-Identifier: Apache-2.0
/*
 * The system call instructions of one executable segment, as its code tells: which bytes are
 * one, with which number, and what jumps to the bytes around it.
 *
 * Called by: sites.c, which chooses what may be replaced.
 *
 * Invariant: no jump that can be known is missing from the targets of a match. More than there are
 * costs a window at worst.
 */
#ifndef WF_GATE_SCAN_H
#define WF_GATE_SCAN_H

#include "gate/fde.h"

#include <stdbool.h>

#define WF_SYSCALL_LEN 2
#define WF_NR_LIMIT 1024      /* no system call number is as large */
#define WF_SITE_WINDOW_MAX 24 /* the most that is replaced around one */

/* The bytes of a system call instruction. */
struct wf_match {
	uintptr_t addr;
	uintptr_t nr_at; /* the instruction that put the number into eax */
	uint64_t targets
		[2]; /* what jumps lead to: a bit for each byte from addr - WF_TARGETS_BEFORE on */
	uint32_t
		before; /* lengths of up to four instructions before it, a byte each, the nearest lowest */
	int32_t nr;         /* the number, or -1: not a constant */
	bool is_real;       /* decoding arrived at it, in what is surely code */
	bool is_unwanted;   /* its number is not wanted; known before any decoding */
	bool is_alike;      /* only looks like one: the bytes lie inside another instruction */
	uintptr_t code_end; /* where the function ends */
};

/* A match remembers targets in [addr - WF_TARGETS_BEFORE, addr + WF_TARGETS_AFTER). */
#define WF_TARGETS_BEFORE 96
#define WF_TARGETS_AFTER 32

/* Which entry of the gate a module's calls come to. */
enum wf_gate_entry {
	WF_ENTRY_LIBC,    /* nothing is kept in vector registers across a call */
	WF_ENTRY_KEEPING, /* something may be */
	WF_ENTRY_CLOCK    /* the vDSO, which the runtime calls, too */
};

struct wf_known_table;

struct wf_scan_wish {
	enum wf_gate_entry entry;
	bool (*wanted)(int nr); /* a call whose number is not a constant is wanted in any case */
	/*
	 * NULL, or the start of a function written by hand: then only this function's system calls
	 * are wanted, and those whose wanted number is set by the instruction right before. Jumps
	 * from other functions are not looked for.
	 */
	const void *glance;
	const struct wf_known_table
		*known; /* made for this very wish: then known.h is asked first; or NULL */
};

/* Of 64 lines of 128 bytes. */
struct wf_lines {
	uint64_t bits; /* one for each that a target of interest may lie in */
	size_t first;  /* the first match that such a target may be near */
};

/* The work on one executable segment. */
struct wf_scan {
	const struct dl_phdr_info *module;
	const uint8_t *start;
	const uint8_t *end;
	struct wf_match *matches; /* sorted by addr */
	size_t nr_matches;
	size_t matches_bytes;
	struct wf_lines *lines;
	size_t lines_bytes;
	struct wf_fde_table fdes;
	uint64_t *swept; /* a bit per function */
	size_t swept_bytes;
	uintptr_t gap_end; /* code without a function was swept up to here */
};

/*
 * s->module, start and end are set, all else is 0. Returns 0 or -ENOMEM. Released by
 * wf_scan_done(), in both cases.
 */
int wf_scan_segment(struct wf_scan *s, const struct wf_scan_wish *wish);
void wf_scan_done(struct wf_scan *s);

/* Does a jump lead to addr? Yes when it is too far from the match to be remembered. */
bool wf_match_is_target(const struct wf_match *m, uintptr_t addr);

/* Memory that grows by whole mappings, for whoever may not call libc: NULL when there is none. */
void *wf_grow_pages(void *old, size_t old_bytes, size_t bytes);

#endif
