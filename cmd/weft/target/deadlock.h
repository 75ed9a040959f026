// SPDX-License-Identifier: Apache-2.0
/*
 * Threads that wait for one another in a circle, over mutexes and joins.
 *
 * Used by: dump/print.c. Says nothing about semaphores, conditions and descriptors: nobody owns those.
 */
#ifndef WF_TARGET_DEADLOCK_H
#define WF_TARGET_DEADLOCK_H

#include "target/wait.h"

/* Calls found() for each circle, with its threads in the order of waiting. */
void wf_deadlock_find(const struct wf_threads *s, struct wf_waits *w,
		      void (*found)(const struct wf_dump_thread *const *circle, size_t nr,
				    void *arg),
		      void *arg);

#endif
