// SPDX-License-Identifier: Apache-2.0
/*
 * The events that are recorded, as rows of WF_EVENT(number, name, text), which each use of the list defines.
 *
 * Used by: trace.h (the numbers), trace.c and obs/inspect.c (the names), cmd/weft (the texts). The text follows the name in a
 * listing; $ and two letters stand for an argument, a or b, and how it is shown:
 *   d decimal   s signed   x hexadecimal   w kind of wait   c system call   r reason of a wake-up   h way of a hand-off
 *   t thread, 0 being the process   k worker by its number and 1, 0 being none
 * An argument that the text does not name is 0.
 *
 * The events say who has which worker when: RUN names the thread that had it until then as its own one, or 0 after the
 * scheduler's own context. A thread leaves its worker with PARK, EXIT, YIELD, PREEMPT, BIND, DIRECT or, by whoever takes it,
 * HANDOFF; after the last three it may come back by itself, which BACK says: on 0, it waits for a worker.
 */
#ifndef WF_TRACE_EVENT_LIST_H
#define WF_TRACE_EVENT_LIST_H

#define WF_EVENTS                                                                                  \
	WF_EVENT(SPAWN, "spawn", "of thread $ad")                                                  \
	WF_EVENT(EXIT, "exit", "")                                                                 \
	WF_EVENT(PARK, "park", "for $aw $bx")                                                      \
	WF_EVENT(UNPARK, "unpark", "of thread $ad: $br")                                           \
	WF_EVENT(RUN, "run", "of thread $ad on $bk")                                               \
	WF_EVENT(YIELD, "yield", "")                                                               \
	WF_EVENT(PREEMPT, "preempt", "at $ax")                                                     \
	WF_EVENT(STEAL, "steal", "of $bd from worker $ad")                                         \
	WF_EVENT(HANDOFF, "handoff", "of worker $ad, $bh")                                         \
	WF_EVENT(IDLE, "idle", "beside $ad others")                                                \
	WF_EVENT(SYSCALL, "syscall", "$ac $bx")                                                    \
	WF_EVENT(SIGNAL, "signal", "$ad to $bt")                                                   \
	WF_EVENT(HANDLER, "handler", "of signal $ad at $bx")                                       \
	WF_EVENT(KICK, "kick", "taken at $bx")                                                     \
	WF_EVENT(REST, "rest", "")                                                                 \
	WF_EVENT(RETURN, "return", "from $ac: $bs")                                                \
	WF_EVENT(DIRECT, "direct", "wait for $aw $bx")                                             \
	WF_EVENT(BACK, "back", "on $ak")                                                           \
	WF_EVENT(BIND, "bind", "off worker $ad")

#endif
