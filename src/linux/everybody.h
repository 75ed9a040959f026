// SPDX-License-Identifier: Apache-2.0
/*
 * A call that every kernel thread of ours makes, exactly once: what Linux keeps for each of them and a program means for
 * all of it.
 */
#ifndef WF_LINUX_EVERYBODY_H
#define WF_LINUX_EVERYBODY_H

#include "linux/abi.h"

struct lx_everybody {
	long nr, args[6];  /* what they lead to stays as it is until all have made it */
	bool is_own_state; /* the caller may differ from the rest, and their answers from its own */
};

/*
 * The caller makes the call, then all others do, and all have when this returns. If it fails for the caller nobody else
 * is asked. Returns what the caller's call returned, and in *out_seq which request it was.
 * Between lock and unlock.
 */
long lx_everybody_make(const struct lx_everybody *call, uint32_t *out_seq);
/* The result of this call on the caller's kernel thread; other if that has made a later one. */
long lx_everybody_answer_of(uint32_t seq, long other);

/* One at a time. Nobody kicks for a request while it is held. */
void lx_everybody_lock(void);
void lx_everybody_unlock(void);

/* By k itself when it is kicked, or new: make the call that is asked for, if there is one. */
void lx_everybody_answer(struct wf_kthread *k);
void lx_everybody_forget(void);

/*
 * The caller is the only thread that the program has left, so what it does to itself holds for the whole process. Stays
 * true until the caller itself makes a thread.
 */
WF_INLINE bool lx_is_alone(void)
{
	return wf_load_acquire(&lx.nr_threads) == 1;
}

/* For a caller that is alone: the call, by everybody; the same for the call that f asks for. */
WF_PARKS long lx_everybody_request(const struct lx_everybody *call);
WF_PARKS long lx_everybody_call(const struct wf_frame *f, bool is_own_state);

#endif
