// SPDX-License-Identifier: Apache-2.0
/*
 * MSG_WAITALL: what ends it early, and what it returns then; several messages in one call.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include "tcp.h"

static int sock[2];

static void close_pair(void)
{
	close(sock[0]);
	close(sock[1]);
}

static ssize_t receive(void *buf, size_t len, int use_msg)
{
	struct iovec vec[3] = { { buf, 3 }, { (char *)buf + 3, 0 }, { (char *)buf + 3, len - 3 } };
	struct msghdr m = { .msg_iov = vec, .msg_iovlen = 3, .msg_flags = 0x7f };
	ssize_t ret;

	if (!use_msg)
		return recv(sock[0], buf, len, MSG_WAITALL);
	ret = recvmsg(sock[0], &m, MSG_WAITALL);
	if (ret >= 0)
		CHECK_EQ(m.msg_flags & (MSG_TRUNC | MSG_CTRUNC), 0);
	return ret;
}

static void *sends_parts(void *arg)
{
	for (int i = 0; i < 10; i++) {
		if (i % 3 == 0)
			let_others_block();
		CHECK_EQ(send(sock[1], &"abcdefghij"[i], 1, 0), 1);
	}
	return arg;
}

static void *sends_four(void *arg)
{
	CHECK_EQ(send(sock[1], "abcd", 4, 0), 4);
	let_others_block();
	if (arg)
		CHECK_SYS(shutdown(sock[1], SHUT_WR));
	return NULL;
}

static void on_signal(int sig)
{
	(void)sig;
}

static pthread_t receiver;
static int is_received;

static void *sends_four_then_signal(void *arg)
{
	CHECK_EQ(send(sock[1], "abcd", 4, 0), 4);
	while (!LOAD(&is_received)) {
		let_others_block();
		pthread_kill(receiver, SIGUSR1);
	}
	return arg;
}

static int is_tcp(void)
{
	int domain = 0;
	socklen_t len = sizeof(domain);

	CHECK_SYS(getsockopt(sock[0], SOL_SOCKET, SO_DOMAIN, &domain, &len));
	return domain == AF_INET;
}

static void *receives(void *arg)
{
	struct timeval limit = { .tv_usec = 50000 }, none = { 0 };
	int use_msg = arg != NULL;
	char buf[16] = "";
	pthread_t t;

	t = start(sends_parts, NULL);
	CHECK_EQ(receive(buf, 10, use_msg), 10);
	CHECK(!memcmp(buf, "abcdefghij", 10));
	join(t);
	ok("parts are put together");

	CHECK_SYS(setsockopt(sock[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)));
	CHECK_ERRNO(receive(buf, 10, use_msg), EAGAIN);
	CHECK_EQ(send(sock[1], "abcd", 4, 0), 4);
	CHECK_EQ(receive(buf, 10, use_msg), 4);
	CHECK_SYS(setsockopt(sock[0], SOL_SOCKET, SO_RCVTIMEO, &none, sizeof(none)));
	ok("the time limit of the socket");

	receiver = pthread_self();
	STORE(&is_received, 0);
	t = start(sends_four_then_signal, NULL);
	ssize_t got = receive(buf, 10, use_msg);
	STORE(&is_received, 1);
	join(t);
	CHECK(got == 4 || (got == -1 && errno == EINTR));
	if (got == -1)
		CHECK_EQ(recv(sock[0], buf, 10, 0), 4);
	ok("a signal");

	CHECK_EQ(send(sock[1], "abcd", 4, 0), 4);
	CHECK_EQ(recv(sock[0], buf, 4, MSG_WAITALL | MSG_PEEK), 4);
	CHECK_EQ(recv(sock[0], buf, 16, MSG_WAITALL | MSG_DONTWAIT), 4);
	CHECK_ERRNO(recv(sock[0], buf, 16, MSG_WAITALL | MSG_DONTWAIT), EAGAIN);
	if (is_tcp()) {
		t = start(sends_parts, NULL);
		CHECK_EQ(recv(sock[0], buf, 10, MSG_WAITALL | MSG_PEEK), 10);
		CHECK(!memcmp(buf, "abcdefghij", 10));
		memset(buf, 0, sizeof(buf));
		CHECK_EQ(recv(sock[0], buf, 16, MSG_DONTWAIT), 10);
		CHECK(!memcmp(buf, "abcdefghij", 10));
		join(t);
	}
	ok("MSG_PEEK, MSG_DONTWAIT");

	t = start(sends_four, (void *)1);
	CHECK_EQ(receive(buf, 10, use_msg), 4);
	CHECK_EQ(receive(buf, 10, use_msg), 0);
	join(t);
	ok("the end of the stream");
	return NULL;
}

/* A read that got less than it asked for has emptied the socket; the next one still ends in time. */
static void *drains_with_limit(void *arg)
{
	struct timeval limit = { .tv_usec = 20000 }, none = { 0 };
	char buf[16];

	CHECK_SYS(setsockopt(sock[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)));
	for (int i = 0; i < 3; i++) {
		int64_t before;

		CHECK_EQ(send(sock[1], "abcd", 4, 0), 4);
		CHECK_EQ(i % 2 ? read(sock[0], buf, 16) : recv(sock[0], buf, 16, 0), 4);
		before = now_ns();
		CHECK_ERRNO(i % 2 ? recv(sock[0], buf, 16, 0) : read(sock[0], buf, 16), EAGAIN);
		CHECK(now_ns() - before >= 20 * MS);
	}
	CHECK_SYS(setsockopt(sock[0], SOL_SOCKET, SO_RCVTIMEO, &none, sizeof(none)));
	ok("the time limit of a socket that was emptied");
	return arg;
}

