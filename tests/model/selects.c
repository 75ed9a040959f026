// SPDX-License-Identifier: Apache-2.0
/*
 * Select (sync/select.c): exactly one of its operations is done, each item is received once, and nobody sleeps beside somebody
 * who could serve it, whether two selects meet at the same channels, give up, or are told by events.
 */
#include "sync/chan.h"
#include "sync/event.h"
#include "sync/select.h"
#include "sync.h"

#include "tap.h"

#define ITEMS 5

static struct wf_chan chans[2], buried;
static struct wf_sync_event event;
static uint32_t sent[ITEMS], received[ITEMS], nr_sent, nr_received, nr_late, nr_told;

enum which {
	SEND_A = 1,
	RECV_A,
	SEND_B,
	RECV_B,
	ON_EVENT
};

static uint64_t items_in[MAX_THREADS][3], items_out[MAX_THREADS][3];

static struct weft_op op_of(enum which which, uint64_t *in, uint64_t *out)
{
	struct wf_chan *ch = which <= RECV_A ? &chans[0] : &chans[1];

	if (which == ON_EVENT)
		return (struct weft_op)WEFT_ON(&event);
	if (which == RECV_A || which == RECV_B)
		return (struct weft_op)WEFT_RECV(ch, in);
	return (struct weft_op)WEFT_SEND(ch, out);
}

/* Up to three operations, as digits of what; the item that is sent is 1 + the thread's number. */
static void select_until(uintptr_t what, uint32_t number, int64_t until)
{
	uint64_t *in = items_in[number], *out = items_out[number];
	struct wf_wait_node nodes[3];
	struct weft_op ops[3];
	uint32_t order[3];
	struct wf_select s = { .ops = ops, .nodes = nodes, .order = order };
	uint32_t kinds[3];
	int ret;

	for (; what; what /= 10) {
		in[s.nr] = 0;
		out[s.nr] = 1 + number;
		kinds[s.nr] = (uint32_t)(what % 10);
		ops[s.nr] = op_of((enum which)kinds[s.nr], &in[s.nr], &out[s.nr]);
		s.nr++;
	}
	s.ready_fd = s.nr;
	ret = THROUGH_SIGNALS(wf_select_wait(me(), &s, until));
	model_expect(ret == -ETIMEDOUT || (ret >= 0 && ret < (int)s.nr), "select failed");
	for (uint32_t i = 0; i < s.nr; i++)
		model_expect(!in[i] || (int)i == ret, "an operation was done that is not told");
	if (ret < 0) {
		nr_late++;
		return;
	}
	model_expect(ops[ret].result == 0, "it was done with an error");
	if (kinds[ret] == ON_EVENT) {
		nr_told++;
	} else if (ops[ret].kind == WEFT_OP_RECV) {
		model_expect(in[ret] != 0, "received nothing");
		received[in[ret]]++;
		nr_received++;
	} else {
		sent[1 + number]++;
		nr_sent++;
	}
}

static uint32_t number_of(const struct wf_thread *t)
{
	for (uint32_t i = 0; i < nr_threads; i++)
		if (threads[i] == t)
			return i;
	return MAX_THREADS - 1; /* a stranger */
}

static void selects(void *arg)
{
	select_until((uintptr_t)arg, number_of(me()), WF_NEVER);
}

static void selects_for_a_while(void *arg)
{
	select_until((uintptr_t)arg, number_of(me()), model_now() + WF_MS);
	sleep_undisturbed();
}

static void selects_and_frees(void *arg)
{
	selects(arg);
	memset(&chans[0], 0x58, sizeof(chans[0]));
	buried = chans[0];
}

static void sets(void *arg)
{
	wf_event_set(me(), &event);
}

static void begin_select(uint32_t nr_workers)
{
	begin(nr_workers);
	for (int i = 0; i < 2; i++)
		wf_chan_init(&chans[i], sizeof(uint64_t), 0, "model");
	event = (struct wf_sync_event){ 0 };
	memset(sent, 0, sizeof(sent));
	memset(received, 0, sizeof(received));
	nr_sent = nr_received = nr_late = nr_told = 0;
}

static void check(void)
{
	machine_check();
	for (int i = 0; i < 2; i++) {
		model_expect(wf_list_is_empty(&chans[i].receivers) &&
				     wf_list_is_empty(&chans[i].senders),
			     "somebody is on a list still");
		model_expect(!chans[i].lock.held, "a channel stayed locked");
	}
	model_expect(!event.first && !(event.word & ~WF_EVENT_SET), "an event has a waiter still");
	for (uint32_t i = 1; i < ITEMS; i++)
		model_expect(sent[i] == received[i], "an item was lost, or is two");
	model_expect(nr_sent == nr_received, "an item was lost, or is two");
}

static void check_all(void)
{
	check();
	model_expect(!nr_late, "somebody was not served");
}

static void check_gone(void)
{
	machine_check();
	model_expect(!memcmp(&chans[0], &buried, sizeof(buried)),
		     "a channel was used that had gone");
}

