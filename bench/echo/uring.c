// SPDX-License-Identifier: Apache-2.0
/*
 * io_uring: receive and send are requests of one ring. Every turn hands in what has gathered, waits for one
 * completion at least and handles all that have come: one system call for as many requests as are ready.
 *
 * Raw system calls, since distributions' liburing headers are older than the kernels. A connection has one
 * request in the ring at any time, first a receive, then the send of what came; its buffer is free in between.
 */
#include <errno.h>
#include <linux/io_uring.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "echo.h"

#define NR_ENTRIES 4096
#define NR_COMPLETIONS 65536

/* Newer than the headers that we want to build with. */
#define SETUP_SINGLE_ISSUER (1U << 12)
#define SETUP_DEFER_TASKRUN (1U << 13)

struct ring {
	int fd;
	unsigned *sq_head, *sq_tail, *sq_mask, *sq_array;
	unsigned *cq_head, *cq_tail, *cq_mask;
	struct io_uring_sqe *sqes;
	struct io_uring_cqe *cqes;
	unsigned nr_pending; /* filled in, not yet handed in */
};

struct connection {
	int fd;
	unsigned to_send; /* 0: the request in the ring is a receive */
	unsigned sent;
	char buf[ECHO_BUFFER_BYTES];
};

static struct connection the_listener; /* stands for accept in user_data */
static struct ring ring;

static int setup(struct io_uring_params *p)
{
	static const unsigned ways[] = { SETUP_SINGLE_ISSUER | SETUP_DEFER_TASKRUN, 0 };
	int fd = -1;

	for (size_t i = 0; fd < 0 && i < sizeof(ways) / sizeof(ways[0]); i++) {
		*p = (struct io_uring_params){ .flags = ways[i] | IORING_SETUP_CQSIZE,
					       .cq_entries = NR_COMPLETIONS };
		fd = (int)syscall(SYS_io_uring_setup, NR_ENTRIES, p);
	}
	return fd;
}

static void *map(int fd, size_t bytes, off_t offset)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, offset);

	if (at == MAP_FAILED)
		echo_die("map the ring", errno);
	return at;
}

void echo_prepare_uring(void)
{
	struct ring *r = &ring;
	struct io_uring_params p;
	char *sq, *cq;

	r->fd = setup(&p);
	if (r->fd < 0) {
		fprintf(stderr, "echo-server: this kernel gives no io_uring: %s\n",
			strerror(errno));
		exit(ECHO_EXIT_UNAVAILABLE);
	}
	sq = map(r->fd, p.sq_off.array + p.sq_entries * sizeof(unsigned), IORING_OFF_SQ_RING);
	cq = map(r->fd, p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe),
		 IORING_OFF_CQ_RING);
	r->sqes = map(r->fd, p.sq_entries * sizeof(struct io_uring_sqe), IORING_OFF_SQES);
	r->sq_head = (unsigned *)(sq + p.sq_off.head);
	r->sq_tail = (unsigned *)(sq + p.sq_off.tail);
	r->sq_mask = (unsigned *)(sq + p.sq_off.ring_mask);
	r->sq_array = (unsigned *)(sq + p.sq_off.array);
	r->cq_head = (unsigned *)(cq + p.cq_off.head);
	r->cq_tail = (unsigned *)(cq + p.cq_off.tail);
	r->cq_mask = (unsigned *)(cq + p.cq_off.ring_mask);
	r->cqes = (struct io_uring_cqe *)(cq + p.cq_off.cqes);
}

static void enter(struct ring *r, unsigned wait_for)
{
	long ret = syscall(SYS_io_uring_enter, r->fd, r->nr_pending, wait_for,
			   IORING_ENTER_GETEVENTS, NULL, 0);

	if (ret >= 0)
		r->nr_pending -= (unsigned)ret;
	else if (errno != EINTR && errno != EBUSY && errno != EAGAIN)
		echo_die("io_uring_enter", errno);
}

static void queue(struct ring *r, const struct io_uring_sqe *sqe)
{
	unsigned tail = *r->sq_tail, at;

	while (tail - __atomic_load_n(r->sq_head, __ATOMIC_ACQUIRE) > *r->sq_mask)
		enter(r, 0);
	at = tail & *r->sq_mask;
	r->sqes[at] = *sqe;
	r->sq_array[at] = at;
	__atomic_store_n(r->sq_tail, tail + 1, __ATOMIC_RELEASE);
	r->nr_pending++;
}

static void queue_accept(struct ring *r)
{
	struct io_uring_sqe sqe = { .opcode = IORING_OP_ACCEPT,
				    .fd = the_listener.fd,
				    .accept_flags = SOCK_CLOEXEC,
				    .user_data = (uintptr_t)&the_listener };

	queue(r, &sqe);
}

static void queue_next(struct ring *r, struct connection *c)
{
	struct io_uring_sqe sqe = { .fd = c->fd, .user_data = (uintptr_t)c };

	if (c->to_send > 0) {
		sqe.opcode = IORING_OP_SEND;
		sqe.addr = (uintptr_t)(c->buf + c->sent);
		sqe.len = c->to_send - c->sent;
		sqe.msg_flags = MSG_NOSIGNAL;
	} else {
		sqe.opcode = IORING_OP_RECV;
		sqe.addr = (uintptr_t)c->buf;
		sqe.len = sizeof(c->buf);
	}
	queue(r, &sqe);
}

static void accepted(struct ring *r, int fd)
{
	struct connection *c;

	queue_accept(r);
	if (fd < 0 && fd != -ECONNABORTED && fd != -EINTR && fd != -EAGAIN)
		echo_die("accept", -fd);
	if (fd < 0)
		return;
	c = malloc(sizeof(*c));
	if (!c)
		echo_die("memory", ENOMEM);
	c->fd = fd;
	c->to_send = c->sent = 0;
	echo_set_nodelay(fd);
	queue_next(r, c);
}

static void completed(struct ring *r, struct connection *c, int result)
{
	if (result == -EINTR || result == -EAGAIN) {
		queue_next(r, c);
		return;
	}
	if (result <= 0) {
		close(c->fd);
		free(c);
		return;
	}
	if (c->to_send == 0) {
		c->to_send = (unsigned)result;
		c->sent = 0;
	} else {
		c->sent += (unsigned)result;
		if (c->sent == c->to_send)
			c->to_send = 0;
	}
	queue_next(r, c);
}

void echo_serve_uring(int listener)
{
	the_listener.fd = listener;
	queue_accept(&ring);
	for (;;) {
		unsigned head = *ring.cq_head, tail;

		enter(&ring, 1);
		tail = __atomic_load_n(ring.cq_tail, __ATOMIC_ACQUIRE);
		for (; head != tail; head++) {
			struct io_uring_cqe cqe = ring.cqes[head & *ring.cq_mask];
			struct connection *c = (struct connection *)(uintptr_t)cqe.user_data;

			/* Free before what it leads to, which may have to enter the kernel. */
			__atomic_store_n(ring.cq_head, head + 1, __ATOMIC_RELEASE);
			if (c == &the_listener)
				accepted(&ring, cqe.res);
			else
				completed(&ring, c, cqe.res);
		}
	}
}
