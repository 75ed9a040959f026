// SPDX-License-Identifier: Apache-2.0
/*
 * What a socket call may be told: SO_RCVTIMEO, SO_SNDTIMEO, MSG_DONTWAIT, MSG_PEEK, MSG_WAITALL;
 * shutdown wakes a blocked reader.
 */
#include <sys/socket.h>
#include <sys/time.h>
#include "check.h"

static int pair[2];

static void *reads(void *arg)
{
	char c;

	(void)arg;
	return (void *)(intptr_t)recv(pair[0], &c, 1, 0);
}

static void *waits_for_all(void *arg)
{
	char buf[10];

	(void)arg;
	ssize_t len = recv(pair[0], buf, 10, MSG_WAITALL);

	CHECK(len < 4 || !memcmp(buf, "abcd", 4));
	return (void *)(intptr_t)len;
}

static void *times_out(void *arg)
{
	struct timeval tv = { .tv_usec = 30000 };
	char c;
	int64_t before = now_ns();

	CHECK_SYS(setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)));
	CHECK_ERRNO(recv(pair[0], &c, 1, 0), EAGAIN);
	CHECK(now_ns() - before >= 29 * MS);
	before = now_ns();
	CHECK_ERRNO(read(pair[0], &c, 1), EAGAIN);
	CHECK(now_ns() - before >= 29 * MS);
	tv.tv_usec = 0;
	CHECK_SYS(setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)));
	return arg;
}

static void *fills(void *arg)
{
	struct timeval tv = { .tv_usec = 30000 };
	static char block[65536];
	int64_t before = now_ns();
	ssize_t len;

	CHECK_SYS(setsockopt(pair[1], SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)));
	while ((len = send(pair[1], block, sizeof(block), 0)) > 0)
		;
	CHECK(len == -1 && errno == EAGAIN);
	CHECK(now_ns() - before >= 29 * MS);
	return arg;
}

int main(void)
{
	char buf[16];

	CHECK_SYS(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	CHECK_ERRNO(recv(pair[0], buf, 1, MSG_DONTWAIT), EAGAIN);
	CHECK_EQ(send(pair[1], "hello", 5, MSG_DONTWAIT), 5);
	CHECK_EQ(recv(pair[0], buf, 3, MSG_PEEK), 3);
	CHECK_EQ(recv(pair[0], buf, sizeof(buf), MSG_PEEK | MSG_DONTWAIT), 5);
	CHECK_EQ(recv(pair[0], buf, sizeof(buf), 0), 5);
	CHECK(!memcmp(buf, "hello", 5));
	ok("MSG_DONTWAIT and MSG_PEEK");

	pthread_t t = start(waits_for_all, NULL);
	for (int i = 0; i < 10; i++) {
		if (i == 2)
			let_others_block();
		CHECK_EQ(send(pair[1], &"abcdefghij"[i], 1, 0), 1);
	}
	CHECK_EQ((intptr_t)join(t), 10);
	ok("MSG_WAITALL waits for all");

	join(start(times_out, NULL));
	ok("SO_RCVTIMEO");

	t = start(reads, NULL);
	let_others_block();
	CHECK_SYS(shutdown(pair[0], SHUT_RD));
	CHECK_EQ((intptr_t)join(t), 0);
	close(pair[0]);
	close(pair[1]);
	ok("shutdown of one's own side ends a read");

	CHECK_SYS(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	t = start(waits_for_all, NULL);
	CHECK_EQ(send(pair[1], "abcd", 4, 0), 4);
	let_others_block();
	close(pair[1]);
	CHECK_EQ((intptr_t)join(t), 4);
	t = start(reads, NULL);
	CHECK_EQ((intptr_t)join(t), 0);
	close(pair[0]);
	ok("the end of the stream ends MSG_WAITALL early");

	CHECK_SYS(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	join(start(fills, NULL));
	ok("SO_SNDTIMEO");
	return finish();
}
