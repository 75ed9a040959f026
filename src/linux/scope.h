// SPDX-License-Identifier: Apache-2.0
/*
 * Which calls the scopes of a thread end, and with what. See sched/scope.h.
 *
 * Called by: whatever waits and is ended by signals, which is what scopes end; dispatch.c and sigdeliver.c at a call's exit.
 *
 * A wait that is ended returns what it would for a signal. Where no handler is due that becomes the scope's error.
 */
#ifndef WF_LINUX_SCOPE_H
#define WF_LINUX_SCOPE_H

#include "linux/sigwant.h"
#include "sched/scope.h"

/* Locks are made of futexes, and a lock that is not to be had for lack of time is no lock; but see lx_scope_is_once(). */
WF_INLINE bool lx_scope_reaches(long nr)
{
	const long futex_waitv = 449, futex_wait = 455;

	return nr != __NR_futex && nr != futex_waitv && nr != futex_wait;
}

WF_INLINE bool lx_scope_is_over(struct lx_thread *self)
{
	return WF_UNLIKELY(self->base.scopes != NULL) && wf_scopes_are_over(self->base.scopes);
}

/* Is a wait to end that signals and scopes end? */
WF_INLINE bool lx_scope_stops(struct lx_thread *self)
{
	return lx_signal_is_waiting(self) || lx_scope_is_over(self);
}

/* The error of the call that f is, which was interrupted: -ETIMEDOUT, -ECANCELED; 0: by no scope. */
long lx_scope_error(const struct wf_frame *f);

/*
 * The waits of pthread_cond_wait(), sem_wait(), pthread_join(): those that pthread_cancel() ends. Each scope ends one of
 * them, for who ignores it must not loop, and libc knows only one error there: ETIMEDOUT. And those of libweft's own, which
 * scopes end each time. f: is one of either kind. Then around it:
 */
bool lx_scope_reaches_futex(const struct wf_frame *f);
void lx_scope_begin_futex(const struct wf_frame *f);
void lx_scope_end_futex(void);

/* Is the caller in one of these? */
WF_INLINE bool lx_scope_in_futex(const struct lx_thread *self)
{
	const struct wf_scopes *sc = self->base.scopes;

	return WF_UNLIKELY(sc != NULL) && (sc->in_once || sc->in_wait);
}

/* Where those are that a scope ends once has been found out, by a wait with is_probing. */
bool lx_scope_knows_once(void);

/* It was interrupted: does a scope end it? Notes nothing, as it may turn out that it was woken meanwhile. */
bool lx_scope_ends_futex(const struct lx_thread *self);
/* It was interrupted: what it returns, -ETIMEDOUT or -ECANCELED; 0: no scope has ended it. */
long lx_scope_ended_futex(struct lx_thread *self, const uint32_t *word);

/* The first thread takes over what the program has opened before; the caller ends; becomes the only one of a child. */
void lx_scope_adopt(struct lx_thread *main);
void lx_scope_thread_end(struct lx_thread *self);
void lx_scope_forget(struct lx_thread *self);

#endif
