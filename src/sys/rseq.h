// SPDX-License-Identifier: Apache-2.0
/* Restartable sequences, rseq(2), as the kernel has them: the oldest form, of 32 bytes. */
#ifndef WF_SYS_RSEQ_H
#define WF_SYS_RSEQ_H

#include "base/base.h"

#define SYS_RSEQ_BYTES 32
#define SYS_RSEQ_UNREGISTER 1
#define SYS_RSEQ_SIGNATURE 0x53053053u /* glibc's on x86: an area is known by it, too */

struct sys_rseq {
	uint32_t cpu_id_start, cpu_id;
	/* (a) struct sys_rseq_cs *; the kernel stores NULL when it takes the processor away outside of the sequence */
	uint64_t sequence;
	uint32_t flags, node_id, mm_cid, unused;
} WF_ALIGNED(SYS_RSEQ_BYTES);

struct sys_rseq_cs {
	uint32_t version, flags;
	uint64_t start, length, abort; /* four bytes before the last there is the signature */
} WF_ALIGNED(32);

_Static_assert(sizeof(struct sys_rseq) == SYS_RSEQ_BYTES, "the kernel's");
_Static_assert(sizeof(struct sys_rseq_cs) == 32, "the kernel's");

#endif
