// SPDX-License-Identifier: Apache-2.0
/*
 * The state that Linux keeps of a thread, for one that runs one function after another and is a new thread each time; see
 * native/shell.h.
 */
#ifndef WF_LINUX_SHELL_H
#define WF_LINUX_SHELL_H

#include "linux/abi.h"

/* A new thread has this from the one that spawns it. */
struct lx_shell_heritage {
	uint64_t mask;
	int64_t timer_slack_ns;
	int32_t nice;
	char name[16];
};

/* False: a new thread has more from the caller than the next one writes to out. */
bool lx_shell_may_inherit(const struct lx_thread *self);
void lx_shell_inherit(const struct lx_thread *self, struct lx_shell_heritage *out);
/* Of the caller: its function has left nothing that the next one would find. */
bool lx_shell_is_plain(const struct lx_thread *self);
/* Of the caller, whose function has returned: the stack that it has used goes back, unless that is little. */
void lx_shell_leave(struct lx_thread *self);
/*
 * The caller runs nothing: no signal is for it. A spin lock is taken between the two: that is the fence between the store of its mask
 * and the look for signals that were sent to it before.
 */
void lx_shell_rest(struct lx_thread *self);
void lx_shell_pass_on(struct lx_thread *self);
/* The caller is a new thread. */
void lx_shell_begin(struct lx_thread *self, const struct lx_shell_heritage *h);
/* The caller ends, and lx_config.on_thread_gone is told of what when it has. */
WF_INLINE void lx_shell_end(struct lx_thread *self, void *what)
{
	self->ended = what;
}
/* A wait for that word is shown as a wait for self's end. NULL: nobody waits for that in this way. */
WF_INLINE void lx_shell_show_join(struct lx_thread *self, uint32_t *joined)
{
	wf_store_release(&self->joined, joined);
}

#endif
