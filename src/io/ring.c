// SPDX-License-Identifier: Apache-2.0
/*
 * The rings and their kernel threads; see ring.h.
 *
 * Nobody else enters a ring. The kernel completes an operation on the kernel thread that submitted it, and not
 * before that one is out of an uninterruptible call: had a worker's carrier submitted it, a vfork() or a dead file
 * server that it met later would keep back other threads' wake-ups for as long. This one only ever waits here.
 *
 * Invariant (no operation is forgotten): who queues one rings the bell: sets it, and if it was not set wakes the futex
 * on it. The kernel thread clears the bell, then takes everything, and sleeps only with a FUTEX_WAIT for the cleared
 * bell in its ring: one rung before that is submitted ends it at once, one rung later wakes it.
 *
 * Invariant (no completion is lost): each operation and each cancellation completes once, and there are never more
 * under way than the completion queue has room for.
 */
#include "arch/arch.h"
#include "io/ring.h"
#include "io/uses.h"
#include "sched/park.h"
#include "sched/preempt.h"
#include "sched/runtime.h"
#include "sched/staff.h"

#include <errno.h>
#include <sys/mman.h>

#define SQ_ENTRIES 64u
#define CQ_ENTRIES 16384u
#define MAX_OPS (CQ_ENTRIES / 2 - 2) /* each may be cancelled; the bell; the end */
/*
 * When reads gain by a ring, as measured. Many: always; then the disk has some to go on with while the others pass from
 * one kernel thread to the other. Fewer: while the processors are wanted by others as well. They come back from the disk
 * in bursts, so it is not asked anew each time. A read that the page cache has begun is on its way already: all
 * that is left to choose is who waits for it.
 */
#define READS_MANY 96u
#define READS_STAY 1024u
#define READS_FEW 8u
#define READS_BEGUN_FEW 16u
#define READS_BEGUN_STAY 64u
/* One kernel thread gets some 400,000 reads done a second, which is what so many workers could ask for. */
#define WORKERS_PER_RING 2u
#define READ_RINGS 8u
#define BELL_TAG 1u
#define CANCEL_TAG 2u
#define FUTEX2_PRIVATE_U32 (128 | 2)
#define RETRY_NS WF_MS

enum ring_state {
	RING_UNTRIED,
	RING_STARTING,
	RING_ON,
	RING_OFF,
};

struct wf_ring {
	uint32_t state; /* (a) enum ring_state; futex word */
	uint32_t bell;  /* (a) futex word of the kernel's */
	struct wf_spin lock;
	struct wf_list queued, in_kernel, to_cancel; /* (q) struct wf_ring_op */
	uint32_t nr_ops; /* (q) queued and in the kernel; looked at without the lock, too */
	uint32_t stays;  /* (a) so many more reads are taken, about */
	bool stops;      /* (q) */

	/* The kernel thread's own. */
	struct wf_kthread *owner;
	int fd; /* registered with the kernel: no number that the program could see */
	char *map;
	struct sys_uring_sqe *sqes;
	struct sys_uring_cqe *cqes;
	uint32_t *sq_head, *sq_tail, *cq_head, *cq_tail;
	uint32_t cq_mask;
	bool is_bell_armed, is_bell_unknown;
};

static struct wf_ring rings[1 + READ_RINGS]; /* the first for waits, the others for reads */

static void set_state(struct wf_ring *r, enum ring_state state)
{
	wf_store_seq_cst(&r->state, (uint32_t)state);
	(void)sys_futex_wake(&r->state, INT32_MAX);
}

static void ring_bell(struct wf_ring *r)
{
	if (!wf_exchange_seq_cst(&r->bell, 1u))
		(void)sys_futex_wake(&r->bell, 1);
}

/* Under the lock. An entry in to_cancel goes: nobody may look at op any more when its thread goes on. */
static void finish(struct wf_ring *r, struct wf_ring_op *op, int32_t res)
{
	wf_list_remove(&op->link);
	wf_list_remove(&op->cancel_link);
	wf_store_relaxed(&r->nr_ops, r->nr_ops - 1);
	op->res = res;
	op->is_done = true;
	(void)wf_unpark(op->thread, WF_WAKE_EVENT);
}

