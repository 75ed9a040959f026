// SPDX-License-Identifier: Apache-2.0
/* Scopes at the border to the program; see scope.h. */
#include "linux/scope.h"

static uintptr_t
	once_site; /* (a) behind the instruction by which libc makes futex waits that pthread_cancel() ends */

bool lx_scope_knows_once(void)
{
	return wf_load_relaxed(&once_site) != 0;
}

long lx_scope_error(const struct wf_frame *f)
{
	struct wf_scopes *sc = wf_self()->scopes;

	if (WF_LIKELY(!sc) || !sc->top || !lx_scope_reaches((long)f->nr))
		return 0;
	return wf_scopes_end(sc, (uint32_t)f->nr, WF_ARG0(f));
}

bool lx_scope_reaches_futex(const struct wf_frame *f)
{
	struct wf_scopes *sc = wf_self()->scopes;

	if (WF_UNLIKELY(sc->is_probing))
		wf_store_relaxed(&once_site, f->next);
	if (!sc->top)
		return false;
	return f->next == wf_load_relaxed(&once_site) || (uintptr_t)sc->wait_word == WF_ARG0(f);
}

void lx_scope_begin_futex(const struct wf_frame *f)
{
	struct wf_scopes *sc = wf_self()->scopes;

	sc->in_wait = (uintptr_t)sc->wait_word == WF_ARG0(f);
	sc->in_once = !sc->in_wait;
}

void lx_scope_end_futex(void)
{
	struct wf_scopes *sc = wf_self()->scopes;

	sc->in_wait = sc->in_once = false;
}

bool lx_scope_ends_futex(const struct lx_thread *self)
{
	struct wf_scopes *sc = self->base.scopes;

	return sc->in_wait ? wf_scope_error_of(sc, wf_scopes_top_of(sc)) != 0
			   : wf_scopes_until_once(sc) <= sc->now();
}

long lx_scope_ended_futex(struct lx_thread *self, const uint32_t *word)
{
	struct wf_scopes *sc = self->base.scopes;

	if (sc->in_wait)
		return wf_scopes_end(sc, WF_SCOPE_BY_WAIT, 0);
	return wf_scopes_end_once(sc, __NR_futex, (uintptr_t)word) ? -ETIMEDOUT : 0;
}

void lx_scope_adopt(struct lx_thread *main)
{
	struct wf_scopes *sc = wf_scopes_of_main;

	main->base.scopes = sc;
	if (sc)
		wf_scopes_adopt(sc, &main->base);
}

void lx_scope_thread_end(struct lx_thread *self)
{
	struct wf_scopes *sc = self->base.scopes;

	if (!sc)
		return;
	if (sc->timer.fire)
		wf_wheel_cancel(&wf_rt.wheel, &sc->timer);
	sc->timer.fire = NULL;
	wf_store_relaxed(&sc->armed, WF_NEVER);
	self->base.scopes = NULL;
}

void lx_scope_forget(struct lx_thread *self)
{
	wf_scopes_of_main = self->base.scopes;
	if (wf_scopes_of_main)
		wf_scopes_forget(wf_scopes_of_main);
}
