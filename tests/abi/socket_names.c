// SPDX-License-Identifier: Apache-2.0
/* Names and states of sockets: binding, listening, who is at both ends, options, and one direction closed. */
#include "beside.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>

static struct sockaddr_in loopback(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET };

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return a;
}

static int option(int fd, int level, int name)
{
	int value = -1;
	socklen_t len = sizeof(value);

	CHECK_SYS(CALL(getsockopt, fd, level, name, &value, &len));
	CHECK_EQ(len, sizeof(value));
	return value;
}

static struct sockaddr_in name_of(int fd, int number)
{
	struct sockaddr_in a = { 0 };
	socklen_t len = sizeof(a);

	CHECK_SYS(syscall(number, fd, &a, &len));
	CHECK_EQ(len, sizeof(a));
	CHECK_EQ(a.sin_family, AF_INET);
	CHECK_EQ(ntohl(a.sin_addr.s_addr), INADDR_LOOPBACK);
	return a;
}

static void *accepts(void *arg)
{
	return (void *)(intptr_t)CHECK_SYS(accept((int)(intptr_t)arg, NULL, NULL));
}

static void *sees_the_end(void *arg)
{
	char c;

	CHECK_EQ(read((int)(intptr_t)arg, &c, 1), 0);
	return arg;
}

static void *is_refused_to_accept(void *arg)
{
	CHECK_ERRNO(accept((int)(intptr_t)arg, NULL, NULL), EINVAL);
	return arg;
}

static void tcp(void)
{
	struct sockaddr_in a = loopback(), b;
	int s = (int)CHECK_SYS(socket(AF_INET, SOCK_STREAM, 0)), c, d;
	pthread_t t;

	CHECK_SYS(CALL(bind, s, &a, sizeof(a)));
	CHECK_ERRNO(CALL(bind, s, &a, sizeof(a)), EINVAL);
	CHECK_EQ(option(s, SOL_SOCKET, SO_ACCEPTCONN), 0);
	CHECK_SYS(CALL(listen, s, 5));
	CHECK_EQ(option(s, SOL_SOCKET, SO_ACCEPTCONN), 1);
	a = name_of(s, SYS_getsockname);
	CHECK(a.sin_port != 0);
	CHECK_ERRNO(CALL(getpeername, s, &b, (socklen_t[]){ sizeof(b) }), ENOTCONN);

	c = (int)CHECK_SYS(socket(AF_INET, SOCK_STREAM, 0));
	CHECK_EQ(option(c, SOL_SOCKET, SO_TYPE), SOCK_STREAM);
	CHECK_EQ(option(c, SOL_SOCKET, SO_DOMAIN), AF_INET);
	t = start(accepts, (void *)(intptr_t)s);
	CHECK_SYS(connect(c, (struct sockaddr *)&a, sizeof(a)));
	d = (int)(intptr_t)join(t);
	CHECK_EQ(option(c, SOL_SOCKET, SO_ERROR), 0);
	CHECK(option(c, IPPROTO_TCP, TCP_MAXSEG) > 0);
	CHECK_EQ(name_of(c, SYS_getpeername).sin_port, a.sin_port);
	CHECK_EQ(name_of(d, SYS_getsockname).sin_port, a.sin_port);
	CHECK_EQ(name_of(d, SYS_getpeername).sin_port, name_of(c, SYS_getsockname).sin_port);

	t = start(sees_the_end, (void *)(intptr_t)d);
	CHECK_SYS(CALL(shutdown, c, SHUT_WR));
	join(t);
	CHECK_ERRNO(send(c, "x", 1, MSG_NOSIGNAL), EPIPE);
	t = start(sees_the_end, (void *)(intptr_t)c);
	CHECK_SYS(CALL(shutdown, c, SHUT_RD)); /* of who waits here */
	join(t);
	t = start(is_refused_to_accept, (void *)(intptr_t)s);
	CHECK_SYS(CALL(shutdown, s, SHUT_RDWR));
	join(t);
	CHECK_ERRNO(CALL(shutdown, s, 77), EINVAL);
	/* With a reset, so that the port does not stay behind. */
	CHECK_SYS(setsockopt(d, SOL_SOCKET, SO_LINGER, &(struct linger){ 1, 0 },
			     sizeof(struct linger)));
	close(d);
	close(c);
	close(s);
}

static void unix_names(void)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX }, b = { 0 };
	struct ucred who = { 0 };
	socklen_t len = sizeof(a.sun_family), got = sizeof(b);
	int s = (int)CHECK_SYS(socket(AF_UNIX, SOCK_STREAM, 0)), c;

	CHECK_SYS(CALL(bind, s, &a, len)); /* the kernel chooses an abstract name */
	CHECK_SYS(CALL(listen, s, 5));
	CHECK_SYS(CALL(getsockname, s, &a, &got));
	CHECK_EQ(got, sizeof(a.sun_family) + 6);
	CHECK_EQ(a.sun_path[0], 0);
	c = (int)CHECK_SYS(socket(AF_UNIX, SOCK_STREAM, 0));
	CHECK_SYS(connect(c, (struct sockaddr *)&a, got));
	len = sizeof(b);
	CHECK_SYS(CALL(getpeername, c, &b, &len));
	CHECK_EQ(len, got);
	CHECK(memcmp(&a, &b, len) == 0);
	len = sizeof(who);
	CHECK_SYS(CALL(getsockopt, c, SOL_SOCKET, SO_PEERCRED, &who, &len));
	CHECK_EQ(who.pid, getpid());
	CHECK_EQ(who.uid, geteuid());
	close(c);
	close(s);
}

int main(void)
{
	start_beside();
	calls(tcp, "TCP on the loopback");
	calls(unix_names, "unix sockets");
	stop_beside();
	return finish();
}
