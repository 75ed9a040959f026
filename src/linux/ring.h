// SPDX-License-Identifier: Apache-2.0
/* Waits that epoll knows nothing of, by the ring instead of on a kernel thread each; see ring.c. */
#ifndef WF_LINUX_RING_H
#define WF_LINUX_RING_H

#include "linux/abi.h"

/*
 * -ENOSYS from these four: not by a ring, make the real call. As FUTEX_WAIT_BITSET on a shared word, once its
 * value was seen to be val:
 */
WF_PARKS long lx_ring_futex(uint32_t *addr, uint32_t val, uint32_t mask, int64_t deadline);
/* As futex_waitv() on nr shared words, once items was found to be well-formed. */
WF_PARKS long lx_ring_vector(const void *items, uint32_t nr, int64_t deadline);
/* Until waitid(which, id, options) would find something, or that there is nothing to be found: 0, or -ERESTARTSYS. */
WF_PARKS long lx_ring_child(int which, int id, int options);
/* A read from a file at a place, from the disk: how much of it, or -ENOSYS. is_begun: into the page cache, already. */
WF_PARKS long lx_ring_read(int fd, void *buf, size_t len, int64_t at, bool is_begun);

/* Some are under way; or all are to be. */
bool lx_ring_has_reads(void);

/* The program forbids itself system calls, in all its kernel threads. */
void lx_ring_end(void);

#endif
