// SPDX-License-Identifier: Apache-2.0
/*
 * TCP over the loopback: blocking accept and connect, a thread per connection, refused connects.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include "check.h"

#define NR 40
#define ROUNDS 50

static struct sockaddr_in address;
static int listener;

static void *serves(void *arg)
{
	int fd = (int)(intptr_t)arg;
	char buf[256];
	ssize_t len;

	while ((len = recv(fd, buf, sizeof(buf), 0)) > 0)
		CHECK_EQ(send(fd, buf, len, MSG_NOSIGNAL), len);
	CHECK_EQ(len, 0);
	close(fd);
	return NULL;
}

static void *accepts(void *arg)
{
	pthread_t t[NR];
	struct sockaddr_in peer;

	for (int i = 0; i < NR; i++) {
		socklen_t len = sizeof(peer);
		int fd = (int)CHECK_SYS(
			i % 2 ? accept(listener, (struct sockaddr *)&peer, &len)
			      : accept4(listener, (struct sockaddr *)&peer, &len, SOCK_CLOEXEC));

		CHECK_EQ(len, sizeof(peer));
		CHECK_EQ(ntohl(peer.sin_addr.s_addr), INADDR_LOOPBACK);
		t[i] = start(serves, (void *)(intptr_t)fd);
	}
	for (int i = 0; i < NR; i++)
		join(t[i]);
	return arg;
}

static void *asks(void *arg)
{
	int fd = (int)CHECK_SYS(socket(AF_INET, SOCK_STREAM, 0));
	char text[64], buf[64];

	CHECK_SYS(connect(fd, (struct sockaddr *)&address, sizeof(address)));
	for (int i = 0; i < ROUNDS; i++) {
		int len = snprintf(text, sizeof(text), "request %d of %d", i, (int)(intptr_t)arg);

		CHECK_EQ(send(fd, text, len, 0), len);
		CHECK_EQ(recv(fd, buf, len, MSG_WAITALL), len);
		CHECK(!memcmp(buf, text, len));
	}
	close(fd);
	return NULL;
}

int main(void)
{
	pthread_t t[NR], server;
	socklen_t len = sizeof(address);
	int one = 1;

	have_threads();
	address = (struct sockaddr_in){ .sin_family = AF_INET,
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	listener = (int)CHECK_SYS(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
	CHECK_SYS(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)));
	CHECK_SYS(bind(listener, (struct sockaddr *)&address, sizeof(address)));
	CHECK_SYS(getsockname(listener, (struct sockaddr *)&address, &len));
	CHECK_SYS(listen(listener, 64));

	server = start(accepts, NULL);
	for (intptr_t i = 0; i < NR; i++)
		t[i] = start(asks, (void *)i);
	for (int i = 0; i < NR; i++)
		join(t[i]);
	join(server);
	ok("40 connections, 50 requests each");

	close(listener);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	CHECK_ERRNO(connect(fd, (struct sockaddr *)&address, sizeof(address)), ECONNREFUSED);
	close(fd);
	ok("connect to nobody is refused");

	int pending = 0;
	socklen_t size = sizeof(pending);
	listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	address.sin_port = 0;
	CHECK_SYS(bind(listener, (struct sockaddr *)&address, sizeof(address)));
	len = sizeof(address);
	CHECK_SYS(getsockname(listener, (struct sockaddr *)&address, &len));
	CHECK_SYS(listen(listener, 4));
	CHECK_ERRNO(accept(listener, NULL, NULL), EAGAIN);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	int ret = connect(fd, (struct sockaddr *)&address, sizeof(address));
	CHECK(ret == 0 || errno == EINPROGRESS);
	CHECK_SYS(getsockopt(fd, SOL_SOCKET, SO_ERROR, &pending, &size));
	CHECK_EQ(pending, 0);
	ok("non-blocking accept and connect");
	return finish();
}
