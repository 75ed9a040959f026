// SPDX-License-Identifier: Apache-2.0
/*
 * Hierarchical timer wheel with exact deadlines.
 *
 * Slots of 65.5 us, 64 per level; adding and cancelling are O(1). A timer fires when its deadline has
 * passed, never earlier: inside the current slot deadlines are compared exactly, so the slot width bounds
 * work, not precision.
 *
 * Invariant: after wf_wheel_cancel() returns, fire() neither runs nor will run. fire() is called with the
 * wheel's lock held and may only unpark.
 */
#ifndef WF_SCHED_WHEEL_H
#define WF_SCHED_WHEEL_H

#include "base/list.h"
#include "base/spin.h"

#define WF_WHEEL_SHIFT 16
#define WF_WHEEL_BITS 6
#define WF_WHEEL_SLOTS (1u << WF_WHEEL_BITS)
#define WF_WHEEL_LEVELS 8 /* 2^(16 + 48) ns: every deadline fits */

struct wf_timer {
	struct wf_list link; /* (q) in a slot, or empty */
	int64_t deadline;    /* (q) CLOCK_MONOTONIC ns */
	uint8_t level, slot; /* (q) where link is */
	bool armed;          /* (q) */
	void (*fire)(struct wf_timer *);
};

struct wf_wheel {
	struct wf_spin lock;
	int64_t tick;                   /* (q) every slot before it was emptied */
	int64_t next;                   /* (a) no timer fires before; WF_NEVER when empty */
	uint32_t nr;                    /* (a) armed timers */
	uint64_t used[WF_WHEEL_LEVELS]; /* (q) bit per slot that may be non-empty */
	struct wf_list slots[WF_WHEEL_LEVELS][WF_WHEEL_SLOTS]; /* (q) */
};

void wf_wheel_init(struct wf_wheel *w, int64_t now);
/* Arms an idle timer. True when it is now the earliest: whoever sleeps until wheel->next must be told. */
bool wf_wheel_add(struct wf_wheel *w, struct wf_timer *t, int64_t deadline);
void wf_wheel_cancel(struct wf_wheel *w, struct wf_timer *t);
/* Fires everything due at now; returns the number fired and refreshes w->next. */
int wf_wheel_expire(struct wf_wheel *w, int64_t now);

WF_INLINE void wf_timer_init(struct wf_timer *t, void (*fire)(struct wf_timer *))
{
	*t = (struct wf_timer){ .fire = fire };
	wf_list_init(&t->link);
}

#endif
