// SPDX-License-Identifier: Apache-2.0
/*
 * Expectations of a program under weft beside the verdict: its locks, where its threads wait now, how large stacks and how
 * many workers are worth trying. Used by: report.c.
 */
#ifndef WF_EXPECT_H
#define WF_EXPECT_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct wf_expect {
	pid_t pid;     /* 0: of a file, which nobody runs */
	bool is_woven; /* the process is under weft: its kernel threads are workers */
	size_t nr_threads, nr_stacks;
	uint64_t stack_bytes, used_bytes; /* of the stack that was used most; 0: not known */
	uint64_t proposed_bytes;          /* 0: as it is */
	unsigned int cpus, running;    /* that it may use; threads that ran at one time, at most */
	unsigned int proposed_workers; /* 0: as it is */
	/* in words; "" where there is nothing to say */
	char locks[160], now[400], stack[240], workers[200];
};

/* A number that is a process: its pid. Else 0. */
pid_t wf_expect_pid(const char *name);

/* A function that the program imports: true if it is of a lock. */
void wf_expect_import(struct wf_expect *e, const char *name);

/* Fills the rest; takes 0.2 s for a process. pid: 0, or that of wf_expect_pid(). */
void wf_expect_look(struct wf_expect *e, pid_t pid);

#endif
