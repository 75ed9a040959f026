// SPDX-License-Identifier: Apache-2.0
/*
 * Open addressing, never more than half full; what follows a removed entry moves up, so a search ends at a free place.
 * Below: what the door and whoever takes a signal note of its timer.
 */
#include "linux/timertable.h"
#include "linux/timercpu.h"

#include <signal.h>

#define MIN_ROOM 64 /* a power of two, as all sizes */

static struct {
	struct wf_spin lock;
	uint32_t nr, room;     /* (q) */
	struct lx_timer *slot; /* (q) */
} table;

static uint32_t drains; /* (o) the door's: how many there were */

void lx_timer_lock(void)
{
	wf_spin_lock(&table.lock);
}

void lx_timer_unlock(void)
{
	wf_spin_unlock(&table.lock);
}

static uint32_t home_of(int id)
{
	return (uint32_t)id & (table.room - 1); /* they are handed out in a row */
}

/* Where id is, or the free place where it would be. */
static struct lx_timer *place_of(int id)
{
	uint32_t i = home_of(id);

	while (table.slot[i].signo && table.slot[i].id != id)
		i = (i + 1) & (table.room - 1);
	return &table.slot[i];
}

struct lx_timer *lx_timer_find(int id)
{
	struct lx_timer *t = table.room ? place_of(id) : NULL;

	return t && t->signo ? t : NULL;
}

/* Under the lock; returns what is no longer used, for the caller to unmap. */
static struct lx_timer *move_to(struct lx_timer *slot, uint32_t room)
{
	struct lx_timer *was = table.slot;
	uint32_t nr_was = table.room;

	table.slot = slot;
	table.room = room;
	for (uint32_t i = 0; i < nr_was; i++)
		if (was[i].signo)
			*place_of(was[i].id) = was[i];
	return was;
}

/* Makes room for one more than there were: without the lock, which is not held across a system call. */
static bool grow(uint32_t room)
{
	uint32_t fresh_room = room ? 2 * room : MIN_ROOM, old_room = fresh_room;
	struct lx_timer *old = sys_map(fresh_room * sizeof(*old));

	if (!old)
		return false;
	lx_timer_lock();
	if (table.room == room) {
		old_room = room;
		old = move_to(old, fresh_room);
	}
	lx_timer_unlock();
	if (old_room)
		sys_unmap(old, old_room * sizeof(*old));
	return true;
}

bool lx_timer_add(const struct lx_timer *fresh)
{
	for (;;) {
		uint32_t room;
		bool fits;

		lx_timer_lock();
		room = table.room;
		fits = 2 * (table.nr + 1) <= room;
		if (fits) {
			struct lx_timer *t = place_of(fresh->id);

			table.nr += !t->signo;
			*t = *fresh;
		}
		lx_timer_unlock();
		if (fits || !grow(room))
			return fits;
	}
}

void lx_timer_remove(int id)
{
	struct lx_timer *t;

	lx_timer_lock();
	t = lx_timer_find(id);
	if (t) {
		uint32_t mask = table.room - 1, hole = (uint32_t)(t - table.slot);

		for (uint32_t i = (hole + 1) & mask; table.slot[i].signo; i = (i + 1) & mask) {
			/* One whose search would not come by the hole stays. */
			if (((i - home_of(table.slot[i].id)) & mask) < ((i - hole) & mask))
				continue;
			table.slot[hole] = table.slot[i];
			hole = i;
		}
		table.slot[hole].signo = 0;
		table.nr--;
	}
	lx_timer_unlock();
}

void lx_timer_table_forget(void)
{
	/* Not unmapped: another thread of the parent may have been in the middle of a change. */
	__builtin_memset(&table, 0, sizeof(table));
}

uint32_t lx_timer_target(int timer_id)
{
	const struct lx_timer *t;
	uint32_t tid;

	lx_timer_lock();
	t = lx_timer_find(timer_id);
	tid = t ? t->tid : 0;
	lx_timer_unlock();
	return tid;
}

void lx_timer_taken(const struct wf_siginfo *info)
{
	struct lx_timer *t;

	lx_timer_lock();
	t = lx_timer_find(info->timer.timer_id);
	if (t)
		t->overrun = info->timer.overrun;
	lx_timer_unlock();
}

void lx_timer_drain_begin(void)
{
	drains++;
}

/* One from before the first thread. Its number may be anything that the sender of a signal made up. */
static void adopt(const struct wf_siginfo *info)
{
	const struct lx_timer fresh = {
		.id = info->timer.timer_id,
		.signo = info->signo,
		.drain = drains,
		.begun = 1,
		.ended = 1,
	};
	struct lx_timerspec spec;

	if (sys2(__NR_timer_gettime, fresh.id, &spec) < 0 || !lx_timer_add(&fresh))
		return;
	/* A thread that deleted it before that did not find it in the table. */
	if (sys2(__NR_timer_gettime, fresh.id, &spec) < 0)
		lx_timer_remove(fresh.id);
}

bool lx_timer_is_back(const struct wf_siginfo *info)
{
	bool is_back = false;
	struct lx_timer *t;

	lx_timer_lock();
	t = lx_timer_find(info->timer.timer_id);
	if (t) {
		is_back = t->drain == drains;
		t->drain = drains;
	}
	lx_timer_unlock();
	if (!t)
		adopt(info);
	return is_back;
}
