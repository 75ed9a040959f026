// SPDX-License-Identifier: Apache-2.0
/*
 * Pipes, the writing side: big writes block in parts, EPIPE and SIGPIPE, EAGAIN, writev.
 */
#include <fcntl.h>
#include <sys/uio.h>
#include "check.h"

#define BIG (3 << 20)

static int fds[2];
static void *volatile bad_address = (void *)8; /* volatile: unknown to the compiler */
static volatile sig_atomic_t nr_sigpipe;
static pthread_t sigpipe_thread;

static void on_sigpipe(int sig)
{
	(void)sig;
	nr_sigpipe++;
	sigpipe_thread = pthread_self();
}

static void *reads_all(void *arg)
{
	static unsigned char buf[5000];
	unsigned char want = 0;
	long sum = 0;
	ssize_t len;

	while ((len = read(fds[0], buf, sizeof(buf))) > 0) {
		for (ssize_t i = 0; i < len; i++)
			if (buf[i] != want++)
				return (void *)-1;
		sum += len;
	}
	(void)arg;
	return (void *)sum;
}

static void *writes_big(void *arg)
{
	static unsigned char big[BIG];

	(void)arg;
	for (int i = 0; i < BIG; i++)
		big[i] = (unsigned char)i;
	CHECK_EQ(write(fds[1], big, BIG), BIG);
	struct iovec parts[2] = { { big, 256 * 300 }, { big, 256 * 1000 } };
	CHECK_EQ(writev(fds[1], parts, 2), 256 * 1300);
	close(fds[1]);
	return NULL;
}

static void *breaks_pipe(void *arg)
{
	CHECK_ERRNO(write(fds[1], "x", 1), EPIPE);
	CHECK(pthread_equal(sigpipe_thread, pthread_self()));
	return arg;
}

static void *fills_and_breaks(void *arg)
{
	static char block[1 << 20];
	ssize_t len = write(fds[1], block, sizeof(block));

	/* Blocked in the middle when the reader went: a part or EPIPE, as the pipe was then. */
	CHECK(len > 0 || (len == -1 && errno == EPIPE));
	CHECK_ERRNO(write(fds[1], block, 1), EPIPE);
	return arg;
}

static void *writes_a_part(void *arg)
{
	static char block[1 << 20];
	struct iovec halves[2] = { { block, sizeof(block) / 2 },
				   { block + sizeof(block) / 2, sizeof(block) / 2 } };
	ssize_t len = arg ? writev(fds[1], halves, 2) : write(fds[1], block, sizeof(block));

	CHECK(pthread_equal(sigpipe_thread, pthread_self()));
	return (void *)len;
}

/* The part that was written before the reader went is told, and so is that it went. */
static void leave_in_the_middle(void *by_vector)
{
	static char block[100000];
	ssize_t sum = 0, len;
	pthread_t writer;

	nr_sigpipe = 0;
	CHECK_SYS(pipe(fds));
	writer = start(writes_a_part, by_vector);
	while (sum < (ssize_t)sizeof(block)) {
		len = CHECK_SYS(read(fds[0], block, sizeof(block) - (size_t)sum));
		sum += len;
	}
	close(fds[0]);
	len = (ssize_t)join(writer);
	CHECK(len >= sum && len < 1 << 20);
	CHECK_EQ(nr_sigpipe, 1);
	close(fds[1]);
}

/* Small parts and none before a large one: however much goes at once, it goes on in the right place. */
static void *writes_parts(void *arg)
{
	static const size_t lengths[] = { 1, 0, 4095, 3, 70000, 0, 5, 65536, 300001 };
	enum {
		NR_PARTS = sizeof(lengths) / sizeof(lengths[0])
	};
	static unsigned char bytes[450000];
	struct iovec parts[NR_PARTS];
	size_t at = 0;

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)(i % 251);
	for (int i = 0; i < NR_PARTS; i++) {
		parts[i] = (struct iovec){ bytes + at, lengths[i] };
		at += lengths[i];
	}
	CHECK_EQ(writev(fds[1], parts, NR_PARTS), at);
	CHECK_EQ(pwritev2(fds[1], parts, 4, -1, 0), 4099);
	close(fds[1]);
	(void)arg;
	return (void *)at;
}

static void write_parts(void)
{
	static unsigned char got[450000];
	pthread_t writer;
	size_t sum = 0, nr_wrong = 0, all;
	ssize_t len;

	CHECK_SYS(pipe(fds));
	writer = start(writes_parts, NULL);
	while ((len = read(fds[0], got + sum, 3000)) > 0)
		sum += (size_t)len;
	all = (size_t)join(writer);
	CHECK_EQ(sum, all + 4099);
	for (size_t i = 0; i < sum; i++)
		nr_wrong += got[i] != (i < all ? i : i - all) % 251;
	CHECK_EQ(nr_wrong, 0);
	close(fds[0]);
}

int main(void)
{
	static char block[65536];

	CHECK_SYS(pipe(fds));
	pthread_t reader = start(reads_all, NULL), writer = start(writes_big, NULL);
	join(writer);
	CHECK_EQ((intptr_t)join(reader), BIG + 256 * 1300);
	close(fds[0]);
	ok("3 MiB in one write, in order");

	write_parts();
	ok("a vector of unequal parts");

	signal(SIGPIPE, on_sigpipe);
	CHECK_SYS(pipe(fds));
	close(fds[0]);
	join(start(breaks_pipe, NULL));
	CHECK_EQ(nr_sigpipe, 1);
	close(fds[1]);
	ok("EPIPE, and SIGPIPE on the writing thread");
	leave_in_the_middle(NULL);
	leave_in_the_middle(block);
	ok("SIGPIPE after a part");

	signal(SIGPIPE, SIG_IGN);
	CHECK_SYS(pipe(fds));
	writer = start(fills_and_breaks, NULL);
	CHECK_EQ(read(fds[0], block, 1), 1);
	close(fds[0]);
	join(writer);
	close(fds[1]);
	ok("the reader leaves while a write is blocked");

	CHECK_SYS(pipe2(fds, O_NONBLOCK));
	long sum = 0;
	ssize_t len;
	while ((len = write(fds[1], block, sizeof(block))) > 0)
		sum += len;
	CHECK(len == -1 && errno == EAGAIN);
	CHECK_EQ(sum, fcntl(fds[1], F_GETPIPE_SZ));
	CHECK_EQ(fcntl(fds[1], F_GETFL) & O_NONBLOCK, O_NONBLOCK);
	while ((len = read(fds[0], block, sizeof(block))) > 0)
		sum -= len;
	CHECK(len == -1 && errno == EAGAIN);
	CHECK_EQ(sum, 0);
	CHECK_ERRNO(write(fds[1], bad_address, 1), EFAULT);
	CHECK_ERRNO(write(fds[0], "x", 1), EBADF);
	ok("non-blocking: EAGAIN when full and when empty");
	return finish();
}