#define OPS(a, b, c) ((void *)(uintptr_t)(100 * (c) + 10 * (b) + (a)))

/* Whatever one does, the other can answer; in orders that lock the channels the other way round. */
static void setup_crossed(void)
{
	begin_select(2);
	add(0, selects, OPS(SEND_A, RECV_B, 0));
	add(1, selects, OPS(SEND_B, RECV_A, 0));
}

static void setup_served(void)
{
	begin_select(2);
	add(0, selects, OPS(RECV_A, RECV_B, 0));
	add(1, selects, OPS(RECV_B, RECV_A, 0));
	add(0, selects, OPS(SEND_A, 0, 0));
	add(1, selects, OPS(SEND_B, 0, 0));
}

static void setup_late(void)
{
	begin_select(2);
	add(0, selects_for_a_while, OPS(SEND_A, RECV_B, 0));
	add(1, selects_for_a_while, OPS(RECV_A, SEND_B, 0));
	machine_stranger(expire, NULL);
}

static bool is_there(void *arg)
{
	return (chans[0].receivers.next != &chans[0].receivers && !chans[0].lock.held) || nr_late;
}

static void sends_what_is_wanted(void *arg)
{
	(void)model_wait(is_there, NULL, WF_NEVER);
	select_until((uintptr_t)arg, MAX_THREADS - 1, 1);
}

static void setup_late_once(void)
{
	begin_select(1);
	add(0, selects_for_a_while, OPS(RECV_A, RECV_B, 0));
	machine_stranger(sends_what_is_wanted, OPS(SEND_A, 0, 0));
	machine_stranger(expire, NULL);
}

/* Two that come at once for one that takes one. */
static void setup_two_wakers(void)
{
	begin_select(2);
	add(0, selects, OPS(RECV_A, RECV_B, ON_EVENT));
	add(1, selects_for_a_while, OPS(SEND_A, 0, 0));
	machine_stranger(sets, NULL);
}

static void setup_events(void)
{
	begin_select(2);
	add(0, selects, OPS(RECV_A, ON_EVENT, ON_EVENT));
	add(1, selects, OPS(ON_EVENT, SEND_B, 0));
	machine_stranger(sets, NULL);
}

static void setup_twice(void)
{
	begin_select(2);
	add(0, selects_and_frees, OPS(RECV_A, SEND_A, RECV_A));
	add(1, selects, OPS(SEND_A, 0, 0));
}

/* The channel stays, and nothing of the select on its lists. */
static void setup_twice_and_stays(void)
{
	begin_select(2);
	add(0, selects, OPS(RECV_A, SEND_A, RECV_A));
	add(1, selects, OPS(SEND_A, 0, 0));
}

static void setup_outside(void)
{
	begin_select(1);
	add(0, selects, OPS(SEND_A, RECV_B, 0));
	machine_stranger(selects, OPS(SEND_B, RECV_A, 0));
}

static void setup_interrupted(void)
{
	begin_select(2);
	add(0, selects, OPS(SEND_A, RECV_B, 0));
	add(1, selects, OPS(RECV_A, 0, 0));
	machine_stranger(interrupt_first, NULL);
}

#define MODEL(name, judge, b)                                                                      \
	static const struct model name = {                                                         \
		.setup = setup_##name, .check = (judge), .bound = (b), .walks = 2000               \
	}
MODEL(crossed, check_all, 2);
MODEL(served, check_all, 1);
MODEL(late, check, 1);
MODEL(late_once, check, 2);
MODEL(two_wakers, check, 1);
MODEL(events, check_all, 1);
MODEL(twice, check_gone, 1);
MODEL(twice_and_stays, check_all, 1);
MODEL(outside, check_all, 1);
MODEL(interrupted, check_all, 1);

TEST(two_selects_that_can_serve_each_other_do)
{
	model_verify(&crossed);
}

TEST(each_item_is_taken_by_one_of_them)
{
	model_verify(&served);
}

TEST(a_time_out_and_a_hand_over_are_one)
{
	model_verify(&late);
	model_verify(&late_once);
}

TEST(of_two_wakers_one_is_the_first)
{
	model_verify(&two_wakers);
}

TEST(events_tell_all_that_select_them)
{
	model_verify(&events);
}

TEST(a_channel_that_stands_in_it_twice_may_go_after_the_exchange)
{
	model_verify(&twice);
	model_verify(&twice_and_stays);
}

TEST(kernel_threads_that_are_not_ours_take_part)
{
	model_verify(&outside);
}

TEST(a_signal_ends_a_wait_and_the_next_one_is_complete)
{
	model_verify(&interrupted);
}

TEST(a_lock_that_is_not_atomic_is_caught)
{
	model_catches(crossed, "wf_spin_lock", "exchange");
}

TEST(a_claim_that_is_not_atomic_is_caught)
{
	model_catches(two_wakers, "wf_wait_claim", "cas");
}

TEST(a_waiter_that_gives_up_without_looking_is_caught)
{
	model_catches(late_once, "wf_wait_give_up", "cas");
}
