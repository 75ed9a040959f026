// SPDX-License-Identifier: Apache-2.0
/*
 * Channels (sync/chan.c): what was sent is received once, in order, or nobody says that it was sent; whoever waits is served
 * or told that it is closed; and a channel is not touched after the exchange.
 */
#include "sync/chan.h"
#include "sync.h"

#include "tap.h"

#define ROOM 4 /* items at most */

static union {
	struct wf_chan chan;
	char bytes[sizeof(struct wf_chan) + ROOM * sizeof(uint64_t)];
} memory, buried;
static struct wf_chan *const ch = &memory.chan;

static uint64_t sent[ROOM + 1], received[ROOM + 1], last;
static uint32_t nr_sent, nr_received, nr_refused, nr_late;

static int send_until(uint64_t item, int64_t until)
{
	int ret = THROUGH_SIGNALS(wf_chan_send(me(), ch, &item, until));

	model_expect(ret == 0 || ret == -EPIPE || ret == -ETIMEDOUT, "send failed");
	sent[item] += ret == 0;
	nr_sent += ret == 0;
	nr_refused += ret == -EPIPE;
	nr_late += ret == -ETIMEDOUT;
	return ret;
}

static int receive_until(int64_t until)
{
	uint64_t item = 0;
	int ret = THROUGH_SIGNALS(wf_chan_recv(me(), ch, &item, until));

	model_expect(ret == 0 || ret == -EPIPE || ret == -ETIMEDOUT, "receive failed");
	model_expect((ret == 0) == (item != 0), "an item on an error, or none without");
	received[item] += ret == 0;
	nr_received += ret == 0;
	nr_refused += ret == -EPIPE;
	nr_late += ret == -ETIMEDOUT;
	last = item;
	return ret;
}

static void sends(void *arg)
{
	(void)send_until((uintptr_t)arg, WF_NEVER);
}

static void receives(void *arg)
{
	(void)receive_until(WF_NEVER);
}

static void sends_two(void *arg)
{
	model_expect(send_until(1, WF_NEVER) == 0, "send failed");
	model_expect(send_until(2, WF_NEVER) == 0, "send failed");
}

static void receives_two(void *arg)
{
	for (uint64_t i = 1; i <= 2; i++) {
		model_expect(receive_until(WF_NEVER) == 0, "receive failed");
		model_expect(last == i, "items came out of order");
	}
}

static void sends_for_a_while(void *arg)
{
	(void)send_until((uintptr_t)arg, model_now() + WF_MS);
	sleep_undisturbed();
}

static void receives_for_a_while(void *arg)
{
	(void)receive_until(model_now() + WF_MS);
	sleep_undisturbed();
}

static void receives_until_closed(void *arg)
{
	while (receive_until(WF_NEVER) == 0)
		;
}

static void closes(void *arg)
{
	wf_chan_close(me(), ch);
}

static void bury(void)
{
	memset(&memory, 0x58, sizeof(memory));
	buried = memory;
}

static void receives_and_frees(void *arg)
{
	receives(NULL);
	bury();
}

static void sends_and_frees(void *arg)
{
	sends((void *)1);
	bury();
}

static bool has_receiver(void *arg)
{
	return ch->receivers.next != &ch->receivers && !ch->lock.held;
}

/* Second in the row, so the first item is the other's. */
static void receives_behind(void *arg)
{
	(void)model_wait(has_receiver, NULL, WF_NEVER);
	(void)receive_until(WF_NEVER);
	model_expect(last == 2, "the one that came later was served first");
}

static bool has_two(void *arg)
{
	return has_receiver(NULL) && ch->receivers.next->next != &ch->receivers;
}

static void sends_to_two(void *arg)
{
	(void)model_wait(has_two, NULL, WF_NEVER);
	sends_two(NULL);
}

static void begin_chan(size_t capacity, uint32_t nr_workers)
{
	begin(nr_workers);
	wf_chan_init(ch, sizeof(uint64_t), capacity, "model");
	memset(sent, 0, sizeof(sent));
	memset(received, 0, sizeof(received));
	memset(&buried, 0, sizeof(buried));
	nr_sent = nr_received = nr_refused = nr_late = 0;
	last = 0;
}

static void check(void)
{
	machine_check();
	model_expect(wf_list_is_empty(&ch->receivers) && wf_list_is_empty(&ch->senders),
		     "somebody is on a list still");
	model_expect(!ch->lock.held, "the channel stayed locked");
	for (uint32_t i = 1; i <= ROOM; i++)
		model_expect(received[i] <= sent[i], "what was received was not sent");
	model_expect(nr_sent == nr_received + ch->count, "an item was lost, or is two");
}

static void check_all(void)
{
	check();
	model_expect(!ch->count && !nr_refused && !nr_late, "somebody was not served");
}

static void check_gone(void)
{
	machine_check();
	model_expect(!memcmp(&memory, &buried, sizeof(memory)), "a channel was used that had gone");
}

