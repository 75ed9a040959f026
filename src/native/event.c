// SPDX-License-Identifier: Apache-2.0
/* Events, as programs call them; see weft/event.h. */
#include "weft/event.h"
#include "native/wait.h"
#include "sync/event.h"

#include <errno.h>

_Static_assert(sizeof(weft_event) == sizeof(struct wf_sync_event), "struct weft_event");

static inline struct wf_sync_event *of(const weft_event *e)
{
	return (struct wf_sync_event *)e;
}

WF_FACE void weft_event_set(weft_event *e)
{
	struct wf_thread *self = wf_face_enter();

	wf_watched_release(e);
	wf_event_set(self, of(e));
	wf_face_leave(self);
}

WF_FACE void weft_event_clear(weft_event *e)
{
	struct wf_thread *self = wf_face_enter();

	wf_event_clear(of(e));
	wf_face_leave(self);
}

WF_FACE bool weft_event_is_set(const weft_event *e)
{
	if (!wf_event_is_set(of(e)))
		return false;
	wf_watched_acquire((void *)e);
	return true;
}

WF_FACE int weft_event_wait(weft_event *e, weft_time until)
{
	struct wf_thread *self;
	int ret;

	WF_NATIVE_WAIT(self, ret, wf_event_wait(self, of(e), until));
	if (ret == 0)
		wf_watched_acquire(e);
	return ret;
}
