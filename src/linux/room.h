// SPDX-License-Identifier: Apache-2.0
/*
 * Memory for the length of one call: a thread's stack may have 16 KiB, a poll() 20,000 descriptors.
 *
 * Called by: poll.c, select.c, epoll.c, sigfd.c.
 */
#ifndef WF_LINUX_ROOM_H
#define WF_LINUX_ROOM_H

#include "base/base.h"

#define LX_ROOM_LARGE 4096 /* more is mapped for the call: such calls are slow anyway */

/* NULL: there is none. put takes the size that get was asked for. */
void *lx_room_get(size_t bytes);
void lx_room_put(void *room, size_t bytes);
/* In a fork child: rooms that other threads held are lost. */
void lx_room_forget(void);

#endif