static void *receives_messages(void *arg)
{
	char text[4][8];
	struct iovec vec[4];
	struct mmsghdr m[4] = { 0 };
	struct timespec limit = timespec_of(30 * MS);
	int64_t before;

	for (int i = 0; i < 4; i++) {
		vec[i] = (struct iovec){ text[i], sizeof(text[i]) };
		m[i].msg_hdr = (struct msghdr){ .msg_iov = &vec[i], .msg_iovlen = 1 };
	}
	pthread_t t = start(sends_parts, NULL);
	CHECK_EQ(recvmmsg(sock[0], m, 4, 0, NULL), 4);
	for (int i = 0; i < 4; i++)
		CHECK(m[i].msg_len == 1 && text[i][0] == 'a' + i);
	CHECK_EQ(recvmmsg(sock[0], m, 4, 0, NULL), 4);
	join(t);
	CHECK_EQ(recvmmsg(sock[0], m, 4, MSG_WAITFORONE, NULL), 2);
	CHECK(text[0][0] == 'i' && text[1][0] == 'j');
	CHECK_ERRNO(recvmmsg(sock[0], m, 4, MSG_DONTWAIT, NULL), EAGAIN);
	ok("recvmmsg: all, for one, without waiting");

	/* The limit is looked at when a message has come, and not before. */
	t = start(sends_parts, NULL);
	before = now_ns();
	int got = recvmmsg(sock[0], m, 4, 0, &limit);
	CHECK(got >= 1);
	if (got < 4) {
		CHECK(now_ns() - before >= 30 * MS);
		CHECK(limit.tv_sec == 0 && limit.tv_nsec == 0);
	}
	join(t);
	while (recv(sock[0], text, sizeof(text), MSG_DONTWAIT) > 0)
		;
	limit.tv_nsec = SEC;
	CHECK_ERRNO(recvmmsg(sock[0], m, 4, 0, &limit), EINVAL);
	ok("recvmmsg: the time limit");
	return arg;
}

#define NR_BIG 6
#define BIG (300 << 10)

static void *drains(void *arg)
{
	static char buf[65536];
	size_t sum = 0;

	while (sum < NR_BIG * (size_t)BIG) {
		ssize_t len = recv(sock[0], buf, sizeof(buf), 0);

		if (len <= 0)
			break;
		for (ssize_t i = 0; i < len; i++)
			if (buf[i] != (char)('a' + (sum + (size_t)i) / BIG))
				ADD(&abi_failures, 1);
		sum += (size_t)len;
	}
	CHECK_EQ(sum, NR_BIG * (size_t)BIG);
	return arg;
}

static void *sends_messages(void *arg)
{
	static char text[NR_BIG][BIG];
	struct iovec vec[NR_BIG];
	struct mmsghdr m[NR_BIG] = { 0 };
	pthread_t t = start(drains, NULL);
	int done = 0;

	for (int i = 0; i < NR_BIG; i++) {
		memset(text[i], 'a' + i, BIG);
		vec[i] = (struct iovec){ text[i], BIG };
		m[i].msg_hdr = (struct msghdr){ .msg_iov = &vec[i], .msg_iovlen = 1 };
	}
	done = sendmmsg(sock[1], m, NR_BIG, 0);
	CHECK_EQ(done, NR_BIG);
	for (int i = 0; i < done; i++)
		CHECK_EQ(m[i].msg_len, BIG);
	join(t);
	ok("sendmmsg: messages that do not fit");
	return arg;
}

int main(void)
{
	struct sigaction sa = { .sa_handler = on_signal };

	CHECK_SYS(sigaction(SIGUSR1, &sa, NULL));
	tcp_pair(sock);
	join(start(receives, NULL));
	close_pair();
	tcp_pair(sock);
	join(start(receives, (void *)1));
	close_pair();
	tcp_pair(sock);
	join(start(drains_with_limit, NULL));
	close_pair();
	CHECK_SYS(socketpair(AF_UNIX, SOCK_STREAM, 0, sock));
	join(start(receives, NULL));
	close_pair();
	CHECK_SYS(socketpair(AF_UNIX, SOCK_STREAM, 0, sock));
	join(start(receives, (void *)1));
	close_pair();
	CHECK_SYS(socketpair(AF_UNIX, SOCK_DGRAM, 0, sock));
	join(start(receives_messages, NULL));
	close_pair();
	tcp_pair(sock);
	join(start(sends_messages, NULL));
	close_pair();
	return finish();
}
