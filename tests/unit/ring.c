// SPDX-License-Identifier: Apache-2.0
/* io/ring: what goes into the submission queue, and on which lists an operation is. The kernel has no part in it. */
#include "sched/park.h"

#include <stdbool.h>

static int nr_woken;

static bool note_unpark(struct wf_thread *t, enum wf_reason reason)
{
	(void)t;
	(void)reason;
	nr_woken++;
	return true;
}

#define wf_unpark note_unpark
#include "io/ring.c"
#undef wf_unpark

#include "tap.h"

static struct wf_ring ring;
static struct sys_uring_sqe sqes[SQ_ENTRIES];
static uint32_t sq_head, sq_tail;
static struct wf_ring_op ops[SQ_ENTRIES + 8];

static void begin(void)
{
	sq_head = sq_tail = 0;
	nr_woken = 0;
	ring = (struct wf_ring){ .sqes = sqes, .sq_head = &sq_head, .sq_tail = &sq_tail };
	wf_list_init(&ring.queued);
	wf_list_init(&ring.in_kernel);
	wf_list_init(&ring.to_cancel);
}

static void queue(struct wf_ring_op *op)
{
	*op = (struct wf_ring_op){ .opcode = SYS_URING_OP_FUTEX_WAIT, .ring = &ring };
	wf_list_init(&op->link);
	wf_list_init(&op->cancel_link);
	wf_list_push_tail(&ring.queued, &op->link);
	ring.nr_ops++;
}

TEST(operations_are_submitted_in_their_order)
{
	begin();
	for (int i = 0; i < 3; i++)
		queue(&ops[i]);
	CHECK(take_queued(&ring));
	CHECK_EQ(sq_tail, 3);
	for (int i = 0; i < 3; i++) {
		CHECK(sqes[i].user_data == (uintptr_t)&ops[i]);
		CHECK(ops[i].is_submitted);
	}
	CHECK(wf_list_is_empty(&ring.queued));
	CHECK(!wf_list_is_empty(&ring.in_kernel));
}

TEST(one_place_stays_free_for_the_bell)
{
	begin();
	for (uint32_t i = 0; i < SQ_ENTRIES + 8; i++)
		queue(&ops[i]);
	CHECK(!take_queued(&ring));
	CHECK_EQ(room_in_sq(&ring), 1);
	sq_head = sq_tail; /* the kernel took them */
	CHECK(take_queued(&ring));
	CHECK_EQ(sq_tail, SQ_ENTRIES + 8);
}

TEST(an_operation_goes_before_its_cancellation)
{
	begin();
	queue(&ops[0]);
	wf_list_push_tail(&ring.to_cancel, &ops[0].cancel_link);
	CHECK(take_queued(&ring));
	CHECK_EQ(sq_tail, 2);
	CHECK(sqes[0].user_data == (uintptr_t)&ops[0]);
	CHECK_EQ(sqes[1].opcode, SYS_URING_OP_ASYNC_CANCEL);
	CHECK(sqes[1].addr == (uintptr_t)&ops[0]);
}

TEST(an_operation_that_is_done_is_on_no_list)
{
	begin();
	queue(&ops[0]);
	CHECK(take_queued(&ring));
	wf_list_push_tail(&ring.to_cancel, &ops[0].cancel_link);
	finish(&ring, &ops[0], 7);
	CHECK(ops[0].is_done);
	CHECK_EQ(ops[0].res, 7);
	CHECK_EQ(nr_woken, 1);
	CHECK_EQ(ring.nr_ops, 0);
	CHECK(wf_list_is_empty(&ring.in_kernel));
	CHECK(wf_list_is_empty(&ring.to_cancel));
	CHECK(take_queued(&ring));
	CHECK_EQ(sq_tail, 1); /* nothing is cancelled that is over */
}

TEST(what_gives_up_ends_all_and_takes_none)
{
	begin();
	queue(&ops[0]);
	queue(&ops[1]);
	give_up(&ring, &ring.queued);
	CHECK_EQ(nr_woken, 2);
	CHECK(ops[0].is_done && ops[1].is_done);
	CHECK_EQ(ops[1].res, -ECANCELED);
	CHECK(ring.stops);
}
