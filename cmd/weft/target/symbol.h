// SPDX-License-Identifier: Apache-2.0
/*
 * Symbols of an object that is loaded in the target, found as the dynamic linker finds them.
 *
 * Used by: layout.c, object.c. Invariant: nothing is believed but that memory can be read; every walk has a bound.
 */
#ifndef WF_TARGET_SYMBOL_H
#define WF_TARGET_SYMBOL_H

#include <elf.h>

#include "target/target.h"

#define WF_SYMBOL_HEADERS 64

/*
 * The head and the program headers, e->e_phnum of them, of the object whose file begins at address start. False: it is no
 * such object, or has more.
 */
bool wf_symbol_read_headers(const struct wf_target *t, uint64_t start, Elf64_Ehdr *e,
			    Elf64_Phdr out[WF_SYMBOL_HEADERS]);

/* Address of a dynamic symbol of the object whose file begins at address start, 0: none. */
uint64_t wf_symbol_find(const struct wf_target *t, uint64_t start, const char *name);

#endif
