// SPDX-License-Identifier: Apache-2.0
/* Channels, as programs call them; see weft/chan.h. */
#include "weft/chan.h"
#include "native/misuse.h"
#include "native/wait.h"
#include "sync/chan.h"

#include <errno.h>
#include <stdlib.h>

static inline struct wf_chan *of(const weft_chan *ch)
{
	return (struct wf_chan *)ch;
}

static WF_FACE_CODE const char *name_of(const struct wf_chan *ch)
{
	return ch->name ? ch->name : "(no name)";
}

static inline void check_size(const char *call, struct wf_chan *ch, size_t bytes)
{
	if (WF_UNLIKELY(bytes != ch->item_bytes))
		wf_misuse_of(ch, "%s: items of channel \"%s\" have %zu bytes, not %zu", call,
			     name_of(ch), ch->item_bytes, bytes);
}

WF_FACE weft_chan *weft_chan_new(size_t item_bytes, size_t capacity, const char *name)
{
	size_t bytes = wf_chan_bytes(item_bytes, capacity);
	const int kept = errno;
	struct wf_chan *ch = bytes ? aligned_alloc(WF_CACHE_LINE, WF_ALIGN_UP(bytes, WF_CACHE_LINE))
				   : NULL;

	errno = kept;
	if (ch)
		wf_chan_init(ch, item_bytes, capacity, name);
	return (weft_chan *)ch;
}

WF_FACE void weft_chan_free(weft_chan *ch)
{
	struct wf_thread *self = wf_face_enter();
	uint32_t nr = ch ? wf_chan_waiters(of(ch)) : 0;

	wf_face_leave(self);
	if (nr)
		wf_misuse_of(of(ch),
			     "weft_chan_free: channel \"%s\" is freed under waiting threads: %u",
			     name_of(of(ch)), nr);
	free(ch);
}

WF_FACE void weft_chan_close(weft_chan *ch)
{
	struct wf_thread *self = wf_face_enter();

	wf_watched_release(ch);
	wf_chan_close(self, of(ch));
	wf_face_leave(self);
}

WF_FACE int weft_chan_send_bytes(weft_chan *ch, const void *item, size_t bytes, weft_time until)
{
	struct wf_thread *self;
	int ret;

	check_size("weft_chan_send", of(ch), bytes);
	wf_watched_release(ch);
	WF_NATIVE_WAIT(self, ret, wf_chan_send(self, of(ch), item, until));
	wf_watched_acquire(ch);
	return ret;
}

WF_FACE int weft_chan_recv_bytes(weft_chan *ch, void *out, size_t bytes, weft_time until)
{
	struct wf_thread *self;
	int ret;

	check_size("weft_chan_recv", of(ch), bytes);
	wf_watched_release(ch);
	WF_NATIVE_WAIT(self, ret, wf_chan_recv(self, of(ch), out, until));
	wf_watched_acquire(ch);
	return ret;
}

WF_FACE size_t weft_chan_count(const weft_chan *ch)
{
	return wf_chan_count(of(ch));
}
