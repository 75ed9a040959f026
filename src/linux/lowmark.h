// SPDX-License-Identifier: Apache-2.0
/*
 * Reads from a stream that wait for more than the first bytes: MSG_WAITALL, and sockets with a low-water mark
 * (SO_RCVLOWAT). Attempts that do not wait would take less.
 *
 * Called by: sock.c, rw.c.
 */
#ifndef WF_LINUX_LOWMARK_H
#define WF_LINUX_LOWMARK_H

#include "linux/fdwait.h"
#include "linux/msg.h"

/* (a) Some socket may have a low-water mark. */
extern uint32_t lx_lowmark_any;

size_t lx_lowmark_ask(int fd, uint64_t flags);

/* How many bytes a read with these flags waits for; 0: for whatever comes. */
WF_INLINE size_t lx_lowmark_wanted(int fd, uint64_t flags)
{
	if (WF_LIKELY(!(flags & MSG_WAITALL) && !wf_load_relaxed(&lx_lowmark_any)))
		return 0;
	return lx_lowmark_ask(fd, flags);
}

/*
 * Until *wanted bytes have come, or the end, an error or a signal; no more than len. A part is returned as it is.
 * *wanted: what is still to come.
 */
WF_PARKS long lx_lowmark_receive(struct lx_fdwait *w, char *buf, size_t len, long flags,
				 size_t *wanted);
WF_PARKS long lx_lowmark_receive_vector(struct lx_fdwait *w, const struct iovec_k *vec, size_t nr,
					size_t wanted);
/* read() and readv() of a socket with such a mark. */
WF_PARKS long lx_lowmark_read(struct wf_frame *f);

#endif
