// SPDX-License-Identifier: Apache-2.0
/*
 * Names of C++ functions as they were written.
 *
 * Used by: unwind.c. Invariant: a name that was made to blow up (its plain form can be as long as one likes,
 * with each substitution twice as long) costs a child process some seconds, and this one nothing.
 */
#ifndef WF_TARGET_DEMANGLE_H
#define WF_TARGET_DEMANGLE_H

/* The plain form of a symbol, which lives until wf_demangle_done(); NULL: it has none, or none can be had. */
const char *wf_demangle(const char *symbol);
void wf_demangle_done(void);

#endif
