// SPDX-License-Identifier: Apache-2.0
/* The maker; see maker.h. */
#include "native/maker.h"
#include "linux/abi.h"
#include "native/order.h"
#include "sched/self.h"

static struct wf_thread *rests; /* (a) the maker, until somebody takes it */
static struct wf_order order;

static struct wf_thread *take(void)
{
	return wf_load_seq_cst(&rests) ? wf_exchange(&rests, NULL) : NULL;
}

static bool has_main_ended(void)
{
	return wf_load_seq_cst(&lx.main_has_ended);
}

bool wf_maker_rest(struct wf_thread *self, bool (*is_wanted)(void))
{
	wf_self_enter(self);
	wf_park_begin(WF_INTR, WF_WAIT_UNUSED, 0);
	wf_store_seq_cst(&rests, self);
	if ((has_main_ended() || is_wanted()) && take())
		(void)wf_park_abort();
	else if (wf_park(WF_NEVER) != WF_WAKE_EVENT && !take())
		wf_order_await(&order);
	wf_self_leave(self);
	return !has_main_ended();
}

void wf_maker_wake(void)
{
	struct wf_thread *maker = take();

	if (maker)
		wf_order_give(maker, &order);
}

void wf_maker_forget(void)
{
	rests = NULL;
	order = (struct wf_order){ 0 };
}
