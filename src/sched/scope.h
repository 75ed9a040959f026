// SPDX-License-Identifier: Apache-2.0
/*
 * Scopes: what ends the waits of a thread besides what it waits for.
 *
 * Called by: park.c and linux/call.c as a wait begins; whoever has waited and was interrupted; native/scope.c for the program.
 *
 * A thread has a chain of scopes, the innermost first. The outermost that it has opened is followed by that of the group
 * which made the thread, and so on up, so that a chain is a path of a tree. A thread that waits goes by two words of its own:
 * `until`, the earliest deadline up to the nearest shield, and `is_told`: some scope of the chain may have been cancelled.
 *
 * Invariant (no wait outlasts its scope):
 *   - A canceller marks the scope, then tells each thread below it: is_told, a full barrier, then a look at the thread's
 *     state and at in_call. The thread stores its state, or in_call, a full barrier, then looks at is_told. One sees the
 *     other. A thread that clears is_told looks at the chain again behind that.
 *   - The timer of a thread, which stays armed beyond the wait that armed it, stores that it is armed no more before it looks
 *     at the state and in_call; the thread looks at `armed` behind its barrier, and reads the clock as it arms it anew.
 *   - A thread joins the tree under the lock of its group, and is told of nothing before; so it looks for itself then.
 * tests/model/scopes has these three.
 *   - A fiber that is left hangs its outermost scope on one that stays, and one that goes on hangs it on those in force, then tells
 *     all below it if one of these is over. So a walk that has missed what lies below, since it hung elsewhere, is made up for.
 *   - Natively a canceller of a group tells nobody where one around it is marked: the one that did so has yet to walk, and walks
 *     each group that is marked wherever it hangs by then; or has walked, and a thread in the group has seen either mark.
 * tests/native/scope_fibers.c has these two.
 *
 * Most that a scope costs is to arm a timer: one that is armed for an earlier moment than is needed is left as it is, fires
 * for nothing, and is armed anew by the next wait, so that requests with deadlines of 50 ms arm one every 50 ms.
 */
#ifndef WF_SCHED_SCOPE_H
#define WF_SCHED_SCOPE_H

#include "base/spin.h"
#include "sched/wheel.h"

#include <errno.h>

struct wf_group;
struct wf_thread;

/* wf_scope.state */
#define WF_SCOPE_SHIELD 1u
#define WF_SCOPE_CANCELLED 2u
#define WF_SCOPE_HAS_ENDED 4u   /* a call */
#define WF_SCOPE_ONCE 8u        /* it has ended one of those that it ends only once */
#define WF_SCOPE_HAS_GROUPS 16u /* one was opened in it, at some time */

/* weft_scope of the program's; (legend: thread.h) the owner is the thread that has opened it */
struct wf_scope {
	int64_t deadline;        /* (c) */
	const char *name;        /* (c) or NULL */
	struct wf_scope *outer;  /* (a) also around a shield; NULL: none; fibers change it */
	int64_t until;           /* (c) the earliest deadline from here to the next shield */
	struct wf_scopes *owner; /* (a) of a group: who has opened that; NULL: closed */
	uint32_t state;          /* (a) WF_SCOPE_* */
	uint32_t ended_nr;       /* (a) system call that it has ended last, or WF_SCOPE_BY_* */
	uint64_t ended_what;     /* (a) its first argument */
	uint64_t check;          /* (o) of the fields above, and of where it lies */
};

/* Instead of the number of a system call. */
#define WF_SCOPE_BY_CHECK 0x10000u
#define WF_SCOPE_BY_GROUP 0x10001u /* weft_group_wait(), weft_group_go() */
#define WF_SCOPE_BY_WAIT 0x10002u  /* another function of libweft */

/*
 * A scope lies in the program's memory, and where longjmp() has left one, something else may lie later. So each is checked before
 * it is followed, and a thread has a note of where its own lie: one that is found where another was left is skipped. Of scopes that
 * are nested deeper than there are notes those deeper are lost with the one that is skipped.
 */
#define WF_SCOPES_NOTED 16

/* Of one thread; in its TLS block, so that a thread has it before it is one of weft's. */
struct wf_scopes {
	struct wf_scope *top;  /* (o) the innermost; NULL: none */
	int64_t until;         /* (o) top's; WF_NEVER without */
	struct wf_scope *base; /* (c) of the group that has made the thread, or NULL */
	struct wf_scope
		*ground;  /* (a) base, or its own outermost: stays while it, or its task, runs */
	uint32_t nr_open; /* (o) how many it has opened itself */
	bool is_ready;    /* (o) the thread's first scope or group was seen to */
	bool is_probing; /* (o) it makes the futex wait that tells where those are that can be ended once */
	bool in_once; /* (o) it waits in one of these */
	bool in_wait; /* (o) it waits on wait_word */
	struct wf_scope *noted
		[WF_SCOPES_NOTED]; /* (o) of those that it has opened itself the outermost ones, from outside in */
	uint32_t is_told;         /* (a) some scope of the chain may be cancelled */
	uint32_t in_call;         /* (a) in a real call, or about to make one */
	int64_t armed;            /* (a) what the timer is armed for; WF_NEVER: it is not */
	struct wf_thread *thread; /* (p) NULL: a kernel thread that is not weft's */
	int64_t (*now)(void);     /* (p) the clock */
	const uint32_t *
		wait_word; /* (o) a futex of libweft's, whose waits scopes end each time, or NULL */
	uint8_t base_once; /* (o) errors by which scopes of others have ended one: bit 0 ETIMEDOUT, 1 ECANCELED */
	uint32_t bell; /* (a) native: futex word; any change is a reason to look again */
	uintptr_t stack_low, stack_high; /* (c) 0: not known */
	struct wf_timer timer;
	struct wf_spin lock;
	struct wf_list groups;  /* (q) struct wf_group.link: those that it has opened */
	struct wf_list link;    /* (q) in group->members, or in helps->helpers */
	struct wf_group *group; /* (c) that has made the thread, or NULL */
	struct wf_list
		helpers; /* (q) wf_scopes.link: those that run tasks which it has forked in a scope */
	struct wf_scopes *helps; /* (c) on whose list of helpers it is, or NULL */
};

