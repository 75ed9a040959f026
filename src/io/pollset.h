// SPDX-License-Identifier: Apache-2.0
/*
 * The epoll set: one for all workers. It knows no entry of the table; a tag says whose an event is.
 */
#ifndef WF_IO_POLLSET_H
#define WF_IO_POLLSET_H

#include <stdbool.h>
#include <stdint.h>

struct epoll_event;

/* 0, or -errno. */
int wf_pollset_init(void);
/* are_others: a process with the same table goes on using the set, so it stays open. */
void wf_pollset_forget(bool are_others);
bool wf_pollset_is(int fd);
/* Edge-triggered; in place of what was asked for before. An event comes at once if fd is ready already. 0, or -errno. */
int wf_pollset_add(int fd, uint32_t events, uint64_t tag);
void wf_pollset_remove(int fd);
/* The number of events, or -errno; below 0, timeout_ns means for ever. */
long wf_pollset_wait(struct epoll_event *events, int max, int64_t timeout_ns);

#endif
