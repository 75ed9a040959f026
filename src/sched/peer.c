// SPDX-License-Identifier: Apache-2.0
/* Whether peers are on the same processor; see peer.h. */
#include "sched/peer.h"
#include "sys/rseq.h"

/* The kernel looks whether it is sound, also where nobody is in it. */
static const struct {
	uint32_t signature, abort;
} nowhere = { .signature = SYS_RSEQ_SIGNATURE };

const struct sys_rseq_cs wf_peer_sequence = {
	.start = (uintptr_t)&wf_peer_sequence,
	.length = 1,
	.abort = (uintptr_t)&nowhere.abort,
};

static long request(struct wf_kthread *k, int flags)
{
	return sys4(__NR_rseq, &k->rseq, SYS_RSEQ_BYTES, flags, SYS_RSEQ_SIGNATURE);
}

void wf_peer_watch(struct wf_kthread *k)
{
	k->rseq = (struct sys_rseq){ 0 };
	k->is_watched = request(k, 0) == 0;
}

void wf_peer_unwatch(struct wf_kthread *k)
{
	if (k->is_watched)
		(void)request(k, SYS_RSEQ_UNREGISTER);
}
