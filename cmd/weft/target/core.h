// SPDX-License-Identifier: Apache-2.0
/*
 * Core files: where their memory, mappings and registers stand.
 *
 * Used by: target.c. Invariant: the file is foreign data; nothing in it is believed unchecked.
 */
#ifndef WF_TARGET_CORE_H
#define WF_TARGET_CORE_H

#include "target/target.h"

struct user_regs_struct;

void wf_core_convert_regs(const struct user_regs_struct *r, struct wf_regs *out);

/* As wf_target_read_some(). Memory that the core leaves out is read from the files that were mapped there. */
size_t wf_core_read(const struct wf_target *t, uint64_t address, void *out, size_t bytes);
void wf_core_done(struct wf_target *t);

#endif
