// SPDX-License-Identifier: Apache-2.0
/* The process that tends to robust locks when this one is killed; see heir.c. */
#ifndef WF_LINUX_HEIR_H
#define WF_LINUX_HEIR_H

#include "linux/abi.h"

/* A module was loaded that names functions for robust locks. */
void lx_heir_expect(void);
/* The program has mapped shared memory by this call. */
void lx_heir_mapped(const struct wf_frame *f);
/* The runtime has started. */
void lx_heir_start(void);
/* By the door. */
void lx_heir_answer(void);
/* Another program is about to be executed; it was not. */
void lx_heir_leave(void);
void lx_heir_stay(void);
/* It is a child of the process that natively is not there: is it pid, are there no others? */
bool lx_heir_is(int pid);
bool lx_heir_is_only_child(int options);
void lx_heir_forget(void);

#endif
