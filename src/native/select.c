// SPDX-License-Identifier: Apache-2.0
/*
 * Select, as programs call it; see weft/select.h. The part that knows of descriptors is here.
 *
 * The kernel says which of them are ready; as in linux/pollwait.c, all that is ours is when to ask again. A thread of weft's puts
 * a waiter on each, beside its nodes at the channels, and parks once: arm, look, then sleep. Any other kernel thread sleeps in
 * the kernel's poll(), with an eventfd more that whoever serves it writes to. That is made for the one wait: a program that
 * closes descriptors it does not know cannot take it away in between, and none is left behind.
 */
#include "linux/pollwait.h"
#include "native/misuse.h"
#include "native/wait.h"
#include "sched/clock.h"
#include "sync/chan.h"
#include "sync/select.h"
#include "weft/select.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <asm/unistd.h>
#include <time.h>
#include <unistd.h>

#define FEW 8

struct fds {
	struct pollfd *poll;        /* nr, and room for one more */
	struct lx_poll_slot *slots; /* as many */
	uint32_t nr;
};

static WF_FACE_CODE bool is_fd(const struct weft_op *op)
{
	return op->kind == WEFT_OP_FD && op->fd >= 0;
}

static WF_FACE_CODE void check(const struct weft_op *op)
{
	struct wf_chan *ch = op->object;

	if (op->kind < WEFT_OP_NONE || op->kind > WEFT_OP_FD)
		wf_misuse("weft_select: there is no operation of kind %d", op->kind);
	if ((op->kind == WEFT_OP_RECV || op->kind == WEFT_OP_SEND) && ch &&
	    op->bytes != ch->item_bytes)
		wf_misuse_of(ch, "weft_select: items of channel \"%s\" have %zu bytes, not %zu",
			     ch->name ? ch->name : "(no name)", ch->item_bytes, op->bytes);
}

/* --- the runtime's: descriptors, and the wait of a thread of weft's --- */

static WF_NOINLINE void arm(struct wf_thread *self, const struct fds *f)
{
	wf_self_enter(self);
	for (uint32_t i = 0; i < f->nr; i++)
		lx_poll_slot_init(&f->slots[i], f->poll[i].fd,
				  lx_poll_events((uint16_t)f->poll[i].events), false);
	lx_poll_arm(f->slots, f->nr);
	wf_self_leave(self);
}

static int sleep_beside(struct wf_thread *self, struct wf_select *s, const struct fds *f,
			int64_t until)
{
	int64_t wake = until;
	bool has_refused;
	uint32_t nr;
	int ret;

	if (!wf_wait_begin_again(&s->waiter, WF_WAIT_SELECT, s->nr))
		return 0;
	if (lx_poll_enqueue(f->slots, f->nr, &nr, &has_refused)) {
		(void)wf_park_abort();
		ret = wf_wait_over(&s->waiter, -EAGAIN);
	} else {
		if (has_refused)
			wake = WF_MIN(until, wf_now() + LX_POLL_LOOK_AGAIN_NS);
		ret = wf_wait_park_beside(self, &s->waiter, wake);
		if (ret == -ETIMEDOUT && wake < until)
			ret = -EAGAIN;
	}
	lx_poll_dequeue(f->slots, nr);
	return ret;
}

static WF_NOINLINE WF_PARKS int wait_parked(struct wf_thread *self, struct wf_select *s,
					    const struct fds *f, int64_t until)
{
	int ret = -ENOTSUP;

	wf_self_enter(self);
	if (WF_LIKELY(!wf_fd_is_private())) {
		wf_waiter_init(&s->waiter, self);
		ret = wf_select_begin(self, s);
		if (ret == -EAGAIN)
			ret = wf_select_end(self, s, sleep_beside(self, s, f, until));
	}
	wf_self_leave(self);
	return ret;
}

/* --- the program's --- */

/* By libc's clock: the runtime's is for its own code. */
static WF_FACE_CODE int64_t time_left(int64_t until)
{
	struct timespec now;

	if (until == WEFT_NEVER)
		return WEFT_NEVER;
	if (until <= WEFT_NOW)
		return 0;
	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return until - (now.tv_sec * WF_SEC + now.tv_nsec);
}

/* libc's poll() would be a cancellation point, and the waiter is at the channels. How many, or -errno. */
static WF_FACE_CODE int poll_for(struct pollfd *fds, uint32_t nr, int64_t ns)
{
	struct timespec left = { ns / WF_SEC, ns % WF_SEC };
	const int kept = errno;
	long ret = syscall(__NR_ppoll, fds, (unsigned long)nr, ns == WEFT_NEVER ? NULL : &left,
			   NULL, 0);

	if (ret < 0)
		ret = -errno;
	if (ret <= 0 && ns)
		wf_watched_run_handlers();
	errno = kept;
	return (int)ret;
}

static WF_FACE_CODE int wait_in_kernel(struct wf_select *s, const struct fds *f, int64_t until)
{
	const int kept = errno;
	bool is_over;
	int64_t ns;
	int ret, error;

	wf_waiter_init(&s->waiter, NULL);
	s->waiter.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->waiter.fd < 0) {
		ret = -errno;
		errno = kept;
		return ret;
	}
	ret = wf_select_begin(NULL, s);
	if (ret == -EAGAIN) {
		ns = wf_native_wait_ns(WF_MAX(time_left(until), 0), &is_over);
		f->poll[f->nr] = (struct pollfd){ .fd = s->waiter.fd, .events = POLLIN };
		if (!is_over)
			(void)poll_for(f->poll, f->nr + 1, ns);
		ret = wf_select_end(NULL, s, wf_wait_over(&s->waiter, -EAGAIN));
		error = is_over && ret == -EAGAIN ? wf_native_end_by_scope() : 0;
		ret = error ? error : ret;
	}
	(void)syscall(__NR_close, s->waiter.fd); /* no cancellation point */
	return ret;
}