static uint32_t room_in_sq(struct wf_ring *r)
{
	return SQ_ENTRIES - (*r->sq_tail - wf_load_acquire(r->sq_head));
}

static void put_sqe(struct wf_ring *r, const struct sys_uring_sqe *sqe)
{
	uint32_t tail = *r->sq_tail;

	r->sqes[tail % SQ_ENTRIES] = *sqe;
	wf_store_release(r->sq_tail, tail + 1);
}

static void put_cancel(struct wf_ring *r, struct wf_ring_op *op)
{
	put_sqe(r, &(struct sys_uring_sqe){
			   .opcode = SYS_URING_OP_ASYNC_CANCEL,
			   .flags = SYS_URING_CQE_SKIP_SUCCESS,
			   .fd = -1,
			   .addr = (uintptr_t)op,
			   .user_data = CANCEL_TAG,
		   });
}

/* It completes when there is nothing to cancel, too, which a sleep may be waiting for. */
static void put_cancel_all(struct wf_ring *r)
{
	put_sqe(r, &(struct sys_uring_sqe){
			   .opcode = SYS_URING_OP_ASYNC_CANCEL,
			   .fd = -1,
			   .op_flags = SYS_URING_CANCEL_ALL_ANY,
			   .user_data = CANCEL_TAG,
		   });
}

static void put_op(struct wf_ring *r, struct wf_ring_op *op)
{
	put_sqe(r, &(struct sys_uring_sqe){
			   .opcode = (uint8_t)op->opcode,
			   .fd = op->fd,
			   .addr = op->addr,
			   .addr2 = op->addr2,
			   .addr3 = op->addr3,
			   .len = op->len,
			   .file_index = op->file_index,
			   .user_data = (uintptr_t)op,
		   });
}

static void put_bell(struct wf_ring *r)
{
	put_sqe(r, &(struct sys_uring_sqe){
			   .opcode = SYS_URING_OP_FUTEX_WAIT,
			   .fd = FUTEX2_PRIVATE_U32,
			   .addr = (uintptr_t)&r->bell,
			   .addr3 = ~0u,
			   .user_data = BELL_TAG,
		   });
	r->is_bell_armed = true;
}

/*
 * Put what was queued into the submission queue, one place of which stays free for the bell. An operation goes before its
 * cancellation. True: all of it.
 */
static bool take_queued(struct wf_ring *r)
{
	bool is_all;

	wf_spin_lock(&r->lock);
	while (!wf_list_is_empty(&r->queued) && room_in_sq(r) > 1) {
		struct wf_ring_op *op = container_of(wf_list_pop_head(&r->queued),
						     struct wf_ring_op, link);

		wf_list_push_tail(&r->in_kernel, &op->link);
		op->is_submitted = true;
		put_op(r, op);
	}
	while (!wf_list_is_empty(&r->to_cancel) && room_in_sq(r) > 1)
		put_cancel(r, container_of(wf_list_pop_head(&r->to_cancel), struct wf_ring_op,
					   cancel_link));
	is_all = wf_list_is_empty(&r->queued) && wf_list_is_empty(&r->to_cancel);
	wf_spin_unlock(&r->lock);
	return is_all;
}

static void reap(struct wf_ring *r)
{
	uint32_t head = *r->cq_head, tail;

	while (head != (tail = wf_load_acquire(r->cq_tail))) {
		for (; head != tail; head++) {
			const struct sys_uring_cqe *c = &r->cqes[head & r->cq_mask];

			if (c->user_data == BELL_TAG) {
				r->is_bell_armed = false;
				r->is_bell_unknown = c->res == -EINVAL;
			} else if (c->user_data != CANCEL_TAG) {
				wf_spin_lock(&r->lock);
				finish(r, (struct wf_ring_op *)c->user_data, c->res);
				wf_spin_unlock(&r->lock);
			}
		}
		wf_store_release(r->cq_head, head);
	}
}

static void sleep_a_moment(void)
{
	const struct __kernel_timespec soon = { 0, RETRY_NS };

	(void)sys2(__NR_nanosleep, &soon, NULL);
}

