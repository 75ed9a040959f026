// SPDX-License-Identifier: Apache-2.0
/*
 * The descriptors that a program has opened on what we made for it in /proc: names of threads, to be read back when they are
 * closed, and the directory of all threads, whose entries are ours.
 *
 * Called by: names.c, procpath.c.
 */
#ifndef WF_LINUX_NAMETABLE_H
#define WF_LINUX_NAMETABLE_H

#include "base/base.h"

#define LX_NAMETABLE_TASKS (~0u) /* in place of a tid: the directory of all threads */

/* Remember that closing fd names tid. False: too many at once. */
bool lx_nametable_add(int fd, uint32_t tid);
/* fd is about to be closed: the tid that it was added with, or 0. */
uint32_t lx_nametable_take(int fd);
bool lx_nametable_is_tasks(int fd);
/* In a child: what the parent had open is nobody's name any more. */
void lx_nametable_forget(void);

#endif
