// SPDX-License-Identifier: Apache-2.0
/*
 * Symbols of an object that is loaded in the target, found as the dynamic linker finds them.
 *
 * Used by: layout.c. Invariant: nothing is believed but that memory can be read; every walk has a bound.
 */
#ifndef WF_TARGET_SYMBOL_H
#define WF_TARGET_SYMBOL_H

#include "target/target.h"

/* Address of a dynamic symbol of the object whose file begins at address start, 0: none. */
uint64_t wf_symbol_find(const struct wf_target *t, uint64_t start, const char *name);

#endif
