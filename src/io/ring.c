// SPDX-License-Identifier: Apache-2.0
/*
 * The ring and its kernel thread; see ring.h.
 *
 * Nobody else enters the ring. The kernel completes an operation on the kernel thread that submitted it, and not
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
#include "io/ring.h"
#include "arch/arch.h"
#include "io/fdtab.h"
#include "sched/park.h"
#include "sched/runtime.h"

#include <errno.h>
#include <sys/mman.h>

#define SQ_ENTRIES 64u
#define CQ_ENTRIES 16384u
#define MAX_OPS (CQ_ENTRIES / 2 - 2) /* each may be cancelled; the bell; the end */
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

static struct {
	uint32_t state; /* (a) enum ring_state; futex word */
	uint32_t bell;  /* (a) futex word of the kernel's */
	struct wf_spin lock;
	struct wf_list queued, in_kernel, to_cancel; /* (q) struct wf_ring_op */
	uint32_t nr_ops;                             /* (q) queued and in the kernel */
	bool stops;                                  /* (q) */

	/* The kernel thread's own. */
	struct wf_kthread *owner;
	int fd; /* registered with the kernel: no number that the program could see */
	char *map;
	struct sys_uring_sqe *sqes;
	struct sys_uring_cqe *cqes;
	uint32_t *sq_head, *sq_tail, *cq_head, *cq_tail;
	uint32_t cq_mask;
	bool is_bell_armed, is_bell_unknown;
} ring;

static void set_state(enum ring_state state)
{
	wf_store_seq_cst(&ring.state, (uint32_t)state);
	(void)sys_futex_wake(&ring.state, INT32_MAX);
}

static void ring_bell(void)
{
	if (!wf_exchange_seq_cst(&ring.bell, 1u))
		(void)sys_futex_wake(&ring.bell, 1);
}

/* Under the lock. What may be in to_cancel goes: nobody may look at op any more when its thread goes on. */
static void finish(struct wf_ring_op *op, int32_t res)
{
	wf_list_remove(&op->link);
	wf_list_remove(&op->cancel_link);
	ring.nr_ops--;
	op->res = res;
	op->is_done = true;
	(void)wf_unpark(op->thread, WF_WAKE_EVENT);
}

static uint32_t room_in_sq(void)
{
	return SQ_ENTRIES - (*ring.sq_tail - wf_load_acquire(ring.sq_head));
}

static void put_sqe(const struct sys_uring_sqe *sqe)
{
	uint32_t tail = *ring.sq_tail;

	ring.sqes[tail % SQ_ENTRIES] = *sqe;
	wf_store_release(ring.sq_tail, tail + 1);
}

static void put_cancel(struct wf_ring_op *op)
{
	put_sqe(&(struct sys_uring_sqe){
		.opcode = SYS_URING_OP_ASYNC_CANCEL,
		.flags = SYS_URING_CQE_SKIP_SUCCESS,
		.fd = -1,
		.addr = (uintptr_t)op,
		.user_data = CANCEL_TAG,
	});
}

/* It completes when there is nothing to cancel, too, which a sleep may be waiting for. */
static void put_cancel_all(void)
{
	put_sqe(&(struct sys_uring_sqe){
		.opcode = SYS_URING_OP_ASYNC_CANCEL,
		.fd = -1,
		.op_flags = SYS_URING_CANCEL_ALL_ANY,
		.user_data = CANCEL_TAG,
	});
}