/* The first descriptor that is ready: its operation's index, with revents set; or s->nr. */
static WF_FACE_CODE uint32_t first_ready(const struct wf_select *s, const struct fds *f)
{
	uint32_t at = 0;

	for (uint32_t i = 0; i < s->nr; i++) {
		if (!is_fd(&s->ops[i]))
			continue;
		if (f->poll[at].revents) {
			s->ops[i].revents = f->poll[at].revents;
			s->ops[i].result = 0;
			return i;
		}
		at++;
	}
	return s->nr;
}

/* -EAGAIN: something has moved, or a handler has run: look once more. */
static WF_FACE_CODE int look_and_wait(struct wf_select *s, const struct fds *f, int64_t until)
{
	struct wf_thread *self = wf_face_enter();
	int ret;

	if (self)
		arm(self, f);
	ret = poll_for(f->poll, f->nr, 0);
	if (ret < 0 && ret != -EINTR)
		return ret;
	s->ready_fd = ret > 0 ? first_ready(s, f) : s->nr;
	ret = wf_select_try(self, s);
	if (ret == -EAGAIN && time_left(until) <= 0)
		ret = -ETIMEDOUT;
	else if (ret == -EAGAIN)
		ret = self ? wait_parked(self, s, f, until) : wait_in_kernel(s, f, until);
	wf_face_leave(self);
	return ret == -EINTR ? -EAGAIN : ret;
}

static WF_FACE_CODE int select_with(struct wf_select *s, const struct fds *f, int64_t until)
{
	for (;;) {
		int ret = look_and_wait(s, f, until);

		if (ret != -EAGAIN && (ret != -ETIMEDOUT || until == WEFT_NOW))
			return ret;
		if (ret == -ETIMEDOUT) /* whose time it was: what came within it counts */
			until = WEFT_NOW;
	}
}

static WF_FACE_CODE int select_fds(struct wf_select *s, struct fds *f, int64_t until)
{
	f->nr = 0;
	for (uint32_t i = 0; i < s->nr; i++)
		if (is_fd(&s->ops[i]))
			f->poll[f->nr++] = (struct pollfd){ .fd = s->ops[i].fd,
							    .events = s->ops[i].events };
	return select_with(s, f, until);
}

static WF_FACE_CODE int select_without(struct wf_select *s, int64_t until)
{
	struct wf_thread *self;
	int ret;

	WF_NATIVE_WAIT(self, ret, wf_select_wait(self, s, until));
	return ret;
}

/* Memory for more than a few operations. */
struct many {
	struct wf_wait_node *nodes;
	uint32_t *order;
	struct fds fds;
};

static WF_FACE_CODE void *get_room(unsigned nr, struct many *m)
{
	const int kept = errno;
	size_t each = sizeof(*m->nodes) + sizeof(*m->order) + sizeof(*m->fds.poll) +
		      sizeof(*m->fds.slots);
	char *room = calloc((size_t)nr + 1, each);

	errno = kept;
	m->nodes = (void *)room;
	m->fds.slots = (void *)(m->nodes + nr);
	m->fds.poll = (void *)(m->fds.slots + nr);
	m->order = (void *)(m->fds.poll + nr + 1);
	return room;
}

static WF_FACE_CODE int select_many(struct wf_select *s, uint32_t nr_fds, int64_t until)
{
	struct many m;
	void *room = get_room(s->nr, &m);
	int ret;

	if (!room)
		return -ENOMEM;
	s->nodes = m.nodes;
	s->order = m.order;
	if (nr_fds)
		ret = select_fds(s, &m.fds, until);
	else
		ret = select_without(s, until);
	free(room);
	return ret;
}

static WF_FACE_CODE int select_few(struct wf_select *s, int64_t until)
{
	struct wf_wait_node nodes[FEW];
	uint32_t order[FEW];

	s->nodes = nodes;
	s->order = order;
	return select_without(s, until);
}

static WF_FACE_CODE WF_NOINLINE int select_few_fds(struct wf_select *s, int64_t until)
{
	struct wf_wait_node nodes[FEW];
	uint32_t order[FEW];
	struct lx_poll_slot slots[FEW];
	struct pollfd poll[FEW + 1];
	struct fds f = { .poll = poll, .slots = slots };

	s->nodes = nodes;
	s->order = order;
	return select_fds(s, &f, until);
}

WF_FACE int weft_select(struct weft_op *ops, unsigned nr, weft_time until)
{
	struct wf_select s = { .ops = ops, .nr = nr, .ready_fd = nr };
	uint32_t nr_fds = 0;
	int ret;

	for (unsigned i = 0; i < nr; i++) {
		check(&ops[i]);
		nr_fds += is_fd(&ops[i]);
		wf_watched_release(ops[i].object);
	}
	if (nr > FEW)
		ret = select_many(&s, nr_fds, until);
	else
		ret = nr_fds ? select_few_fds(&s, until) : select_few(&s, until);
	for (unsigned i = 0; i < nr; i++)
		wf_watched_acquire(ops[i].object);
	return ret;
}
