// SPDX-License-Identifier: Apache-2.0
/*
 * A thread whose messages are always there when it asks for them, beside one that yields: how often their turns changed
 * with each of three families of calls.
 *
 * Run by: test_messages.py.
 */
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>

#define ROUNDS 30000

static long nr_rounds;
static bool is_over;

static bool one(int *fd, struct mmsghdr *m)
{
	char c = 'x';

	return send(fd[0], &c, 1, 0) == 1 && recv(fd[1], &c, 1, 0) == 1 && m;
}

static bool message(int *fd, struct mmsghdr *m)
{
	return sendmsg(fd[0], &m->msg_hdr, 0) == 1 && recvmsg(fd[1], &m->msg_hdr, 0) == 1;
}

static bool messages(int *fd, struct mmsghdr *m)
{
	return sendmmsg(fd[0], m, 1, 0) == 1 && recvmmsg(fd[1], m, 1, 0, NULL) == 1;
}

static void *yields(void *arg)
{
	long *turns = arg, seen = 0;

	while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
		long now = __atomic_load_n(&nr_rounds, __ATOMIC_RELAXED);

		*turns += now != seen;
		seen = now;
		sched_yield();
	}
	return arg;
}

static long turns_with(bool (*transfer)(int *fd, struct mmsghdr *m), int *fd)
{
	char c = 'x';
	struct iovec vec = { &c, 1 };
	struct mmsghdr m = { .msg_hdr = { .msg_iov = &vec, .msg_iovlen = 1 } };
	pthread_t other;
	long turns = 0;

	is_over = false;
	if (pthread_create(&other, NULL, yields, &turns))
		return -1;
	for (int i = 0; i < ROUNDS; i++) {
		if (!transfer(fd, &m))
			return -1;
		__atomic_fetch_add(&nr_rounds, 1, __ATOMIC_RELAXED);
	}
	__atomic_store_n(&is_over, true, __ATOMIC_RELAXED);
	pthread_join(other, NULL);
	return turns;
}

int main(void)
{
	int fd[2];

	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, fd))
		return 2;
	printf("%ld", turns_with(one, fd));
	printf(" %ld", turns_with(message, fd));
	printf(" %ld\n", turns_with(messages, fd));
	return 0;
}
