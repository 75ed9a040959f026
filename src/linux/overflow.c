// SPDX-License-Identifier: Apache-2.0
/*
 * Stack overflows; see overflow.h.
 *
 * libc hands clone() a stack with its guard, so a fault between the stack's low end and the first page that can be read
 * is one in the guard, whether mprotect() or MADV_GUARD_INSTALL made it. Without a guard, and with a frame that is larger
 * than it, the fault is below, and so is the stack pointer. A coroutine's stack may lie there, too: past the neighbourhood
 * of the stack a frame that begins on it is asked for, or a stack pointer far from any memory.
 */
#include "linux/overflow.h"
#include "linux/altstack.h"
#include "linux/bind.h"

#include <linux/resource.h>
#include <signal.h>

#define NEAR_BYTES (64ul << 10)
#define FAR_BYTES (64ul << 20)
#define REACH_BYTES WF_PAGE /* below the stack pointer: the red zone, a call, a probe */
#define MAX_GUARD_BYTES (1ul << 30)
#define MAX_THREAD_BLOCK                                                                           \
	(1ul << 20) /* libc's descriptor and thread-local variables, above the stack */

static bool is_readable(uintptr_t addr)
{
	char c;

	return wf_arch_copy(&c, (const void *)addr, 1) == 0;
}

/* Not in the guard of another stack, with that one above it. */
static bool is_nowhere(uintptr_t sp)
{
	for (uintptr_t at = sp; at - sp < NEAR_BYTES; at += WF_PAGE)
		if (is_readable(at))
			return false;
	return true;
}

/* The fault lies so far below that it may be anybody's, but the stack pointer came from [low, high). */
static bool came_from(uintptr_t low, uintptr_t high, uintptr_t addr, const struct wf_ucontext *uc)
{
	uintptr_t sp = wf_uc_sp(uc), frame = wf_uc_fp(uc);

	if (addr >= low || sp >= low || low - sp > FAR_BYTES)
		return false;
	return (frame >= low && frame < high) || is_nowhere(sp);
}

static bool is_near(uintptr_t low, uintptr_t addr, uintptr_t sp)
{
	return addr < low && low - addr <= NEAR_BYTES && sp <= low + REACH_BYTES;
}

static bool find_below(struct lx_overflow *o)
{
	if (is_near(o->low, o->addr, wf_uc_sp(o->uc)))
		return true;
	o->is_probable = came_from(o->low, o->high, o->addr, o->uc);
	return o->is_probable;
}

static bool find_on_alternate(struct lx_overflow *o)
{
	const struct wf_stack_t *s = &o->t->altstack;

	o->stack = LX_OVERFLOW_SIGNAL;
	o->low = (uintptr_t)s->sp;
	o->high = o->low + s->size;
	return is_near(o->low, o->addr, wf_uc_sp(o->uc));
}

static bool find_on_fiber(struct lx_overflow *o)
{
	bool (*find)(struct lx_overflow_fiber *) = wf_load_acquire(&lx_config.find_fiber);
	const uintptr_t sp = o->uc->reg[WF_UC_RSP];

	if (!find || !find(&o->fiber) || sp >= o->fiber.high)
		return false;
	o->stack = LX_OVERFLOW_FIBER;
	o->low = o->fiber.low;
	o->high = o->fiber.high;
	return is_near(o->low, o->addr, sp);
}

/* Its mapping grows with its use, to the limit of now; what cannot grow any more has overflowed. */
static bool find_on_main(struct lx_overflow *o)
{
	struct rlimit64 limit = { 0 };

	o->stack = LX_OVERFLOW_MAIN;
	o->high = lx_config.main_stack_top;
	if (wf_uc_sp(o->uc) >= o->high || o->addr >= o->high || !o->may_ask ||
	    sys4(__NR_prlimit64, 0, RLIMIT_STACK, NULL, &limit) < 0)
		return false;
	if (limit.rlim_cur >= o->high) {
		o->is_probable = is_nowhere(wf_uc_sp(o->uc));
		return o->is_probable;
	}
	o->low = WF_ALIGN_UP(o->high - limit.rlim_cur, WF_PAGE);
	return o->addr >= o->low || find_below(o);
}

static bool find_on_thread(struct lx_overflow *o)
{
	uintptr_t bottom = o->t->stack_low, top = o->t->stack_high, tls = o->t->base.tls;
	uintptr_t guard_end = bottom;

	if (!bottom || o->addr >= top)
		return false;
	while (guard_end < top && guard_end - bottom < MAX_GUARD_BYTES && !is_readable(guard_end))
		guard_end += WF_PAGE;
	o->low = guard_end;
	/* The thread pointer is at the end of what libc put above the stack. */
	if (tls >= top && tls - top < MAX_THREAD_BLOCK)
		top = tls + 1;
	o->high = WF_ALIGN_UP(top, WF_PAGE);
	if (o->addr >= bottom)
		return o->addr < guard_end;
	return find_below(o);
}

bool lx_overflow_find(struct lx_overflow *out, const struct lx_thread *t,
		      const struct wf_siginfo *info, const struct wf_ucontext *uc)
{
	uintptr_t sp = wf_uc_sp(uc);
	const struct wf_stack_t *s = &t->altstack;

	*out = (struct lx_overflow){ .t = t, .uc = uc, .addr = info->fault.addr };
	out->may_ask = !(wf_load_relaxed(&t->binds) & LX_BIND_STATE) &&
		       !wf_load_acquire(&wf_rt.is_filtered);
	if (info->signo != SIGSEGV || !wf_uc_is_data_fault(uc) || sp > out->addr + REACH_BYTES)
		return false;
	if (s->size && sp + NEAR_BYTES >= (uintptr_t)s->sp && sp < (uintptr_t)s->sp + s->size &&
	    find_on_alternate(out))
		return true;
	if (find_on_fiber(out))
		return true;
	out->is_probable = false;
	return t == lx.main ? find_on_main(out) : find_on_thread(out);
}

bool lx_overflow_has_room(const struct lx_thread *t, const struct sys_sigaction *act,
			  const struct wf_ucontext *uc)
{
	const uintptr_t sp = wf_uc_sp(uc);

	if (act->flags & SA_ONSTACK && t->altstack.size && !lx_is_on_alternate(&t->altstack, sp))
		return true;
	return is_readable(sp - WF_RED_ZONE - sizeof(struct wf_sigframe) -
			   wf_sigframe_fp_bytes(uc));
}
