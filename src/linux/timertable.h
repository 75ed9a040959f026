// SPDX-License-Identifier: Apache-2.0
/*
 * The timers whose signals are ours to deliver, by their number.
 *
 * Numbers of the kernel grow with every timer that the process makes: a hash table, as large as there are timers.
 */
#ifndef WF_LINUX_TIMERTABLE_H
#define WF_LINUX_TIMERTABLE_H

#include "linux/abi.h"

struct lx_timer {
	int id, signo;  /* signo 0: a free place */
	uint32_t tid;   /* of the thread that it is for, 0: the process */
	int overrun;    /* of the last signal that was taken */
	uint32_t drain; /* the last that took a signal of it */
	/* Calls that set it, counted before (begun) and after (ended); clean: `ended` when its signals were last dropped. */
	uint32_t begun, ended, clean;
	/* On the CPU clock of a thread: */
	uint32_t clock_tid; /* whose time; 0: on another clock, all below is unused */
	bool signals;
	uint64_t value;
	int64_t next, interval; /* on that clock; next 0: not armed */
};

/* False: no memory. */
bool lx_timer_add(const struct lx_timer *fresh);
void lx_timer_remove(int id);
/* Between these two nothing may wait; what was found is only good until the second. */
void lx_timer_lock(void);
void lx_timer_unlock(void);
/* Under the lock: NULL if there is none. */
struct lx_timer *lx_timer_find(int id);
/* In a fork child, which has no timers. */
void lx_timer_table_forget(void);

/* The tid that a kernel timer's signal is for, or 0: the process. */
uint32_t lx_timer_target(int timer_id);
/* A timer's signal was taken from a queue: timer_getoverrun() tells what it said. */
void lx_timer_taken(const struct wf_siginfo *info);
/* By the door, which empties a queue that a fast timer fills: a second signal of it came after the beginning. */
void lx_timer_drain_begin(void);
bool lx_timer_is_back(const struct wf_siginfo *info);

#endif
