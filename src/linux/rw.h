// SPDX-License-Identifier: Apache-2.0
/* Reads and writes; see rw.c. */
#ifndef WF_LINUX_RW_H
#define WF_LINUX_RW_H

#include "io/fdtab.h"
#include "linux/msg.h"

/*
 * A blocking write of what is left of a vector after done bytes. Returns done and what else was written until a
 * signal or an error.
 */
WF_PARKS long lx_rw_write_rest(int fd, enum wf_fd_kind kind, const struct iovec_k *vec, size_t nr,
			       size_t done);
/* Bytes that a vector describes, or -EFAULT. */
long lx_rw_vector_bytes(const struct iovec_k *vec, size_t nr);

#endif
