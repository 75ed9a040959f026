// SPDX-License-Identifier: Apache-2.0
/* The threads that were woken for a worker from outside; see inbox.c. */
#ifndef WF_SCHED_INBOX_H
#define WF_SCHED_INBOX_H

struct wf_thread;
struct wf_worker;

/* From anywhere. */
void wf_inbox_push(struct wf_worker *w, struct wf_thread *t);
/* Everything, from anywhere. Oldest first. */
struct wf_thread *wf_inbox_take(struct wf_worker *w);

#endif
