// SPDX-License-Identifier: Apache-2.0
/*
 * Names of other threads: libc reads and writes /proc/self/task/TID/comm, which the kernel has for none of ours.
 */
#ifndef WF_LINUX_NAMES_H
#define WF_LINUX_NAMES_H

#include "linux/abi.h"

WF_PARKS long sysc_open(struct wf_frame *f);
WF_PARKS long sysc_open_rare(struct wf_frame *f);
WF_PARKS long sysc_close_name(struct wf_frame *f);

/* The name of the main thread, or of a bound one, where ps(1) sees it. */
void lx_names_tell_kernel(const struct lx_thread *t);
/*
 * By the kernel thread that runs t: is called as t is, because it will be t's own, or because it is about to be killed and
 * the kernel's log and a core shall say who it was. Not of a thread that has a filter.
 */
void lx_names_lend(const struct lx_thread *t);
/* In a child: what the parent had open is nobody's name any more. */
void lx_names_forget(void);

#endif
