// SPDX-License-Identifier: Apache-2.0
/* Orders; see order.h. */
#include "native/order.h"
#include "base/die.h"

enum {
	ORDER_NONE,
	ORDER_AWAITED,
	ORDER_LATE, /* given to one that did not rest any more, and does not await it yet */
};

/* Once a wake-up has won, or the order is left for it, t goes on, and nothing here looks at it or the order again. */
void wf_order_give(struct wf_thread *t, struct wf_order *o)
{
	bool won = wf_unpark(t, WF_WAKE_EVENT);

	if (WF_LIKELY(won) || wf_exchange(&o->state, (uint32_t)ORDER_LATE) != ORDER_AWAITED)
		return;
	won = wf_unpark(t, WF_WAKE_EVENT);
	WF_ASSERT(won);
	(void)won;
}

void wf_order_await(struct wf_order *o)
{
	wf_park_begin(0, WF_WAIT_UNUSED, 0);
	if (wf_exchange(&o->state, (uint32_t)ORDER_AWAITED) == ORDER_LATE)
		(void)wf_park_abort();
	else
		(void)wf_park(WF_NEVER);
	wf_store_relaxed(&o->state, (uint32_t)ORDER_NONE);
}
