// SPDX-License-Identifier: Apache-2.0
/*
 * The rights that this process keeps once it has the snapshot: to read files, to compute and to print.
 *
 * Called by: unwind.c, before libdw is shown the first file. libdw is large and the files are a stranger's, while
 * the one who looks is often root. Invariant: from here on no file is opened for writing, no program run, no process
 * signalled or traced, and nothing connected; there is no way back.
 */
#ifndef WF_TARGET_SANDBOX_H
#define WF_TARGET_SANDBOX_H

/* Where the kernel has no seccomp, nothing changes. */
void wf_sandbox_enter(void);

#endif
