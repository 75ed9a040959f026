// SPDX-License-Identifier: Apache-2.0
/* Memory for the length of one call; see room.h. */
#include "linux/room.h"
#include "mem/slab.h"
#include "sys/syscall.h"

#define SMALL_ROOM 256 /* 5 slots of poll(): most calls */

static struct wf_slab small_rooms = { .object_bytes = SMALL_ROOM };
static struct wf_slab large_rooms = { .object_bytes = LX_ROOM_LARGE };

void lx_room_forget(void)
{
	wf_slab_init(&small_rooms, SMALL_ROOM);
	wf_slab_init(&large_rooms, LX_ROOM_LARGE);
}

void *lx_room_get(size_t bytes)
{
	if (bytes <= SMALL_ROOM)
		return wf_slab_get(&small_rooms);
	return bytes <= LX_ROOM_LARGE ? wf_slab_get(&large_rooms) : sys_map(bytes);
}

void lx_room_put(void *room, size_t bytes)
{
	if (bytes <= SMALL_ROOM)
		wf_slab_put(&small_rooms, room);
	else if (bytes <= LX_ROOM_LARGE)
		wf_slab_put(&large_rooms, room);
	else
		sys_unmap(room, bytes);
}
