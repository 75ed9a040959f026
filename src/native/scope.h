// SPDX-License-Identifier: Apache-2.0
/*
 * The scopes of the calling thread, for the other functions that the program calls.
 *
 * A function that waits, attached: park with WF_INTR | WF_REACHED; interrupted, ask wf_scopes_end(self->scopes, ...), if that
 * is not NULL. Natively: sleep no longer than wf_scopes_self()->until, and look now and then at wf_scopes_are_over().
 */
#ifndef WF_NATIVE_SCOPE_H
#define WF_NATIVE_SCOPE_H

#include "native/face.h"
#include "sched/scope.h"
#include "weft/scope.h"

/* Of the calling thread, whose they stay, ready for use. */
WF_FACE_CODE struct wf_scopes *wf_scopes_self(void);

/* The same, but maybe not ready for use yet: then there are none. */
WF_FACE_CODE struct wf_scopes *wf_scopes_peek(void);

/* Of libweft's own: a shield without a deadline, whatever groups the caller has open. */
WF_FACE_CODE void wf_scopes_shield(weft_scope *s, const char *name);

/*
 * Scopes that a fiber has opened, in force only while it runs; outside of them are those of whoever goes on with it, who is
 * another one each time. All zero: none.
 */
struct wf_scope_chain {
	struct wf_scope *top;  /* while it does not run: the innermost of its own, or NULL */
	struct wf_scope *link; /* what its outermost hangs on, or hung on */
	uint32_t nr_around;    /* while it runs: how many of the thread's scopes are not its own */
};

/*
 * left: of a fiber that is left, or NULL; entered: of the one that goes on, or NULL where its scopes are in force. sp: what lies
 * below is the program's no more.
 */
WF_FACE_CODE void wf_scopes_switch(struct wf_scope_chain *left, struct wf_scope_chain *entered,
				   uintptr_t sp);
/* The same of a fiber, or of the thread's own stack, whose scopes have stayed in force meanwhile. */
WF_FACE_CODE void wf_scopes_return(struct wf_scope_chain *to);

/*
 * Sleep on the word, as FUTEX_WAIT_BITSET does, and no longer than the caller's scopes allow, each time: -ETIMEDOUT,
 * -ECANCELED; or 0, -EAGAIN, -EINTR. It may return for nothing. Errno is kept.
 */
WF_FACE_CODE int wf_scopes_futex_wait(uint32_t *word, uint32_t expected, int64_t until);

/*
 * A thread's outermost scope, s, which it has opened in an earlier use and left by wf_scopes_leave_all(), is to be that of the next
 * one: made new by whoever starts that, before somebody can cancel it, and in force again by the thread.
 */
WF_FACE_CODE void wf_scopes_renew(weft_scope *s, const char *name);
WF_FACE_CODE void wf_scopes_enter(weft_scope *s);

/* The function of a thread has ended: aborts if it leaves a group behind; scopes that it has left open are closed. */
WF_FACE_CODE void wf_scopes_leave_all(const char *name);

#endif
