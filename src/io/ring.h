// SPDX-License-Identifier: Apache-2.0
/*
 * Waits for which there is no descriptor, but an operation of io_uring: without a kernel thread for each.
 *
 * Called by: linux/ring.c. A ring for futexes and children, and others for reads, whose submission may have to wait:
 * for a page of the buffer, for a file system. Each is made when first needed, and owned by one kernel thread.
 *
 *	op = (struct wf_ring_op){ what to do };
 *	ret = wf_ring_submit(kind, &op);               -ENOSYS: there is no ring, or it is full
 *	while (!wf_ring_park(&op, ..., &reason))
 *		reason says why; to give up: wf_ring_cancel(&op), which waits until it is over
 *	op.res
 *
 * Invariant: an operation lies on its thread's stack, so the thread does not go on before it is complete or was never
 * given to the kernel. Its result counts, whatever else happened meanwhile: a wake-up that the kernel has counted is
 * never thrown away.
 */
#ifndef WF_IO_RING_H
#define WF_IO_RING_H

#include "base/list.h"
#include "sched/thread.h"
#include "sys/uring.h"

enum wf_ring_kind {
	WF_RING_WAITS,
	WF_RING_READS,
};

struct wf_ring_op {
	struct wf_ring *ring;       /* (c) */
	struct wf_list link;        /* (q) to be submitted, or in the kernel; empty: done */
	struct wf_list cancel_link; /* (q) to be cancelled; or empty */
	struct wf_thread *thread;   /* (c) */
	enum sys_uring_op opcode;   /* (c) from here on: fields of the kernel's structure */
	int fd;
	uint32_t len, file_index;
	uint64_t addr, addr2, addr3;
	bool is_reached;   /* (c) scopes end the wait, too */
	int32_t res;       /* (q) -ECANCELED: given up before it came to anything */
	bool is_submitted; /* (q) */
	bool is_done;      /* (q) */
};

/* 0, or -ENOSYS. */
long wf_ring_submit(enum wf_ring_kind kind, struct wf_ring_op *op);
/* How many reads are under way by the ring that the next one would go to. */
uint32_t wf_ring_nr_reads(void);
/* Does the next one gain by it? nr_beside: others that wait for the disk. is_begun: the page cache reads already. */
bool wf_ring_takes_reads(uint32_t nr_beside, bool is_begun);
/* True: done. False: the deadline, or a signal or a scope may want the thread; *out says which. */
WF_PARKS bool wf_ring_park(struct wf_ring_op *op, enum wf_wait kind, uint64_t what,
			   int64_t deadline, enum wf_reason *out);
WF_PARKS void wf_ring_cancel(struct wf_ring_op *op, enum wf_wait kind, uint64_t what);

/* Everything under way ends, some of it with -ECANCELED, the kernel threads too, and there will be none any more. */
void wf_ring_stop(void);
/* In a fork child: the parent's rings are not ours. */
void wf_ring_forget(void);

#endif
