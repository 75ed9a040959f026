// SPDX-License-Identifier: Apache-2.0
/*
 * A small machine for the real scheduler: workers, kernel threads (virtual CPUs of the checker), a door, a
 * poller and threads that run C functions. Used by the model tests and by tests/sim.
 */
#ifndef WF_TESTS_MACHINE_H
#define WF_TESTS_MACHINE_H

#include "sched/clock.h"
#include "sched/idle.h"
#include "sched/inbox.h"
#include "sched/insys.h"
#include "sched/monitor.h"
#include "sched/park.h"
#include "sched/preempt.h"
#include "sched/rate.h"
#include "sched/runtime.h"
#include "sched/worker.h"

/* In setup(), in this order. Workers start vacant. */
void machine_reset(uint32_t nr_workers);
/* A kernel thread that carries worker w, or a spare (NULL). */
struct wf_kthread *machine_kthread(struct wf_worker *w);
/* The main kernel thread: runs fn, never threads. */
struct wf_kthread *machine_door(void (*fn)(void *), void *arg);
/* One that runs fn, which gets its structure, and never threads. */
struct wf_kthread *machine_helper(void (*fn)(void *));
/* A kernel thread that the runtime does not know. */
void machine_stranger(void (*fn)(void *), void *arg);
/* A thread that runs fn(arg) and ends: READY, on no queue. */
struct wf_thread *machine_thread(void (*fn)(void *), void *arg);
/* Queue it where it starts: on w. */
void machine_queue(struct wf_worker *w, struct wf_thread *t);

/* One poll() ends, although nobody woke it: a descriptor or a signal. */
void machine_event(void);
/* For the door: sleep until kicked or until then; true when kicked. */
bool machine_sleep_at_door(int64_t until);
/* A door that looks when the monitor asks for it. */
void machine_monitor(void *arg);

/*
 * The running thread's direct wait, if it may begin one: until a kick finds its attention word set, or is_over. False: it
 * may not.
 */
bool machine_wait_directly(bool (*is_over)(void *), void *arg, int64_t until);

/* The running thread is in a call until then: true; or until a kick finds its attention word set. */
bool machine_wait_in_call(bool (*is_over)(void *), void *arg);

/* No further kernel thread can be made. Set after machine_reset(). */
extern bool machine_is_full;

/* The running thread computes until then, and is preempted meanwhile. */
void machine_compute(bool (*is_over)(void *), void *arg);

/* Would a kick end what the caller's kernel thread does? */
bool machine_is_kicked(void);

/* How far apart two looks at the cycle counter are; 0: at random. */
extern uint64_t machine_cycles_per_look;
/* How often the kernel was asked to yield. */
uint32_t machine_nr_yields(void);
/* Set before machine_reset(): the size of a thread's object. After it: what answers system calls, NULL: kicks count. */
extern size_t machine_object_bytes;
extern long (*machine_kernel)(long nr, long a, long b, long c, long d);
void machine_thread_exited(struct wf_thread *t);
/* After machine_reset(): is told of each clone, which becomes that CPU, at the moment when it is made. */
extern void (*machine_cloned)(int cpu);

uint32_t machine_nr_dead(void);
/* Nothing can run any more: everything ended, nothing is queued, every worker and token is where it belongs. */
void machine_check(void);

#endif
