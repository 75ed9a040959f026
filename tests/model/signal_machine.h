// SPDX-License-Identifier: Apache-2.0
/*
 * The small machine of machine.h with the Linux side of signals on it: the real files of src/linux that deliver
 * them and the real kick (sched/preempt.c), under a kernel, a gate and a program that are models.
 *
 * A kick arrives at any step of its target. The program is C functions that make calls and steps; the few words
 * that stand for its instructions are told from handlers by their value.
 */
#ifndef WF_TESTS_SIGNAL_MACHINE_H
#define WF_TESTS_SIGNAL_MACHINE_H

#include "linux/abi.h"
#include "machine.h"
#include "model.h"

/* Two calls that return 0 once a handler has run, and block until then: one parks, one is real. And a yield. */
#define NR_PARK 500
#define NR_READ 501
#define NR_YIELD 502

void signal_machine_reset(uint32_t nr_workers);
/* A thread of the program with this mask, queued on that worker; or one with a kernel thread of its own. */
struct lx_thread *signal_thread(int worker, void (*program)(void *), uint64_t mask);
struct lx_thread *signal_bound_thread(void (*program)(void *), uint64_t mask);
/* handler(sig, info, context) with these flags. */
void signal_action(int sig, void (*handler)(int, void *, void *), uint64_t flags);

/* For strangers: another process sends, a timer of the process expires. */
void signal_from_outside(void *sig);
void signal_queue_from_outside(int sig, int value);
void signal_timer_expires(void *sig);
/* In the kernel, for the process. */
uint32_t signal_nr_pending(void);
/* The timer is for this thread. NULL: for the process. */
void signal_timer_for(struct lx_thread *t);
/* SIGCONT, once the process is stopped; and at any time. */
void signal_continue_stopped(void *arg);
void signal_continue_any_time(void *arg);
uint32_t signal_nr_stops(void);

/* In programs. A call, and an instruction that is none. */
long signal_call(long nr, uint64_t a, uint64_t b, uint64_t c);
void signal_step(void);
/* Spin until *flag is n. */
void signal_spin(const int *flag, int n);
long signal_send(struct lx_thread *t, int sig);
long signal_kill(int sig);
long signal_mask(int how, uint64_t set);
/* sigtimedwait(); without a time-out if that is negative. */
long signal_wait(uint64_t set, int64_t timeout_ns);
long signal_suspend(uint64_t mask);

/* Nothing runs any more: machine_check(), and nothing is pending anywhere. */
void signal_check(void);

#endif
