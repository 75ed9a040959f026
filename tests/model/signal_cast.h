// SPDX-License-Identifier: Apache-2.0
/* The cast of the signal models: handlers that count, and threads that wait for them in every way. */
#ifndef WF_TESTS_SIGNAL_CAST_H
#define WF_TESTS_SIGNAL_CAST_H

#include "signal_machine.h"

#include <signal.h>

#define ONE lx_bit(SIGUSR1)
#define TWO lx_bit(SIGUSR2)
#define RT 40

extern struct lx_thread *target, *other;
/* How often the handlers ran, and sigwait returned; nr_expired: times that a timer's signal stood for. */
extern uint32_t only_tid; /* not 0: nobody else may get SIGUSR1 */
extern int64_t
	one_took; /* until the handler of SIGUSR1 ran: time passes only while nobody has anything to do */
extern int nr_one, nr_two, nr_rt, nr_expired, nr_continued;

/* A new execution: handlers with SA_RESTART for SIGUSR1, SIGUSR2, RT and SIGCONT. */
void cast_begin(uint32_t nr_workers);
/* The handler of SIGUSR1 ends only after that of SIGUSR2, and makes no call. */
void cast_one_waits_for_two(void);

/* Strangers: SIGUSR1 to the thread t; SIGUSR1, then SIGUSR2; RT three times; the end of its slice. */
void posts_one(void *t);
void posts_one_to_tid(void *tid);
void posts_both(void *t);
void posts_three(void *t);
void ends_slice(void *worker);

/* Programs. Spin until SIGUSR1 was handled, after a call; park or read until then, with or without SA_RESTART. */
void spins(void *self);
void calls_then_spins(void *self);
void spins_for_both(void *self);
void parks(void *self);
void parks_on(void *self);
void reads(void *self);
void reads_on(void *self);
void suspends(void *self);
/* Blocked at first. */
void unblocks(void *self);
void unblocks_later(void *self);
/* sigwait; the second only looks; the third waits for a millisecond. */
void waits(void *self);
void waits_shortly(void *self);
void waits_a_while(void *self);
void ends(void *self);

/* signal_check(), and nothing came twice. */
void cast_check(void);

#endif