/* False: the ring cannot be entered any more. */
static bool enter(struct wf_ring *r, bool may_sleep)
{
	uint32_t to_submit = *r->sq_tail - wf_load_acquire(r->sq_head);
	long ret = sys6(__NR_io_uring_enter, r->fd, to_submit, may_sleep ? 1 : 0,
			SYS_URING_ENTER_GETEVENTS | SYS_URING_ENTER_REGISTERED_RING, NULL, 0);

	if (ret == -EAGAIN || ret == -ENOMEM || ret == -EBUSY) {
		sleep_a_moment(); /* no memory: what was not taken stays in the submission queue */
		return true;
	}
	return ret >= 0 || ret == -EINTR;
}

/* One turn of the loop. False: the ring is of no use. */
static bool turn(struct wf_ring *r, bool is_stopping)
{
	bool is_all;

	(void)wf_exchange_seq_cst(&r->bell, 0u);
	is_all = take_queued(r);
	if (!is_stopping && !r->is_bell_armed && room_in_sq(r))
		put_bell(r);
	if (!enter(r, is_all))
		return false;
	reap(r);
	return !r->is_bell_unknown;
}

static bool is_over(struct wf_ring *r)
{
	bool is_over;

	wf_spin_lock(&r->lock);
	is_over = r->stops;
	wf_spin_unlock(&r->lock);
	return is_over;
}

/* None is taken any more; those of the list are not in the kernel. */
static void give_up(struct wf_ring *r, struct wf_list *list)
{
	wf_spin_lock(&r->lock);
	r->stops = true;
	while (!wf_list_is_empty(list))
		finish(r, container_of(list->next, struct wf_ring_op, link), -ECANCELED);
	wf_spin_unlock(&r->lock);
}

/*
 * Somebody forbade the kernel thread to enter its r-> What lies there is cancelled when that thread ends, and not a
 * moment earlier may the others go on: wake-ups for those who wait anew would go to what they left behind.
 */
static void bury(void *arg)
{
	struct wf_kthread *k = arg;
	struct wf_ring *r = k->helper_arg;
	struct wf_kthread *owner = r->owner;
	uint32_t tid;

	wf_arch_set_self(k);
	wf_preempt_init_kthread(k);
	while ((tid = (uint32_t)wf_load_acquire(&owner->tid)))
		(void)sys4(__NR_futex, &owner->tid, FUTEX_WAIT, tid, NULL);
	wf_staff_end(owner);
	give_up(r, &r->queued);
	give_up(r, &r->in_kernel);
	wf_staff_end(k);
	set_state(r, RING_OFF);
}

/* A submitted operation ends as it would, or with -ECANCELED. False: the ring cannot be entered. */
static bool wind_up(struct wf_ring *r)
{
	uint32_t nr;

	give_up(r, &r->queued);
	while (!room_in_sq(r))
		if (!enter(r, false))
			return false;
	put_cancel_all(r);
	do {
		if (!turn(r, true))
			return false;
		wf_spin_lock(&r->lock);
		nr = r->nr_ops;
		wf_spin_unlock(&r->lock);
	} while (nr || r->is_bell_armed);
	return true;
}

static bool map_ring(struct wf_ring *r, int fd, const struct sys_uring_params *p)
{
	size_t bytes = p->cq_off.cqes + p->cq_entries * sizeof(struct sys_uring_cqe);
	long map = sys6(__NR_mmap, 0, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			SYS_URING_OFF_RING);
	long sqes = sys6(__NR_mmap, 0, p->sq_entries * sizeof(struct sys_uring_sqe),
			 PROT_READ | PROT_WRITE, MAP_SHARED, fd, SYS_URING_OFF_SQES);

	if (sys_failed(map) || sys_failed(sqes) || p->sq_entries != SQ_ENTRIES ||
	    p->cq_entries < CQ_ENTRIES)
		return false;
	/* A child of fork has no ring: what it would inherit is ours. */
	(void)sys3(__NR_madvise, map, bytes, MADV_DONTFORK);
	(void)sys3(__NR_madvise, sqes, p->sq_entries * sizeof(struct sys_uring_sqe), MADV_DONTFORK);
	r->map = (char *)map;
	r->sqes = (struct sys_uring_sqe *)sqes;
	r->cqes = (struct sys_uring_cqe *)(r->map + p->cq_off.cqes);
	r->sq_head = (uint32_t *)(r->map + p->sq_off.head);
	r->sq_tail = (uint32_t *)(r->map + p->sq_off.tail);
	r->cq_head = (uint32_t *)(r->map + p->cq_off.head);
	r->cq_tail = (uint32_t *)(r->map + p->cq_off.tail);
	r->cq_mask = *(uint32_t *)(r->map + p->cq_off.ring_mask);
	return true;
}