static void setup_meeting(void)
{
	begin_chan(0, 2);
	add(0, sends, (void *)1);
	add(1, receives, NULL);
	add(1, sends, (void *)2);
	add(0, receives, NULL);
}

static void setup_once(void)
{
	begin_chan(0, 2);
	add(0, sends, (void *)1);
	add(1, receives, NULL);
}

static void setup_ordered(void)
{
	begin_chan(0, 2);
	add(0, sends_two, NULL);
	add(1, receives_two, NULL);
}

static void setup_buffered(void)
{
	begin_chan(1, 2);
	add(0, sends_two, NULL);
	add(1, receives_two, NULL);
}

static void setup_row(void)
{
	begin_chan(0, 2);
	add(0, receives, NULL);
	add(1, receives_behind, NULL);
	machine_stranger(sends_to_two, NULL);
}

static void setup_closed(void)
{
	begin_chan(0, 2);
	add(0, sends, (void *)1);
	add(1, receives_until_closed, NULL);
	add(1, closes, NULL);
}

static void setup_closed_full(void)
{
	begin_chan(1, 2);
	add(0, sends, (void *)1);
	add(0, sends, (void *)2);
	add(1, closes, NULL);
}

static void setup_late(void)
{
	begin_chan(0, 2);
	add(0, sends_for_a_while, (void *)1);
	add(1, receives_for_a_while, NULL);
	machine_stranger(expire, NULL);
}

static bool has_sender(void *arg)
{
	return (ch->senders.next != &ch->senders && !ch->lock.held) || nr_late;
}

static void receives_what_is_there(void *arg)
{
	(void)model_wait(has_sender, NULL, WF_NEVER);
	(void)receive_until(1);
}

static void setup_late_once(void)
{
	begin_chan(0, 1);
	add(0, sends_for_a_while, (void *)1);
	machine_stranger(receives_what_is_there, NULL);
	machine_stranger(expire, NULL);
}

static void setup_late_full(void)
{
	begin_chan(1, 2);
	(void)wf_chan_try_send(ch, &(uint64_t){ 3 }, &(struct wf_wait_node *){ NULL });
	sent[3] = nr_sent = 1;
	add(0, sends_for_a_while, (void *)1);
	add(1, receives_for_a_while, NULL);
	machine_stranger(expire, NULL);
}

static void setup_gone_to_receiver(void)
{
	begin_chan(0, 2);
	add(0, sends, (void *)1);
	add(1, receives_and_frees, NULL);
}

static void setup_gone_to_sender(void)
{
	begin_chan(0, 2);
	add(0, sends_and_frees, NULL);
	add(1, receives, NULL);
}

static void setup_outside(void)
{
	begin_chan(0, 1);
	add(0, sends_two, NULL);
	machine_stranger(receives_two, NULL);
}

static void setup_interrupted(void)
{
	begin_chan(0, 2);
	add(0, sends, (void *)1);
	add(1, receives, NULL);
	machine_stranger(interrupt_first, NULL);
}

#define MODEL(name, judge, b)                                                                      \
	static const struct model name = {                                                         \
		.setup = setup_##name, .check = (judge), .bound = (b), .walks = 2000               \
	}
MODEL(meeting, check_all, 1);
MODEL(once, check_all, 2);
MODEL(ordered, check_all, 1);
MODEL(buffered, check_all, 1);
MODEL(row, check_all, 1);
MODEL(closed, check, 1);
MODEL(closed_full, check, 1);
MODEL(late, check, 1);
MODEL(late_full, check, 1);
MODEL(late_once, check, 2);
MODEL(gone_to_receiver, check_gone, 1);
MODEL(gone_to_sender, check_gone, 1);
MODEL(outside, check_all, 1);
MODEL(interrupted, check_all, 1);

TEST(senders_and_receivers_meet)
{
	model_verify(&meeting);
}

TEST(items_come_in_order)
{
	model_verify(&ordered);
	model_verify(&buffered);
}

TEST(the_first_in_the_row_is_served_first)
{
	model_verify(&row);
}

TEST(closing_tells_all_and_loses_nothing)
{
	model_verify(&closed);
	model_verify(&closed_full);
}

TEST(a_time_out_and_a_hand_over_are_one)
{
	model_verify(&late);
	model_verify(&late_full);
	model_verify(&late_once);
}

TEST(whoever_made_the_last_exchange_may_free_it)
{
	model_verify(&gone_to_receiver);
	model_verify(&gone_to_sender);
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
	model_catches(once, "wf_spin_lock", "exchange");
}

TEST(a_claim_that_is_not_atomic_is_caught)
{
	model_catches(late, "wf_wait_claim", "cas");
}

TEST(a_waiter_that_gives_up_without_looking_is_caught)
{
	model_catches(late_once, "wf_wait_give_up", "cas");
}
