// SPDX-License-Identifier: Apache-2.0
/*
 * Making pthreads: what a program may ask of one, the classes of those that run one function after another, and the maker, which makes
 * them when nobody else could. The program's code, on top of libc's threads.
 *
 * Called by: thread.c.
 */
#ifndef WF_NATIVE_MAKE_H
#define WF_NATIVE_MAKE_H

#include "native/shell.h"

/* 0; -EINVAL. out: all that this library knows of. */
WF_FACE_CODE int wf_make_read_opts(const struct weft_thread_opts *from,
				   struct weft_thread_opts *out);
/* -1: none, for that stack. */
WF_FACE_CODE int wf_make_class(const struct weft_thread_opts *o);

/* Without room for a pthread those of other classes that rest end. */
enum wf_make_try {
	WF_MAKE_ONCE,
	WF_MAKE_WAITS, /* and tries again when they may be gone: some milliseconds */
};
/*
 * A pthread that runs body of a struct wf_shell, for given, or called to the shelf. 0; -EAGAIN, -EINVAL. The shell is given back
 * by wf_make_end(), in the pthread's last moments, or by the caller of a pthread that has refused to begin.
 */
WF_FACE_CODE int wf_make_shell(const struct wf_shell *like, size_t stack_bytes,
			       enum wf_make_try how, void *(*body)(void *), pthread_t *out_thread);
/* For a shelf where t or nothing of the caller's is queued; with t it waits. -EAGAIN: t will not run. */
WF_FACE_CODE int wf_make_called(int shell_class, struct wf_shelf *shelf, struct weft_thread *t,
				void *(*body)(void *));
/* Of a shell that ends. */
WF_FACE_CODE void wf_make_end(struct wf_shell *s);

/* There is a maker from now on, to make pthreads that run body; -EAGAIN: there is no room for it. Cheap if it is there. */
WF_FACE_CODE int wf_make_maker(void *(*body)(void *));

/* It was made by this process, and not by one that has forked it. */
WF_FACE_CODE bool wf_make_is_ours(const struct wf_shell *s);
/* In a fork child: there are none. */
WF_FACE_CODE void wf_make_forget(void);

#endif
