// SPDX-License-Identifier: Apache-2.0
/*
 * Rings of io_uring that belong to one thread: with a single issuer and deferred completions, enabled by
 * another thread, registered under a number of the thread's own. Their owner parks, is preempted and goes on
 * as threads do; nobody else may use them.
 */
#include "library.h"

#include <sched.h>
#include <stdbool.h>
#include <sys/mman.h>

#define SINGLE_ISSUER (1u << 12)
#define DEFER_TASKRUN (1u << 13)
#define R_DISABLED (1u << 6)
#define GETEVENTS 1u
#define REGISTERED_RING (1u << 4)
#define ENABLE_RINGS 12
#define RING_FDS 20
#define OFF_SQES 0x10000000
#define NR_OTHERS 3
#define ROUNDS 50

struct params {
	uint32_t sq_entries, cq_entries, flags, sq_thread_cpu, sq_thread_idle, features, wq_fd,
		resv[3];
	uint32_t sq_head, sq_tail, sq_mask, sq_ring_entries, sq_flags, sq_dropped, sq_array,
		sq_resv;
	uint64_t sq_addr;
	uint32_t cq_head, cq_tail, cq_mask, cq_ring_entries, cq_overflow, cqes, cq_flags, cq_resv;
	uint64_t cq_addr;
};

struct ring {
	int fd;
	struct params p;
	char *area;
	char *sqes;
	int nr_bad;
};

struct registration {
	uint32_t offset, resv;
	uint64_t data;
};

static int is_over;
static int fds[2];

static long enter(int fd, unsigned submit, unsigned wait, unsigned flags)
{
	return syscall(SYS_io_uring_enter, fd, submit, wait, flags, NULL, 0);
}

static long enroll(int fd, unsigned op, void *arg, unsigned nr)
{
	return syscall(SYS_io_uring_register, fd, op, arg, nr);
}

static bool open_ring(struct ring *r, uint32_t flags)
{
	*r = (struct ring){ .p.flags = flags };
	r->fd = (int)syscall(SYS_io_uring_setup, 8, &r->p);
	if (r->fd < 0)
		return false;
	r->area = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, 0);
	r->sqes = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, OFF_SQES);
	CHECK(r->area != MAP_FAILED && r->sqes != MAP_FAILED);
	return true;
}

static uint32_t *word(struct ring *r, uint32_t offset)
{
	return (uint32_t *)(r->area + offset);
}

/* A request that does nothing, submitted and waited for. */
static long do_nothing(struct ring *r, int fd, unsigned flags)
{
	uint32_t tail = *word(r, r->p.sq_tail), at = tail & *word(r, r->p.sq_mask);
	long ret;

	memset(r->sqes + at * 64, 0, 64);
	word(r, r->p.sq_array)[at] = at;
	STORE(word(r, r->p.sq_tail), tail + 1);
	do
		ret = enter(fd, 1, 1, GETEVENTS | flags);
	while (ret < 0 && errno == EINTR);
	if (ret < 0)
		STORE(word(r, r->p.sq_tail), tail);
	else if (LOAD(word(r, r->p.cq_tail)) != *word(r, r->p.cq_head))
		STORE(word(r, r->p.cq_head), *word(r, r->p.cq_head) + 1);
	else
		r->nr_bad++;
	return ret;
}

static void *keeps_busy(void *arg)
{
	char c;

	(void)arg;
	while (!LOAD(&is_over))
		if (read(fds[0], &c, 1) == 1)
			(void)!write(fds[1], &c, 1);
	return NULL;
}

static void use(struct ring *r, int fd, unsigned flags)
{
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_EQ(do_nothing(r, fd, flags), 1);
		if (i % 3 == 0)
			sched_yield();
		else if (i % 20 == 1)
			sleep_ns(MS);
	}
	CHECK_EQ(r->nr_bad, 0);
}

static void *uses_as_other(void *arg)
{
	struct ring *r = arg;

	CHECK_ERRNO(do_nothing(r, r->fd, 0), EEXIST);
	return NULL;
}