/* The ring is registered with this kernel thread, and its number goes: nobody can close it, no child inherits it. */
static bool make(struct wf_ring *r)
{
	struct sys_uring_params p = {
		.flags = SYS_URING_SETUP_CQSIZE | SYS_URING_SETUP_SUBMIT_ALL |
			 SYS_URING_SETUP_SINGLE_ISSUER | SYS_URING_SETUP_DEFER_TASKRUN |
			 SYS_URING_SETUP_NO_SQARRAY,
		.cq_entries = CQ_ENTRIES,
	};
	int fd = (int)sys2(__NR_io_uring_setup, SQ_ENTRIES, &p);
	struct sys_uring_update update = { .offset = ~0u, .data = (uint64_t)fd };
	bool is_made;

	if (fd < 0)
		return false;
	wf_fd_set_own(fd, true);
	is_made = map_ring(r, fd, &p) &&
		  sys4(__NR_io_uring_register, fd, SYS_URING_REGISTER_RING_FDS, &update, 1) == 1;
	wf_fd_set_own(fd, false);
	(void)sys_close(fd);
	r->fd = (int)update.offset;
	return is_made;
}

static void run(void *arg)
{
	struct wf_kthread *k = arg;
	struct wf_ring *r = k->helper_arg;
	bool is_good;

	wf_arch_set_self(k);
	wf_preempt_init_kthread(k);
	r->owner = k;
	wf_staff_name("weft-ring");
	/* The bell is set, so its wait ends at once; or is refused by a kernel that knows no such operation. */
	is_good = make(r);
	if (is_good) {
		put_bell(r);
		do
			is_good = enter(r, true);
		while (is_good && wf_load_acquire(r->cq_tail) == *r->cq_head);
		reap(r);
		is_good = is_good && !r->is_bell_unknown;
	}
	if (is_good) {
		set_state(r, RING_ON);
		while (is_good && !is_over(r))
			is_good = turn(r, false);
		if (!is_good || !wind_up(r)) {
			while (!wf_staff_spawn_helper(bury, r))
				sleep_a_moment();
			return;
		}
	}
	give_up(r, &r->queued);
	wf_staff_end(k);
	set_state(r, RING_OFF);
}

/* True: there is such a ring. The first to ask for it waits until that is known. */
static bool is_there(struct wf_ring *r)
{
	uint32_t state = wf_load_acquire(&r->state);

	if (WF_LIKELY(state == RING_ON || state == RING_OFF))
		return state == RING_ON;
	if (state == RING_UNTRIED && wf_cas(&r->state, &state, (uint32_t)RING_STARTING)) {
		wf_list_init(&r->queued);
		wf_list_init(&r->in_kernel);
		wf_list_init(&r->to_cancel);
		wf_store_seq_cst(&r->bell, 1u);
		if (!wf_staff_spawn_helper(run, r))
			set_state(r, RING_UNTRIED); /* no memory, or not by one who is bound */
	}
	while ((state = wf_load_seq_cst(&r->state)) == RING_STARTING)
		(void)sys_futex_wait(&r->state, RING_STARTING, -1);
	return state == RING_ON;
}

/* Those of a worker go to the same, while it is there. */
static struct wf_ring *ring_for(enum wf_ring_kind kind)
{
	const struct wf_worker *w = wf_own_kthread()->worker;

	if (kind == WF_RING_WAITS)
		return &rings[0];
	return &rings[1 + (w ? w->index / WORKERS_PER_RING % READ_RINGS : 0)];
}

uint32_t wf_ring_nr_reads(void)
{
	return wf_load_relaxed(&ring_for(WF_RING_READS)->nr_ops);
}

