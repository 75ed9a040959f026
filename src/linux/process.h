// SPDX-License-Identifier: Apache-2.0
/* Processes that the program makes; see process.c. */
#ifndef WF_LINUX_PROCESS_H
#define WF_LINUX_PROCESS_H

#include "linux/abi.h"

/* A clone that makes a process. args: its clone3 arguments, NULL for clone. */
struct clone_args;
WF_PARKS long lx_clone_process(struct wf_frame *f, uint64_t flags, uintptr_t sp,
			       const struct clone_args *args);
/* A program is about to be executed, by f. */
void lx_exec_notice(struct wf_frame *f);

/* By gate.S, around a vfork() and in the child of one that makes a process. */
struct wf_child;
void wf_linux_vfork_begin(struct wf_frame *f);
void wf_linux_vfork_end(struct wf_frame *f);
void wf_linux_vfork_child(void);
void wf_linux_child_begin(const struct wf_child *c);

#endif
