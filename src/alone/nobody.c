// SPDX-License-Identifier: Apache-2.0
/*
 * The functions that the objects of libweft ask of the scheduler and of linux/ for a thread of weft's, where there is none.
 *
 * wf_face_enter() answers NULL everywhere, so that nobody comes to those functions that end the process here. Each of them is the
 * work of a port; src/arch/arch.h has the order. The link of the library is the judge of whether one is lacking.
 */
#include "base/die.h"
#include "linux/bind.h"
#include "linux/pollwait.h"
#include "linux/scope.h"
#include "native/fresh.h"
#include "native/own.h"
#include "native/joiner.h"
#include "native/maker.h"
#include "native/shell.h"
#include "native/turn.h"
#include "sched/idle.h"
#include "sched/park.h"
#include "sched/self.h"

#include <errno.h>

struct wf_runtime wf_rt;
struct lx_config lx_config;

/* --- for a kernel thread that is not weft's --- */

struct wf_thread *wf_self_find(void)
{
	return NULL;
}

struct wf_kthread *wf_self_come_in(void)
{
	return NULL;
}

int wf_own_bind(struct wf_thread *self)
{
	(void)self;
	return 0;
}

/* The state is to be slept on; all that join are of this kind. */
int wf_joiner_await(struct wf_thread *self, struct weft_thread *t, struct wf_joiner *join,
		    int64_t until)
{
	(void)self;
	(void)until;
	if (!join->is_claimed && wf_exchange(&t->is_joined, 1u))
		return -EBUSY;
	join->is_claimed = true;
	t->joiner = join->joiner;
	return 0;
}

void wf_shell_forget(void)
{
}

void wf_maker_forget(void)
{
}

/* --- for a thread of weft's --- */

#define NOBODY(declaration)                                                                        \
	declaration                                                                                \
	{                                                                                          \
		wf_die("a thread of weft's, where none can be", __FILE__, __LINE__);               \
	}

#pragma GCC diagnostic ignored "-Wunused-parameter"

/* clang-format off */
NOBODY(void wf_park_begin(uint32_t flags, enum wf_wait kind, uint64_t what))
NOBODY(void wf_park_begin_before_lock(uint32_t flags, enum wf_wait kind, uint64_t what))
NOBODY(enum wf_reason wf_park(int64_t deadline))
NOBODY(enum wf_reason wf_park_abort(void))
NOBODY(void wf_park_tell(struct wf_scopes *sc))
NOBODY(bool wf_unpark(struct wf_thread *t, enum wf_reason reason))
NOBODY(bool wf_idle_is_anybody(void))

NOBODY(bool wf_fd_is_private(void))
NOBODY(uint32_t lx_poll_events(uint32_t events))
NOBODY(void lx_poll_slot_init(struct lx_poll_slot *slot, int fd, uint32_t events, bool is_exclusive))
NOBODY(void lx_poll_arm(struct lx_poll_slot *slots, uint32_t nr))
NOBODY(bool lx_poll_enqueue(struct lx_poll_slot *slots, uint32_t nr, uint32_t *out_nr, bool *out_refused))
NOBODY(void lx_poll_dequeue(struct lx_poll_slot *slots, uint32_t nr))
NOBODY(bool lx_scope_knows_once(void))

NOBODY(enum wf_shell_spawn wf_shell_spawn(struct wf_thread *self, int shell_class, struct weft_thread *t, struct wf_shelf **out_shelf))
NOBODY(bool wf_shell_not_made(struct wf_thread *self, int shell_class, struct wf_shelf *shelf, struct weft_thread *t))
NOBODY(bool wf_shell_withdraw(struct wf_thread *self, int shell_class, struct wf_shelf *shelf, struct weft_thread *t, uint32_t uses))
NOBODY(void wf_shell_made(struct wf_thread *self, struct wf_shelf *shelf))
NOBODY(void wf_shell_ended(void))
NOBODY(bool wf_shell_is_any_ending(void))
NOBODY(bool wf_shell_end_others(struct wf_thread *self, int shell_class))
NOBODY(bool wf_shell_call_to_stuck(struct wf_thread *self, int shell_class, struct wf_shelf **out_shelf))
NOBODY(bool wf_shell_is_stuck(void))
NOBODY(bool wf_shell_is_any_queued(struct wf_thread *self))
NOBODY(bool wf_maker_rest(struct wf_thread *self, bool (*is_wanted)(void)))
NOBODY(struct weft_thread *wf_shell_arrive(struct wf_thread *self, struct wf_shell *s, bool *out_wants))
NOBODY(enum wf_shell_next wf_shell_next(struct wf_thread *self, struct wf_shell *s, struct weft_thread **t, bool *out_wants))
NOBODY(void wf_shell_begin(struct wf_thread *self, const struct wf_shell *s, struct weft_thread *t, weft_scope *root))
NOBODY(void wf_joiner_tell_when_gone(struct wf_thread *self, struct weft_thread *t))
NOBODY(void wf_turn_give(struct wf_thread *self))
NOBODY(void wf_fresh_learn(void))
NOBODY(bool wf_fresh_reset(void))
/* clang-format on */
