// SPDX-License-Identifier: Apache-2.0
/*
 * UDP over the loopback: sendto, recvfrom and recvmmsg from blocked threads, truncation.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include "check.h"

static int server, client;
static struct sockaddr_in server_address, client_address;

static int bound_socket(struct sockaddr_in *address)
{
	socklen_t len = sizeof(*address);
	int fd = (int)CHECK_SYS(socket(AF_INET, SOCK_DGRAM, 0));

	*address = (struct sockaddr_in){ .sin_family = AF_INET,
					 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	CHECK_SYS(bind(fd, (struct sockaddr *)address, sizeof(*address)));
	CHECK_SYS(getsockname(fd, (struct sockaddr *)address, &len));
	return fd;
}

static void *serves(void *arg)
{
	char buf[100];

	for (;;) {
		struct sockaddr_in peer;
		socklen_t len = sizeof(peer);
		ssize_t got = recvfrom(server, buf, sizeof(buf), 0, (struct sockaddr *)&peer, &len);

		CHECK(got > 0);
		CHECK_EQ(peer.sin_port, client_address.sin_port);
		if (got == 4 && !memcmp(buf, "stop", 4))
			return arg;
		CHECK_EQ(sendto(server, buf, got, 0, (struct sockaddr *)&peer, len), got);
	}
}

static void *receives_many(void *arg)
{
	char bufs[5][10];
	struct iovec parts[5];
	struct mmsghdr msgs[5];
	int nr = 0;

	memset(msgs, 0, sizeof(msgs));
	for (int i = 0; i < 5; i++) {
		parts[i] = (struct iovec){ bufs[i], sizeof(bufs[i]) };
		msgs[i].msg_hdr.msg_iov = &parts[i];
		msgs[i].msg_hdr.msg_iovlen = 1;
	}
	while (nr < 5) {
		int got = (int)CHECK_SYS(recvmmsg(server, msgs + nr, 5 - nr, MSG_WAITFORONE, NULL));

		if (got <= 0)
			break;
		nr += got;
	}
	for (int i = 0; i < 5; i++)
		CHECK_EQ(msgs[i].msg_len, i + 1);
	return arg;
}

int main(void)
{
	char buf[100];
	struct iovec part = { buf, 4 };
	struct msghdr msg = { .msg_iov = &part, .msg_iovlen = 1 };

	have_threads();
	server = bound_socket(&server_address);
	client = bound_socket(&client_address);
	CHECK_SYS(connect(client, (struct sockaddr *)&server_address, sizeof(server_address)));

	pthread_t t = start(serves, NULL);
	for (int i = 0; i < 500; i++) {
		int len = i % 80 + 5;

		memset(buf, i, len);
		CHECK_EQ(send(client, buf, len, 0), len);
		CHECK_EQ(recv(client, buf, sizeof(buf), 0), len);
		CHECK_EQ(buf[len - 1], (char)i);
	}
	CHECK_EQ(send(client, "stop", 4, 0), 4);
	join(t);
	ok("500 round trips");

	t = start(receives_many, NULL);
	for (int i = 0; i < 5; i++)
		CHECK_EQ(send(client, buf, i + 1, 0), i + 1);
	join(t);
	ok("recvmmsg");

	CHECK_EQ(sendto(server, "truncated", 9, 0, (struct sockaddr *)&client_address,
			sizeof(client_address)),
		 9);
	CHECK_EQ(recvmsg(client, &msg, 0), 4);
	CHECK_EQ(msg.msg_flags & MSG_TRUNC, MSG_TRUNC);
	CHECK_ERRNO(recv(client, buf, 1, MSG_DONTWAIT), EAGAIN);
	ok("a datagram that is too long is cut and gone");
	return finish();
}
