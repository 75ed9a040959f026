// SPDX-License-Identifier: Apache-2.0
/*
 * USDT probes: places that bpftrace, perf, SystemTap and gdb find by name in the library, and instrument.
 *
 * Called by: trace.c, with each event. A probe is a nop and a note in the file (.note.stapsdt, as <sys/sdt.h> writes it); all
 * have one semaphore, wf_trace.probes, which whoever uses a probe counts up. It is tested together with the word of the rings,
 * so that off costs the one branch that is there anyhow.
 *
 *   weft:thread_new     the new thread, the one that makes it
 *   weft:thread_run     the thread
 *   weft:thread_park    the thread, kind of wait (enum wf_wait), what
 *   weft:thread_unpark  the woken thread, reason (enum wf_wake), the one that wakes it
 *   weft:thread_exit    the thread
 *   weft:preempt        the thread, where it was
 *   weft:handoff        the worker, in which way (enum wf_handoff), the thread
 *   weft:call           the thread, number of the system call, its first argument
 *   weft:signal         signal, the thread that it is for (0: the process), the one that sends it
 *
 * Threads are numbers, as gettid() tells them; 0: the runtime itself. Names and arguments are an interface: what is there
 * stays.
 */
#ifndef WF_TRACE_PROBES_H
#define WF_TRACE_PROBES_H

#include <stdint.h>

/* The probe of that event, if it has one. tid: of the thread that ran. */
void wf_probes_fire(uint32_t event, uint64_t tid, uint64_t a, uint64_t b);

#endif
