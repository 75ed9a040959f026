// SPDX-License-Identifier: Apache-2.0
/* POSIX asynchronous I/O, which libc makes of threads: reads, writes, lists, waits, notification, errors. */
#include <aio.h>
#include <fcntl.h>

#include "check.h"

#define NR_BLOCKS 16
#define BLOCK 512

static int nr_notified; /* atomic */
static int fd;
static char path[] = "/tmp/weft-aio-XXXXXX";

/* libc begins its thread with nothing blocked, and it may not have ended when the signal of test_signal() comes. */
static void notified(union sigval value)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
	CHECK_EQ(value.sival_int, 7);
	ADD(&nr_notified, 1);
}

static void wait_for(struct aiocb *cb)
{
	const struct aiocb *list[1] = { cb };

	while (aio_error(cb) == EINPROGRESS)
		CHECK(aio_suspend(list, 1, NULL) == 0 || errno == EINTR);
}

static void *reads_and_writes(void *arg)
{
	static char out[NR_BLOCKS][BLOCK], in[NR_BLOCKS][BLOCK];
	struct aiocb cb[NR_BLOCKS];

	for (int i = 0; i < NR_BLOCKS; i++) {
		memset(out[i], 'a' + i, BLOCK);
		cb[i] = (struct aiocb){ .aio_fildes = fd,
					.aio_buf = out[i],
					.aio_nbytes = BLOCK,
					.aio_offset = i * BLOCK };
		CHECK_SYS(aio_write(&cb[i]));
	}
	for (int i = 0; i < NR_BLOCKS; i++) {
		wait_for(&cb[i]);
		CHECK_EQ(aio_error(&cb[i]), 0);
		CHECK_EQ(aio_return(&cb[i]), BLOCK);
	}
	cb[0] = (struct aiocb){ .aio_fildes = fd };
	CHECK_SYS(aio_fsync(O_SYNC, &cb[0]));
	wait_for(&cb[0]);
	CHECK_EQ(aio_return(&cb[0]), 0);
	for (int i = 0; i < NR_BLOCKS; i++) {
		cb[i] = (struct aiocb){ .aio_fildes = fd,
					.aio_buf = in[i],
					.aio_nbytes = BLOCK,
					.aio_offset = i * BLOCK };
		CHECK_SYS(aio_read(&cb[i]));
	}
	for (int i = 0; i < NR_BLOCKS; i++) {
		wait_for(&cb[i]);
		CHECK_EQ(aio_return(&cb[i]), BLOCK);
		CHECK(memcmp(in[i], out[i], BLOCK) == 0);
	}
	return arg;
}

static void test_lists(void)
{
	char buf[2][BLOCK];
	struct aiocb cb[2], *list[3] = { &cb[0], NULL, &cb[1] };
	struct sigevent event = { .sigev_notify = SIGEV_THREAD,
				  .sigev_notify_function = notified,
				  .sigev_value.sival_int = 7 };

	for (int i = 0; i < 2; i++)
		cb[i] = (struct aiocb){ .aio_fildes = fd,
					.aio_buf = buf[i],
					.aio_nbytes = BLOCK,
					.aio_offset = i * BLOCK,
					.aio_lio_opcode = LIO_READ };
	CHECK_SYS(lio_listio(LIO_WAIT, list, 3, NULL));
	CHECK_EQ(aio_return(&cb[0]), BLOCK);
	CHECK_EQ(aio_return(&cb[1]), BLOCK);
	CHECK_EQ(buf[1][0], 'b');
	CHECK_SYS(lio_listio(LIO_NOWAIT, list, 3, &event));
	while (!LOAD(&nr_notified))
		sched_yield();
	CHECK_EQ(aio_return(&cb[0]), BLOCK);
	CHECK_ERRNO(lio_listio(77, list, 3, NULL), EINVAL);
}

static void test_signal(void)
{
	char buf[BLOCK];
	struct aiocb cb = { .aio_fildes = fd,
			    .aio_buf = buf,
			    .aio_nbytes = BLOCK,
			    .aio_sigevent = { .sigev_notify = SIGEV_SIGNAL,
					      .sigev_signo = SIGRTMIN,
					      .sigev_value.sival_int = 9 } };
	siginfo_t info;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	CHECK_SYS(aio_read(&cb));
	CHECK_EQ(sigwaitinfo(&set, &info), SIGRTMIN);
	CHECK_EQ(info.si_code, SI_ASYNCIO);
	CHECK_EQ(info.si_value.sival_int, 9);
	CHECK_EQ(info.si_pid, getpid());
	wait_for(&cb);
	CHECK_EQ(aio_return(&cb), BLOCK);
}

static void test_pipe_and_cancel(void)
{
	struct timespec moment = { 0, MS };
	char buf[4] = "";
	int pipe_fds[2];
	struct aiocb cb;
	const struct aiocb *list[1] = { &cb };

	CHECK_SYS(pipe(pipe_fds));
	cb = (struct aiocb){ .aio_fildes = pipe_fds[0], .aio_buf = buf, .aio_nbytes = 4 };
	CHECK_SYS(aio_read(&cb));
	CHECK_ERRNO(aio_suspend(list, 1, &moment), EAGAIN);
	CHECK_EQ(aio_error(&cb), EINPROGRESS);
	CHECK_SYS(write(pipe_fds[1], "abcd", 4));
	wait_for(&cb);
	CHECK_EQ(aio_return(&cb), 4);
	CHECK_EQ(aio_cancel(pipe_fds[0], NULL), AIO_ALLDONE);
	CHECK_ERRNO(aio_cancel(1000, NULL), EBADF);
	cb.aio_fildes = 1000;
	CHECK_SYS(aio_read(&cb));
	wait_for(&cb);
	CHECK_EQ(aio_error(&cb), EBADF);
	CHECK_EQ(aio_return(&cb), -1);
	cb.aio_reqprio = -1;
	CHECK_ERRNO(aio_read(&cb), EINVAL);
}

int main(void)
{
	struct aioinit init = { .aio_threads = 4, .aio_num = 64 };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	aio_init(&init);
	fd = (int)CHECK_SYS(mkstemp(path));
	unlink(path);
	reads_and_writes(NULL);
	join(start(reads_and_writes, NULL));
	ok("reads, writes, syncs");
	test_lists();
	ok("lists");
	test_signal();
	ok("a signal");
	test_pipe_and_cancel();
	ok("a pipe, cancelling, errors");
	return finish();
}