/* Somebody else wants the processor now: to leave the worker to others would mean to wake a kernel thread for them. */
static bool is_crowded(void)
{
	const struct wf_worker *w = wf_own_kthread()->worker;

	return w && wf_runq_nr(&w->rq);
}

bool wf_ring_takes_reads(uint32_t nr_beside, bool is_begun)
{
	struct wf_ring *r = ring_for(WF_RING_READS);
	uint32_t nr = wf_load_relaxed(&r->nr_ops) + nr_beside, stays = wf_load_relaxed(&r->stays);

	if (nr >= READS_MANY)
		stays = READS_STAY;
	else if (is_begun && nr >= READS_BEGUN_FEW && is_crowded())
		stays = WF_MAX(stays, READS_BEGUN_STAY);
	else if (!stays)
		return !is_begun && nr >= READS_FEW && is_crowded();
	else
		stays--;
	wf_store_relaxed(&r->stays, stays);
	return true;
}

long wf_ring_submit(enum wf_ring_kind kind, struct wf_ring_op *op)
{
	struct wf_ring *r = ring_for(kind);
	bool is_taken;

	if (!is_there(r))
		return -ENOSYS;
	wf_list_init(&op->link);
	wf_list_init(&op->cancel_link);
	op->ring = r;
	op->thread = wf_self();
	op->is_submitted = op->is_done = false;
	wf_spin_lock(&r->lock);
	is_taken = !r->stops && r->nr_ops < MAX_OPS;
	if (is_taken) {
		wf_store_relaxed(&r->nr_ops, r->nr_ops + 1);
		wf_list_push_tail(&r->queued, &op->link);
	}
	wf_spin_unlock(&r->lock);
	if (is_taken)
		ring_bell(r);
	return is_taken ? 0 : -ENOSYS;
}

static bool is_done(struct wf_ring_op *op)
{
	bool is_done;

	wf_spin_lock(&op->ring->lock);
	is_done = op->is_done;
	wf_spin_unlock(&op->ring->lock);
	return is_done;
}

static enum wf_reason park(struct wf_ring_op *op, uint32_t flags, enum wf_wait kind, uint64_t what,
			   int64_t deadline)
{
	wf_park_begin(flags, kind, what);
	return is_done(op) ? wf_park_abort() : wf_park(deadline);
}

bool wf_ring_park(struct wf_ring_op *op, enum wf_wait kind, uint64_t what, int64_t deadline,
		  enum wf_reason *out)
{
	*out = park(op, op->is_reached ? WF_INTR | WF_REACHED : WF_INTR, kind, what, deadline);
	return is_done(op);
}

void wf_ring_cancel(struct wf_ring_op *op, enum wf_wait kind, uint64_t what)
{
	struct wf_ring *r = op->ring;
	bool is_asked;

	wf_spin_lock(&r->lock);
	if (!op->is_done && !op->is_submitted)
		finish(r, op, -ECANCELED);
	is_asked = !op->is_done;
	if (is_asked)
		wf_list_push_tail(&r->to_cancel, &op->cancel_link);
	wf_spin_unlock(&r->lock);
	if (is_asked)
		ring_bell(r);
	while (!is_done(op))
		(void)park(op, 0, kind, what, WF_NEVER);
}

static void stop(struct wf_ring *r)
{
	uint32_t state = RING_UNTRIED;

	if (wf_cas(&r->state, &state, (uint32_t)RING_OFF))
		return;
	while ((state = wf_load_seq_cst(&r->state)) == RING_STARTING)
		(void)sys_futex_wait(&r->state, RING_STARTING, -1);
	wf_spin_lock(&r->lock);
	r->stops = true;
	wf_spin_unlock(&r->lock);
	ring_bell(r);
	while ((state = wf_load_seq_cst(&r->state)) == RING_ON)
		(void)sys_futex_wait(&r->state, RING_ON, -1);
}

void wf_ring_stop(void)
{
	for (size_t i = 0; i < ARRAY_LEN(rings); i++)
		stop(&rings[i]);
}

void wf_ring_forget(void)
{
	for (size_t i = 0; i < ARRAY_LEN(rings); i++)
		rings[i] = (struct wf_ring){ 0 };
}
