// SPDX-License-Identifier: Apache-2.0
/*
 * The kernel's own asynchronous I/O: requests for files, and one for a pipe that is waited for while others make it
 * ready; taken back, and waited for with another mask.
 */
#include "beside.h"

#include <fcntl.h>
#include <linux/aio_abi.h>
#include <poll.h>
#include <sys/mman.h>

static aio_context_t ctx;

struct mask_arg {
	const uint64_t *mask;
	size_t bytes;
};

static long submit(struct iocb *cb)
{
	return CALL(io_submit, ctx, 1L, &cb);
}

static int64_t take(const struct iocb *cb)
{
	struct io_event e = { 0 };

	CHECK_EQ(CALL(io_getevents, ctx, 1L, 1L, &e, NULL), 1); /* nobody interrupts it */
	CHECK_EQ(e.obj, (uintptr_t)cb);
	return e.res;
}

static void files(void)
{
	char buf[16] = "";
	int fd = (int)CHECK_SYS(memfd_create("aio", 0));
	struct iocb cb = { .aio_lio_opcode = IOCB_CMD_PWRITE,
			   .aio_fildes = (uint32_t)fd,
			   .aio_buf = (uintptr_t) "0123456789",
			   .aio_nbytes = 10 };

	CHECK_EQ(submit(&cb), 1);
	CHECK_EQ(take(&cb), 10);
	cb = (struct iocb){ .aio_lio_opcode = IOCB_CMD_PREAD,
			    .aio_fildes = (uint32_t)fd,
			    .aio_buf = (uintptr_t)buf,
			    .aio_nbytes = sizeof(buf),
			    .aio_offset = 3 };
	CHECK_EQ(submit(&cb), 1);
	CHECK_EQ(take(&cb), 7);
	CHECK_STR(buf, "3456789");
	cb.aio_fildes = 1000000;
	CHECK_ERRNO(submit(&cb), EBADF);
	close(fd);
}

static int fds[2], may_write;

static struct iocb until_readable(void)
{
	return (struct iocb){ .aio_lio_opcode = IOCB_CMD_POLL,
			      .aio_fildes = (uint32_t)fds[0],
			      .aio_buf = POLLIN };
}

static void *makes_ready(void *arg)
{
	while (!LOAD(&may_write))
		sched_yield();
	CHECK_EQ(write(fds[1], "x", 1), 1);
	return arg;
}

/* The writer has not begun yet when the wait begins, or it has: on one processor the wait must let it. */
static void waits(void)
{
	struct iocb cb = until_readable();
	pthread_t t = start(makes_ready, NULL);
	char c;

	if (submit(&cb) != 1) { /* before Linux 4.18 */
		CHECK_EQ(errno, EINVAL);
		STORE(&may_write, 1);
	} else {
		STORE(&may_write, 1);
		CHECK(take(&cb) & POLLIN);
	}
	join(t);
	STORE(&may_write, 0);
	CHECK_EQ(read(fds[0], &c, 1), 1);
}

static void waits_with_mask(void)
{
	uint64_t none = 0;
	struct mask_arg mask = { &none, sizeof(none) };
	struct io_event e = { 0 };
	struct iocb cb = until_readable();
	pthread_t t;
	char c;

	if (CALL(io_pgetevents, ctx, 0L, 1L, &e, &(struct timespec){ 0, 0 }, &mask) == -1) {
		CHECK(is_refused(-1));
		return;
	}
	t = start(makes_ready, NULL);
	CHECK_EQ(submit(&cb), 1);
	STORE(&may_write, 1);
	CHECK_EQ(CALL(io_pgetevents, ctx, 1L, 1L, &e, NULL, &mask), 1);
	CHECK_EQ(e.obj, (uintptr_t)&cb);
	join(t);
	STORE(&may_write, 0);
	CHECK_EQ(read(fds[0], &c, 1), 1);
}

static void takes_back(void)
{
	struct io_event e = { 0 };
	struct iocb cb = until_readable();

	if (submit(&cb) != 1)
		return;
	CHECK_EQ(CALL(io_getevents, ctx, 0L, 1L, &e, &(struct timespec){ 0, 0 }), 0);
	CHECK_ERRNO(CALL(io_cancel, ctx, &cb, &e), EINPROGRESS);
	CHECK_EQ(take(&cb), 0);
	CHECK_ERRNO(CALL(io_cancel, ctx, &cb, &e), EINVAL);
}

static void *ends_context(void *arg)
{
	CHECK_SYS(CALL(io_destroy, ctx));
	CHECK_ERRNO(CALL(io_destroy, ctx), EINVAL);
	return arg;
}

static void *makes_context(void *arg)
{
	if (CALL(io_setup, 8, &ctx) == 0)
		return arg;
	CHECK(is_refused(-1) || errno == EAGAIN);
	return NULL;
}

int main(void)
{
	CHECK_SYS(pipe(fds));
	if (!join(start(makes_context, fds)))
		return EXIT_SKIP;
	start_beside();
	calls(files, "files");
	calls(waits, "a wait that another thread ends");
	calls(waits_with_mask, "with a mask");
	calls(takes_back, "taken back");
	stop_beside();
	join(start(ends_context, NULL));
	return finish();
}
