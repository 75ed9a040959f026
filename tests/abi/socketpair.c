// SPDX-License-Identifier: Apache-2.0
/*
 * Unix sockets between threads: streams, datagrams, big transfers, sendmsg with SCM_RIGHTS.
 */
#include <sys/socket.h>
#include <sys/uio.h>
#include "check.h"

#define BIG (2 << 20)

static int stream[2], dgram[2];

static void *echoes(void *arg)
{
	char buf[4096];
	ssize_t len;

	while ((len = read(stream[1], buf, sizeof(buf))) > 0)
		for (ssize_t at = 0; at < len;) {
			ssize_t part = send(stream[1], buf + at, len - at, 0);

			if (part <= 0)
				return NULL;
			at += part;
		}
	return arg;
}

static void *sends_big(void *arg)
{
	static char big[BIG];

	memset(big, 'b', BIG);
	CHECK_EQ(send(stream[0], big, BIG, 0), BIG);
	return arg;
}

static void *sends_fd(void *arg)
{
	int fds[2];
	char control[CMSG_SPACE(sizeof(int))] = { 0 }, byte = 'f';
	struct iovec part = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &part,
			      .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	CHECK_SYS(pipe(fds));
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fds[0], sizeof(int));
	let_others_block();
	CHECK_EQ(sendmsg(stream[0], &msg, 0), 1);
	close(fds[0]);
	CHECK_EQ(write(fds[1], "through", 7), 7);
	close(fds[1]);
	return arg;
}

static void *counts_dgrams(void *arg)
{
	char buf[100];

	for (int i = 1; i <= 500; i++) {
		ssize_t len = recv(dgram[1], buf, sizeof(buf), 0);

		CHECK_EQ(len, i % 90 + 1);
	}
	return arg;
}

int main(void)
{
	static char buf[BIG];
	char control[CMSG_SPACE(sizeof(int))];
	struct iovec part = { buf, 10 };
	struct msghdr msg = { .msg_iov = &part,
			      .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = sizeof(control) };

	CHECK_SYS(socketpair(AF_UNIX, SOCK_STREAM, 0, stream));
	pthread_t sender = start(sends_fd, NULL);
	CHECK_EQ(recvmsg(stream[1], &msg, MSG_CMSG_CLOEXEC), 1);
	CHECK_EQ(buf[0], 'f');
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	CHECK(c && c->cmsg_type == SCM_RIGHTS);
	int fd;
	memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	CHECK_EQ(read(fd, buf, 7), 7);
	CHECK(!memcmp(buf, "through", 7));
	join(sender);
	close(fd);
	ok("a descriptor sent to a blocked recvmsg");

	pthread_t echo = start(echoes, NULL);
	sender = start(sends_big, NULL);
	for (long sum = 0; sum < BIG;) {
		ssize_t len = recv(stream[0], buf + sum, BIG - sum, 0);

		if (CHECK_SYS(len) <= 0)
			break;
		sum += len;
	}
	for (int i = 0; i < BIG; i += 1000)
		CHECK_EQ(buf[i], 'b');
	join(sender);
	for (int i = 0; i < 2000; i++) {
		CHECK_EQ(write(stream[0], "ping", 4), 4);
		CHECK_EQ(recv(stream[0], buf, 4, MSG_WAITALL), 4);
	}
	CHECK_SYS(shutdown(stream[0], SHUT_WR));
	join(echo);
	close(stream[1]);
	CHECK_EQ(read(stream[0], buf, 1), 0);
	CHECK_ERRNO(send(stream[0], "x", 1, MSG_NOSIGNAL), EPIPE);
	ok("2 MiB echoed, 2000 round trips, shutdown");

	CHECK_SYS(socketpair(AF_UNIX, SOCK_DGRAM, 0, dgram));
	pthread_t reader = start(counts_dgrams, NULL);
	for (int i = 1; i <= 500; i++)
		CHECK_EQ(send(dgram[0], buf, i % 90 + 1, 0), i % 90 + 1);
	join(reader);
	ok("500 datagrams keep their borders");
	return finish();
}
