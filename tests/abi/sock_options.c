// SPDX-License-Identifier: Apache-2.0
/*
 * Options and flags of socket calls: SO_RCVTIMEO, SO_SNDTIMEO, SO_RCVLOWAT, MSG_DONTWAIT, MSG_PEEK, MSG_WAITALL, MSG_FASTOPEN;
 * shutdown wakes a blocked reader.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
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

static void *reads_much(void *arg)
{
	char buf[16];

	return (void *)(intptr_t)(arg ? read(pair[0], buf, sizeof(buf))
				      : recv(pair[0], buf, sizeof(buf), 0));
}

static void check_low_mark(void)
{
	int mark = 6;

	CHECK_SYS(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	CHECK_SYS(setsockopt(pair[0], SOL_SOCKET, SO_RCVLOWAT, &mark, sizeof(mark)));
	for (intptr_t i = 0; i < 2; i++) {
		pthread_t t;

		CHECK_EQ(send(pair[1], "abc", 3, 0), 3);
		t = start(reads_much, (void *)i);
		let_others_block();
		CHECK_EQ(send(pair[1], "def", 3, 0), 3);
		CHECK_EQ((intptr_t)join(t), 6);
	}
	CHECK_EQ(send(pair[1], "abc", 3, 0), 3);
	close(pair[1]);
	CHECK_EQ((intptr_t)join(start(reads_much, NULL)), 3);
	close(pair[0]);
	ok("SO_RCVLOWAT");
}

/* With or without a cookie, and whatever the system allows: a blocking call connects and sends. */
static void check_fast_open(void)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int listener = (int)CHECK_SYS(socket(AF_INET, SOCK_STREAM, 0)), queue = 5;
	struct iovec v = { (char *)"hello", 5 };
	struct msghdr m = {
		.msg_name = &addr, .msg_namelen = sizeof(addr), .msg_iov = &v, .msg_iovlen = 1
	};
	socklen_t len = sizeof(addr);

	CHECK_SYS(bind(listener, (struct sockaddr *)&addr, len));
	(void)setsockopt(listener, IPPROTO_TCP, TCP_FASTOPEN, &queue, sizeof(queue));
	CHECK_SYS(listen(listener, 5));
	CHECK_SYS(getsockname(listener, (struct sockaddr *)&addr, &len));
	for (int i = 0; i < 4; i++) {
		int fd = (int)CHECK_SYS(socket(AF_INET, SOCK_STREAM, 0)), peer;
		char buf[8];
		ssize_t sent = i % 2 ? sendmsg(fd, &m, MSG_FASTOPEN)
				     : sendto(fd, "hello", 5, MSG_FASTOPEN,
					      (struct sockaddr *)&addr, len);

		if (sent == -1 && errno == EOPNOTSUPP) {
			close(fd);
			break;
		}
		CHECK_EQ(sent, 5);
		peer = (int)CHECK_SYS(accept(listener, NULL, NULL));
		CHECK_EQ(recv(peer, buf, sizeof(buf), 0), 5);
		close(peer);
		close(fd);
	}
	close(listener);
	ok("MSG_FASTOPEN");
}

int main(void)
{
	char buf[16];

	have_threads();
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
	check_low_mark();
	check_fast_open();
	return finish();
}
