// SPDX-License-Identifier: Apache-2.0
/*
 * Habits, which the scheduler has learnt: small numbers that rise when a thing was seen again and fall when it was not.
 *
 * Each habit is a row. Its number lies with what it is about: a thread, a worker, a lock. Nothing but speed rests on any of
 * them, and a wrong guess costs what its row says, at most.
 *
 * Used by: the files that the rows name; tests/sim sets some.
 */
#ifndef WF_SCHED_HABIT_H
#define WF_SCHED_HABIT_H

#include "base/base.h"

enum wf_habit_fall {
	WF_FALLS_BY_ONE,
	WF_FALLS_TO_HALF,
	WF_FALLS_TO_A_QUARTER,
	WF_FALLS_TO_NOTHING
};

/*
 * WF_HABIT(name, rises by, how it falls, most, holds from)
 *
 *   HOG           thread: used a slice whole (preempt.c); falls in each tick in which it parks (park.c).
 *                 It gives way to a thread that is less of one when it wakes it. Wrong: a switch for each wake-up.
 *   PARKS_SOON    thread: parked within 20 us after it woke another (park.c); once it is sure, each eighth time counts.
 *                 The woken one stays on its worker, and nobody is woken to fetch it. Wrong: it waits for the slice's end.
 *   HURRIES       thread: its waker kept it waiting to the end of a slice (runq.c); falls with each wake-up.
 *                 Its wakers give way. Wrong: 200 switches.
 *   STAYED        thread: used a slice whole on this worker (balance.c); nothing once it moves.
 *                 It changes places with one of a worker that has as many. Wrong: caches, some 100 us.
 *   PEER_HERE     thread, worker: the peer took this processor when it was sent something (peer.h).
 *                 It is not moved in the middle of a slice. Wrong: an uneven load to the end of the slice.
 *   BRIEF_LOCK    lock: released within 300 ns of the wait's begin (gather.c: four steps of its rise), or found free by then.
 *                 Its contenders run on one worker. Wrong: a thief waits 20 us.
 *   SEARCH_PAYS   worker: work came while it lingered in a search (idle.c).
 *                 It lingers. Wrong: some microseconds of CPU before it sleeps.
 *   SPINS         worker: a slice ended at a pause instruction (preempt.c); falls with each other slice.
 *                 Slices are 2 ms. Wrong: 26 us of CPU for each.
 */
#define WF_HABITS                                                                                  \
	WF_HABIT(HOG, 2, WF_FALLS_BY_ONE, 15, 2)                                                   \
	WF_HABIT(PARKS_SOON, 1, WF_FALLS_TO_HALF, 15, 8)                                           \
	WF_HABIT(HURRIES, 200, WF_FALLS_BY_ONE, 200, 1)                                            \
	WF_HABIT(STAYED, 1, WF_FALLS_TO_NOTHING, 15, 12)                                           \
	WF_HABIT(PEER_HERE, 2, WF_FALLS_BY_ONE, 15, 8)                                             \
	WF_HABIT(BRIEF_LOCK, 1, WF_FALLS_TO_A_QUARTER, 15, 8)                                      \
	WF_HABIT(SEARCH_PAYS, 4, WF_FALLS_BY_ONE, 15, 1)                                           \
	WF_HABIT(SPINS, 16, WF_FALLS_BY_ONE, 16, 1)

enum wf_habit {
#define WF_HABIT(name, gain, fall, most, from) WF_HABIT_##name,
	WF_HABITS
#undef WF_HABIT
};

struct wf_habit_row {
	uint16_t gain, most, from;
	uint8_t fall;
};

static const struct wf_habit_row wf_habits[] = {
#define WF_HABIT(name, gain, fall, most, from) [WF_HABIT_##name] = { gain, most, from, fall },
	WF_HABITS
#undef WF_HABIT
};

/* The number after it was seen once more, so many times at once. */
WF_INLINE unsigned wf_habit_rise(enum wf_habit h, unsigned now, unsigned times)
{
	return WF_MIN(now + times * wf_habits[h].gain, (unsigned)wf_habits[h].most);
}

/* It was seen so often that it cannot rise. */
WF_INLINE bool wf_habit_is_sure(enum wf_habit h, unsigned now)
{
	return now >= wf_habits[h].most;
}

WF_INLINE unsigned wf_habit_fall(enum wf_habit h, unsigned now)
{
	switch (wf_habits[h].fall) {
	case WF_FALLS_BY_ONE:
		return now - (now > 0);
	case WF_FALLS_TO_HALF:
		return now / 2;
	case WF_FALLS_TO_A_QUARTER:
		return now / 4;
	default:
		return 0;
	}
}

WF_INLINE bool wf_habit_holds(enum wf_habit h, unsigned now)
{
	return now >= wf_habits[h].from;
}

#endif
