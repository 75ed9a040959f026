// SPDX-License-Identifier: Apache-2.0
/*
 * An order ends the rest of a shell or of the maker. So does a signal: libc changes users and groups by one to each pthread, and waits
 * for its handler.
 *
 *	the pthread                                the one that gives it an order
 *	wf_park_begin(WF_INTR, ...)
 *	put yourself where you are found
 *	if (wf_park(WF_NEVER) != WF_WAKE_EVENT)    take it from there: one of all that try has it
 *		take yourself from there, or           write down what it is to do
 *		wf_order_await()                       wf_order_give()
 *
 * Called by: shell.c, maker.c. Invariant: the one that took the pthread from there wakes it once, and no later wait of it; the pthread
 * does not go on before. Either that wake-up comes in time, or it finds a pthread that a signal has woken: that one cannot take itself
 * from there any more, and waits for the order, and each of the two looks for the other after it has said that it is there.
 */
#ifndef WF_NATIVE_ORDER_H
#define WF_NATIVE_ORDER_H

#include "sched/park.h"

struct wf_order {
	uint32_t state; /* (a) */
};

/* The caller has taken t from where it rests, and has stored what it is to do. */
void wf_order_give(struct wf_thread *t, struct wf_order *o);
/* A signal has woken the caller, and somebody else has it. */
WF_PARKS void wf_order_await(struct wf_order *o);

#endif
