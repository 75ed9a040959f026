// SPDX-License-Identifier: Apache-2.0
/*
 * A process that owns all that one run of a program starts: it can tell what they used, and leaves nothing.
 *
 * Used by: compare/, bench/.
 */
#ifndef WF_KEEPER_H
#define WF_KEEPER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct wf_keeper {
	pid_t pid;     /* the keeper */
	pid_t program; /* what it runs; the leader of a session of its own */
	int report;    /* becomes readable when all is over */
};

struct wf_keeper_report {
	int64_t wall_ns; /* until the program ended */
	int64_t cpu_ns;
	int64_t switches;
	int64_t memory_bytes;
	int status;
};

/*
 * Start argv in a process that adopts and ends all that it leaves behind. -1 with errno. The program's standard output and
 * error go to the two descriptors.
 */
int wf_keeper_start(struct wf_keeper *out, char **argv, int in, int out_fd, int err_fd);
/* Tell the program to end (SIGTERM), and after a while end it. */
void wf_keeper_stop(const struct wf_keeper *k);
/* When `report` is readable. False: the keeper was killed. The keeper is waited for. */
bool wf_keeper_take(struct wf_keeper *k, struct wf_keeper_report *out);
/* End everything at once. */
void wf_keeper_kill(struct wf_keeper *k);
/* Kernel threads of the program's session now. all: of its children, too, which takes longer. */
int wf_keeper_kthreads(const struct wf_keeper *k, bool all);

#endif
