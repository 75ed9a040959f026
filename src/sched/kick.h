// SPDX-License-Identifier: Apache-2.0
/* The kick, where it is sent; preempt.c has where it arrives. */
#ifndef WF_SCHED_KICK_H
#define WF_SCHED_KICK_H

struct wf_kthread;

/*
 * The signal that interrupts a kernel thread of ours, and wakes the door: the number that glibc keeps for
 * set*id broadcasts, which never reaches the kernel under weft. No number is taken from the program.
 */
#define WF_SIG_KICK 33
/*
 * The same when the kernel queues no more real-time signals for the user: SIGSYS, which every kernel thread
 * leaves open as it comes from seccomp filters. Those say so in its siginfo, and other processes who they are.
 */
#define WF_SIG_KICK_SPARE 31

/* Interrupt kernel thread k at whatever it does. */
void wf_kick(struct wf_kthread *k);
/* The same, also when another kick is on its way. */
void wf_kick_anyway(struct wf_kthread *k);

#endif
