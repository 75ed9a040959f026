// SPDX-License-Identifier: Apache-2.0
/*
 * Names of code, from the tables for the dynamic linker: for the last words of a program that crashes.
 *
 * Called by: overflow.c, on the alternate stack of a kernel thread, with faults open. Nothing that is read is trusted to
 * be there, and no lock is taken: the loader may be in the middle of a change.
 */
#ifndef WF_OBS_SYMBOLS_H
#define WF_OBS_SYMBOLS_H

#include "base/fmt.h"

#define WF_SYMBOLS_NAME_BYTES 64

struct wf_symbol {
	char module[WF_SYMBOLS_NAME_BYTES]; /* base name of the file */
	char name[WF_SYMBOLS_NAME_BYTES];   /* of the function; "" when the table has none there */
	uint64_t offset;                    /* in the module */
	uintptr_t start;                    /* of the function; 0 without a name */
};

/* It lies in a module. Cheap. */
bool wf_symbols_is_code(uintptr_t addr);

/* False: in no module that is known. may_ask: the kernel, for the name of the program's file. */
bool wf_symbols_find(uintptr_t addr, bool may_ask, struct wf_symbol *out);

/* Text of the program's, without what would disturb a terminal. */
void wf_symbols_clean(char *text);

#endif
