// SPDX-License-Identifier: Apache-2.0
/* From a plain process to weft and back; see start.c. */
#ifndef WF_LINUX_START_H
#define WF_LINUX_START_H

#include "linux/abi.h"

/*
 * base: what the program has in the base register. 1; 0: the program stays native; -errno: no kernel thread could be made,
 * and the next thread may try again.
 */
long lx_start(uintptr_t base);
/* In the child of a fork. shares_files: it has the table of descriptors in common with its parent. */
void lx_forget(bool shares_files);

#endif
