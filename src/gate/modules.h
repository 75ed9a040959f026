// SPDX-License-Identifier: Apache-2.0
/*
 * Which modules are loaded: patches them all at the first thread, and each that appears later.
 *
 * Called by: attach.c at start, linux/start.c at the first thread, and the dynamic loader itself
 * (watch.S), which tells its debugger about every change by a call of an empty function.
 *
 * Invariant: when the loader runs the first constructor of a module that was opened under weft, its
 * system calls have been replaced. A module that is gone leaves nothing behind.
 */
#ifndef WF_GATE_MODULES_H
#define WF_GATE_MODULES_H

#include "gate/sites.h"

#include <link.h>

/*
 * debug: the loader's _r_debug. program: the main program as dl_iterate_phdr() would show it, kept
 * as a copy. wanted_first: the calls that must be seen before there is a thread. table: made for both wishes.
 */
void wf_modules_init(const struct r_debug *debug, const struct dl_phdr_info *program,
		     bool (*wanted)(int nr), bool (*wanted_first)(int nr),
		     const struct wf_known_table *table);

/* A loaded module whose name begins so, or NULL. */
struct link_map *wf_modules_find(const struct r_debug *debug, const char *name);

/* The program itself has been linked with a library of this name. */
bool wf_modules_program_needs(const struct r_debug *debug, const char *soname);

/* In the text or data of the program's own libc, from wf_modules_patch_first() on. */
bool wf_modules_in_libc(uintptr_t addr);

/* Does one of them name what makes threads? Without it only what is loaded later does. */
bool wf_modules_make_threads(const struct r_debug *debug);

/*
 * At start: patch these in libc, and what is in `function`, as far as a glance finds them; all of
 * libc where it does not. 0 or -errno.
 */
int wf_modules_patch_first(const void *function);

/*
 * Patch everything that is loaded, and be told of what is loaded from now on. Returns 0, or -errno
 * with libc as it was.
 *
 * Where:   no other thread runs.
 */
int wf_modules_patch_all(void);

/* A module that is loaded, as the loader has it. The pointers may lead to what is gone. */
struct wf_modules_place {
	uintptr_t base, lo, hi;
	const void *dynamic;
	const char *name; /* NULL or "": the program itself */
};

/* By a program that crashes, at any moment, with faults open. False: no module is known there. */
bool wf_modules_at(uintptr_t addr, struct wf_modules_place *out);

/*
 * Some module uses the GS base itself, so that the gate has to ask the kernel who calls, and some module may forbid it to.
 *
 * Where: as above, after it.
 */
bool wf_modules_filter_shared(void);

/* How often modules have come or gone since the first thread, as far as the loader has told. */
uint32_t wf_modules_changes(void);

struct wf_modules_count {
	uint32_t modules;       /* looked at */
	uint32_t patched, left; /* sites */
	bool is_watching;       /* the loader tells us */
};
struct wf_modules_count wf_modules_count(void);

#endif