static void *owns(void *arg)
{
	struct ring r;

	if (!open_ring(&r, (uint32_t)(uintptr_t)arg))
		return (void *)(intptr_t)errno;
	use(&r, r.fd, 0);
	join(start(uses_as_other, &r));
	use(&r, r.fd, 0);
	CHECK_SYS(close(r.fd));
	return NULL;
}

static void *enables(void *arg)
{
	struct ring *r = arg;

	CHECK_ERRNO(do_nothing(r, r->fd, 0), EBADFD);
	CHECK_SYS(enroll(r->fd, ENABLE_RINGS, NULL, 0));
	use(r, r->fd, 0);
	return NULL;
}

static void enabled_by_another(void)
{
	struct ring r;

	CHECK(open_ring(&r, SINGLE_ISSUER | DEFER_TASKRUN | R_DISABLED));
	join(start(enables, &r));
	CHECK_ERRNO(do_nothing(&r, r.fd, 0), EEXIST);
	CHECK_SYS(close(r.fd));
	ok("a ring belongs to the thread that enables it");
}

static void *has_no_number(void *arg)
{
	/* EBADF where the kernel thread has used some ring before, be it for another thread. */
	CHECK(do_nothing(arg, 0, REGISTERED_RING) == -1 && (errno == EINVAL || errno == EBADF));
	return NULL;
}

static void *registers(void *arg)
{
	struct registration reg = { .offset = ~0u };
	struct ring r;

	(void)arg;
	CHECK(open_ring(&r, 0));
	reg.data = (uint64_t)r.fd;
	CHECK_EQ(enroll(r.fd, RING_FDS, &reg, 1), 1);
	CHECK_EQ(reg.offset, 0);
	use(&r, (int)reg.offset, REGISTERED_RING);
	join(start(has_no_number, &r));
	use(&r, (int)reg.offset, REGISTERED_RING);
	CHECK_SYS(close(r.fd));
	return NULL;
}

/* Before its first thread, in a process of its own. */
static int main_owns(void)
{
	struct ring r;

	CHECK(open_ring(&r, SINGLE_ISSUER | DEFER_TASKRUN));
	use(&r, r.fd, 0);
	join(start(uses_as_other, &r));
	use(&r, r.fd, 0);
	return finish();
}

static int main_registered(void)
{
	struct registration reg = { .offset = ~0u };
	struct ring r;

	CHECK(open_ring(&r, 0));
	reg.data = (uint64_t)r.fd;
	CHECK_EQ(enroll(r.fd, RING_FDS, &reg, 1), 1);
	join(start(has_no_number, &r));
	use(&r, (int)reg.offset, REGISTERED_RING);
	return finish();
}

int main(int argc, char **argv)
{
	pthread_t others[NR_OTHERS];
	void *failed;

	if (argc > 1)
		return strcmp(argv[1], "owns") == 0 ? main_owns() : main_registered();
	CHECK_SYS(pipe(fds));
	CHECK_EQ(write(fds[1], "xx", 2), 2);
	for (int i = 0; i < NR_OTHERS; i++)
		others[i] = start(keeps_busy, NULL);
	failed = join(start(owns, (void *)(uintptr_t)(SINGLE_ISSUER | DEFER_TASKRUN)));
	if (failed) {
		dprintf(2, "no such rings here: %s\n", strerror((int)(intptr_t)failed));
		return EXIT_SKIP;
	}
	ok("a ring with a single issuer belongs to the thread that made it");
	enabled_by_another();
	join(start(registers, NULL));
	ok("a registered ring has a number for one thread");
	STORE(&is_over, 1);
	CHECK_EQ(write(fds[1], "xxx", 3), 3);
	for (int i = 0; i < NR_OTHERS; i++)
		join(others[i]);
	CHECK_EQ(run_self("owns"), 0);
	CHECK_EQ(run_self("registered"), 0);
	ok("rings of main from before the first thread");
	return finish();
}
