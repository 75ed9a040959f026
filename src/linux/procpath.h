// SPDX-License-Identifier: Apache-2.0
/*
 * Paths below /proc that name threads, and what is found there: the kernel knows none of ours.
 */
#ifndef WF_LINUX_PROCPATH_H
#define WF_LINUX_PROCPATH_H

#include "linux/abi.h"

enum lx_proc_kind {
	LX_PROC_OTHER,  /* none of our business */
	LX_PROC_TASKS,  /* the directory of all threads */
	LX_PROC_THREAD, /* something of one thread */
	LX_PROC_GROUP,  /* a file of the process in which its threads show */
	LX_PROC_LINK,   /* thread-self itself */
};

#define LX_PROC_REST 64

struct lx_proc_path {
	enum lx_proc_kind kind;
	struct lx_thread *t; /* LX_PROC_THREAD */
	char rest
		[LX_PROC_REST]; /* what comes after the thread or the process; "" for the directory itself */
};

/* The file that user_path means; relative to dirfd if that is a directory of all threads. */
void lx_proc_parse(struct lx_proc_path *p, int dirfd, const char *user_path);

/* The same call for what the path stands for in the kernel. */
WF_PARKS long lx_proc_call(struct wf_frame *f, int arg, const struct lx_proc_path *p);
/* The same for a call that opens something of a thread's. */
WF_PARKS long lx_proc_open(struct wf_frame *f, int arg, const struct lx_proc_path *p, bool writes);

#endif