static void put_op(struct wf_ring_op *op)
{
	put_sqe(&(struct sys_uring_sqe){
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

static void put_bell(void)
{
	put_sqe(&(struct sys_uring_sqe){
		.opcode = SYS_URING_OP_FUTEX_WAIT,
		.fd = FUTEX2_PRIVATE_U32,
		.addr = (uintptr_t)&ring.bell,
		.addr3 = ~0u,
		.user_data = BELL_TAG,
	});
	ring.is_bell_armed = true;
}

/*
 * What was queued into the submission queue, one place of which stays free for the bell. An operation goes before its
 * cancellation. True: all of it.
 */
static bool take_queued(void)
{
	bool is_all;

	wf_spin_lock(&ring.lock);
	while (!wf_list_is_empty(&ring.queued) && room_in_sq() > 1) {
		struct wf_ring_op *op = container_of(wf_list_pop_head(&ring.queued),
						     struct wf_ring_op, link);

		wf_list_push_tail(&ring.in_kernel, &op->link);
		op->is_submitted = true;
		put_op(op);
	}
	while (!wf_list_is_empty(&ring.to_cancel) && room_in_sq() > 1)
		put_cancel(container_of(wf_list_pop_head(&ring.to_cancel), struct wf_ring_op,
					cancel_link));
	is_all = wf_list_is_empty(&ring.queued) && wf_list_is_empty(&ring.to_cancel);
	wf_spin_unlock(&ring.lock);
	return is_all;
}

static void reap(void)
{
	uint32_t head = *ring.cq_head, tail;

	while (head != (tail = wf_load_acquire(ring.cq_tail))) {
		for (; head != tail; head++) {
			const struct sys_uring_cqe *c = &ring.cqes[head & ring.cq_mask];

			if (c->user_data == BELL_TAG) {
				ring.is_bell_armed = false;
				ring.is_bell_unknown = c->res == -EINVAL;
			} else if (c->user_data != CANCEL_TAG) {
				wf_spin_lock(&ring.lock);
				finish((struct wf_ring_op *)c->user_data, c->res);
				wf_spin_unlock(&ring.lock);
			}
		}
		wf_store_release(ring.cq_head, head);
	}
}

static void sleep_a_moment(void)
{
	const struct __kernel_timespec soon = { 0, RETRY_NS };

	(void)sys2(__NR_nanosleep, &soon, NULL);
}

/* False: the ring cannot be entered any more. */
static bool enter(bool may_sleep)
{
	uint32_t to_submit = *ring.sq_tail - wf_load_acquire(ring.sq_head);
	long ret = sys6(__NR_io_uring_enter, ring.fd, to_submit, may_sleep ? 1 : 0,
			SYS_URING_ENTER_GETEVENTS | SYS_URING_ENTER_REGISTERED_RING, NULL, 0);

	if (ret == -EAGAIN || ret == -ENOMEM || ret == -EBUSY) {
		sleep_a_moment(); /* no memory: what was not taken stays in the submission queue */
		return true;
	}
	return ret >= 0 || ret == -EINTR;
}

/* One turn of the loop. False: the ring is of no use. */
static bool turn(bool is_stopping)
{
	bool is_all;

	(void)wf_exchange_seq_cst(&ring.bell, 0u);
	is_all = take_queued();
	if (!is_stopping && !ring.is_bell_armed && room_in_sq())
		put_bell();
	if (!enter(is_all))
		return false;
	reap();
	return !ring.is_bell_unknown;
}

static bool is_over(void)
{
	bool is_over;

	wf_spin_lock(&ring.lock);
	is_over = ring.stops;
	wf_spin_unlock(&ring.lock);
	return is_over;
}

/* None is taken any more; those of the list are not in the kernel. */
static void give_up(struct wf_list *list)
{
	wf_spin_lock(&ring.lock);
	ring.stops = true;
	while (!wf_list_is_empty(list))
		finish(container_of(list->next, struct wf_ring_op, link), -ECANCELED);
	wf_spin_unlock(&ring.lock);
}

/*
 * Somebody forbade the kernel thread to enter its ring. What lies there is cancelled when that thread ends, and not a
 * moment earlier may the others go on: wake-ups for those who wait anew would go to what they left behind.
 */
static void bury(void *arg)
{
	struct wf_kthread *k = arg, *owner = ring.owner;
	uint32_t tid;

	wf_arch_set_self(k);
	wf_preempt_init_kthread(k);
	while ((tid = (uint32_t)wf_load_acquire(&owner->tid)))
		(void)sys4(__NR_futex, &owner->tid, FUTEX_WAIT, tid, NULL);
	wf_rt_end_kthread(owner);
	give_up(&ring.queued);
	give_up(&ring.in_kernel);
	wf_rt_end_kthread(k);
	set_state(RING_OFF);
}

/* What has been submitted ends as it would, or with -ECANCELED. False: the ring cannot be entered. */
static bool wind_up(void)
{
	uint32_t nr;

	give_up(&ring.queued);
	while (!room_in_sq())
		if (!enter(false))
			return false;
	put_cancel_all();
	do {
		if (!turn(true))
			return false;
		wf_spin_lock(&ring.lock);
		nr = ring.nr_ops;
		wf_spin_unlock(&ring.lock);
	} while (nr || ring.is_bell_armed);
	return true;
}

static bool map_ring(int fd, const struct sys_uring_params *p)
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
	ring.map = (char *)map;
	ring.sqes = (struct sys_uring_sqe *)sqes;
	ring.cqes = (struct sys_uring_cqe *)(ring.map + p->cq_off.cqes);
	ring.sq_head = (uint32_t *)(ring.map + p->sq_off.head);
	ring.sq_tail = (uint32_t *)(ring.map + p->sq_off.tail);
	ring.cq_head = (uint32_t *)(ring.map + p->cq_off.head);
	ring.cq_tail = (uint32_t *)(ring.map + p->cq_off.tail);
	ring.cq_mask = *(uint32_t *)(ring.map + p->cq_off.ring_mask);
	return true;
}

/* The ring is registered with this kernel thread, and its number goes: nobody can close it, no child inherits it. */
static bool make(void)
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
	is_made = map_ring(fd, &p) &&
		  sys4(__NR_io_uring_register, fd, SYS_URING_REGISTER_RING_FDS, &update, 1) == 1;
	wf_fd_set_own(fd, false);
	(void)sys_close(fd);
	ring.fd = (int)update.offset;
	return is_made;
}

static void run(void *arg)
{
	struct wf_kthread *k = arg;
	bool is_good;

	wf_arch_set_self(k);
	wf_preempt_init_kthread(k);
	ring.owner = k;
	/* The bell is set, so its wait ends at once; or is refused by a kernel that knows no such operation. */
	is_good = make();
	if (is_good) {
		put_bell();
		do
			is_good = enter(true);
		while (is_good && wf_load_acquire(ring.cq_tail) == *ring.cq_head);
		reap();
		is_good = is_good && !ring.is_bell_unknown;
	}
	if (is_good) {
		set_state(RING_ON);
		while (is_good && !is_over())
			is_good = turn(false);
		if (!is_good || !wind_up()) {
			while (!wf_rt_spawn_helper(bury))
				sleep_a_moment();
			return;
		}
	}
	give_up(&ring.queued);
	wf_rt_end_kthread(k);
	set_state(RING_OFF);
}

/* True: there is a ring. The first to ask for it waits until that is known. */
static bool is_there(void)
{
	uint32_t state = wf_load_acquire(&ring.state);

	if (WF_LIKELY(state == RING_ON || state == RING_OFF))
		return state == RING_ON;
	if (state == RING_UNTRIED && wf_cas(&ring.state, &state, (uint32_t)RING_STARTING)) {
		wf_list_init(&ring.queued);
		wf_list_init(&ring.in_kernel);
		wf_list_init(&ring.to_cancel);
		wf_store_seq_cst(&ring.bell, 1u);
		if (!wf_rt_spawn_helper(run))
			set_state(RING_UNTRIED); /* no memory, or not by one who is bound */
	}
	while ((state = wf_load_seq_cst(&ring.state)) == RING_STARTING)
		(void)sys_futex_wait(&ring.state, RING_STARTING, -1);
	return state == RING_ON;
}

long wf_ring_submit(struct wf_ring_op *op)
{
	bool is_taken;

	if (!is_there())
		return -ENOSYS;
	wf_list_init(&op->link);
	wf_list_init(&op->cancel_link);
	op->thread = wf_self();
	op->is_submitted = op->is_done = false;
	wf_spin_lock(&ring.lock);
	is_taken = !ring.stops && ring.nr_ops < MAX_OPS;
	if (is_taken) {
		ring.nr_ops++;
		wf_list_push_tail(&ring.queued, &op->link);
	}
	wf_spin_unlock(&ring.lock);
	if (is_taken)
		ring_bell();
	return is_taken ? 0 : -ENOSYS;
}

static bool is_done(struct wf_ring_op *op)
{
	bool is_done;

	wf_spin_lock(&ring.lock);
	is_done = op->is_done;
	wf_spin_unlock(&ring.lock);
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
	*out = park(op, WF_INTR, kind, what, deadline);
	return is_done(op);
}

void wf_ring_cancel(struct wf_ring_op *op, enum wf_wait kind, uint64_t what)
{
	bool is_asked;

	wf_spin_lock(&ring.lock);
	if (!op->is_done && !op->is_submitted)
		finish(op, -ECANCELED);
	is_asked = !op->is_done;
	if (is_asked)
		wf_list_push_tail(&ring.to_cancel, &op->cancel_link);
	wf_spin_unlock(&ring.lock);
	if (is_asked)
		ring_bell();
	while (!is_done(op))
		(void)park(op, 0, kind, what, WF_NEVER);
}

void wf_ring_stop(void)
{
	uint32_t state = RING_UNTRIED;

	if (wf_cas(&ring.state, &state, (uint32_t)RING_OFF))
		return;
	while ((state = wf_load_seq_cst(&ring.state)) == RING_STARTING)
		(void)sys_futex_wait(&ring.state, RING_STARTING, -1);
	wf_spin_lock(&ring.lock);
	ring.stops = true;
	wf_spin_unlock(&ring.lock);
	ring_bell();
	while ((state = wf_load_seq_cst(&ring.state)) == RING_ON)
		(void)sys_futex_wait(&ring.state, RING_ON, -1);
}

void wf_ring_forget(void)
{
	ring = (typeof(ring)){ 0 };
}