/* The scopes of the thread that becomes the first of weft's; native/scope.c stores them before there is one. */
extern struct wf_scopes *wf_scopes_of_main;

void wf_scopes_init(struct wf_scopes *sc, struct wf_thread *thread);
/* The thread has become one of weft's. */
void wf_scopes_adopt(struct wf_scopes *sc, struct wf_thread *thread);
/* In a fork child: the thread is a plain one, and nobody of its groups is there. */
void wf_scopes_forget(struct wf_scopes *sc);

/* The thread's chain is base alone, or nothing where that is NULL. */
WF_INLINE void wf_scopes_set_base(struct wf_scopes *sc, struct wf_scope *base)
{
	sc->base = sc->top = base;
	wf_store_relaxed(&sc->ground, base);
	sc->nr_open = 0;
	sc->until = base ? base->until : WF_NEVER;
}

/* In few instructions: each open makes one and looks at another one. */
WF_INLINE uint64_t wf_scope_check_of(const struct wf_scope *s)
{
	uint64_t all = 0x5c09e15cu + (uintptr_t)s + (uintptr_t)s->outer * 2;

	all += (uintptr_t)s->owner * 4;
	all += (uint64_t)s->until * 8;
	return all ^ ((uint64_t)s->deadline + (uintptr_t)s->name);
}

/* One that the thread has opened, and nothing else lies there since. */
WF_INLINE bool wf_scope_is_sound(const struct wf_scopes *sc, const struct wf_scope *s)
{
	return s->owner == sc && s->check == wf_scope_check_of(s);
}

/* The innermost that is sound, or base. */
struct wf_scope *wf_scopes_find_top(struct wf_scopes *sc);
WF_INLINE struct wf_scope *wf_scopes_top_of(struct wf_scopes *sc)
{
	struct wf_scope *top = sc->top;

	if (WF_LIKELY(!top || top == sc->base || wf_scope_is_sound(sc, top)))
		return top;
	return wf_scopes_find_top(sc);
}

/* The next one outwards that is sound. s: one of those that the caller, whose scopes sc are, has opened, or around these. */
struct wf_scope *wf_scopes_outer_of(struct wf_scopes *sc, const struct wf_scope *s);
/* The same, asked by any thread, which sees only whether the next one is open. s: one in which there is a group or a task. */
struct wf_scope *wf_scope_outer_of(const struct wf_scope *s);
/* Where s is noted, which the thread has opened; of one that lies deeper: how many are noted. */
uint32_t wf_scopes_place_of(const struct wf_scopes *sc, const struct wf_scope *s);
/* s, or NULL, is the innermost from now on, and so many are the thread's own. */
void wf_scopes_set_top(struct wf_scopes *sc, struct wf_scope *s, uint32_t nr_open);
/* The same, where s is one of the chain. */
void wf_scopes_cut(struct wf_scopes *sc, struct wf_scope *s);

/*
 * The innermost scope that is still there: besides those above, one whose memory lies below sp, which lives on the thread's
 * stack, was left, and so was one that lies where fresh does, which is about to be opened. They are taken off.
 */
struct wf_scope *wf_scopes_prune(struct wf_scopes *sc, uintptr_t sp, const struct wf_scope *fresh);

/* Of the chain that begins at s, asked by the thread of sc: 0, or -ECANCELED, -ETIMEDOUT. */
int wf_scope_error_of(struct wf_scopes *sc, struct wf_scope *s);
/* The chain of the thread itself, in a few loads as long as nothing is over. */
bool wf_scopes_are_over(struct wf_scopes *sc);
/*
 * A wait of the thread ends: with 0, since nothing is over, or -ECANCELED, -ETIMEDOUT. Noted in the scope that did it, the
 * outermost of those that are over, which nr and what are shown of.
 */
int wf_scopes_end(struct wf_scopes *sc, uint32_t nr, uint64_t what);
/* Exactly, of what is still there: what was left may have had the earliest deadline. */
void wf_scopes_renew_until(struct wf_scopes *sc);
/* For waits that each scope ends once: the earliest deadline among those that have not yet. 0: one is over. */
int64_t wf_scopes_until_once(struct wf_scopes *sc);
/* Such a wait ends. True: for a scope that is over; it and all others that are have done it now. */
bool wf_scopes_end_once(struct wf_scopes *sc, uint32_t nr, uint64_t what);

/*
 * Of a wait that is about to begin: is it to end at once? Else *out_until is when, for a timer, or WF_NEVER.
 */
bool wf_scopes_begin_wait(struct wf_scopes *sc, int64_t *out_until);

#endif
