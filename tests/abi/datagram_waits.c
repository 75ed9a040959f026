// SPDX-License-Identifier: Apache-2.0
/*
 * Only blocking calls on datagram sockets do these: shutdown() ends a receive with 0, where one that does not wait
 * says EAGAIN; a sender that is not connected waits for a unix socket that is full.
 */
#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include "check.h"

enum how {
	RECV,
	RECVMSG,
	READ,
	READV,
	RECVMMSG,
	RECV_ALL,
	NR_HOW
};

static int sock;

static ssize_t receive(enum how how)
{
	char buf[8];
	struct iovec v = { buf, sizeof(buf) };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1 };
	struct mmsghdr mm = { .msg_hdr = m };

	switch (how) {
	case RECV:
		return recv(sock, buf, sizeof(buf), 0);
	case RECVMSG:
		return recvmsg(sock, &m, 0);
	case READ:
		return read(sock, buf, sizeof(buf));
	case READV:
		return readv(sock, &v, 1);
	case RECVMMSG:
		return recvmmsg(sock, &mm, 1, 0, NULL) == 1 ? (ssize_t)mm.msg_len : -1;
	default:
		return recv(sock, buf, sizeof(buf), MSG_WAITALL);
	}
}

static void *receives(void *arg)
{
	return (void *)receive((enum how)(intptr_t)arg);
}

static void check_shutdown(int (*make)(void), int how_shut, const char *what)
{
	for (int how = 0; how < NR_HOW; how++) {
		sock = make();
		pthread_t t = start(receives, (void *)(intptr_t)how);

		let_others_block();
		(void)shutdown(sock, how_shut); /* ENOTCONN, and done all the same */
		CHECK_EQ((intptr_t)join(t), 0);
		/* and once more, now that it is known */
		CHECK_EQ((intptr_t)join(start(receives, (void *)(intptr_t)how)), 0);
		CHECK_ERRNO(recv(sock, &how, 1, MSG_DONTWAIT), EAGAIN);
		close(sock);
	}
	printf("%s\n", what);
	ok("shutdown ends a receive");
}

static int udp(void)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = (int)CHECK_SYS(socket(AF_INET, SOCK_DGRAM, 0));

	CHECK_SYS(bind(fd, (struct sockaddr *)&addr, sizeof(addr)));
	return fd;
}

static int udp_to_itself(void)
{
	struct sockaddr_in addr;
	socklen_t len = sizeof(addr);
	int fd = udp();

	CHECK_SYS(getsockname(fd, (struct sockaddr *)&addr, &len));
	CHECK_SYS(connect(fd, (struct sockaddr *)&addr, len));
	return fd;
}

static int in_pair(void)
{
	int fds[2];

	CHECK_SYS(socketpair(AF_UNIX, SOCK_DGRAM, 0, fds));
	return fds[0]; /* the other one stays open */
}

static struct sockaddr_un name = { .sun_family = AF_UNIX };
static socklen_t name_len;
static int nr_sent;

static void *sends_to(void *arg)
{
	int fd = (int)CHECK_SYS(socket(AF_UNIX, SOCK_DGRAM, 0));
	struct iovec v = { (char *)"b", 1 };
	struct mmsghdr m[2] = {
		{ .msg_hdr = { .msg_name = &name,
			       .msg_namelen = name_len,
			       .msg_iov = &v,
			       .msg_iovlen = 1 } },
	};

	m[1] = m[0];
	switch ((intptr_t)arg % 3) {
	case 0:
		CHECK_EQ(sendto(fd, "b", 1, 0, (struct sockaddr *)&name, name_len), 1);
		ADD(&nr_sent, 1);
		break;
	case 1:
		CHECK_EQ(sendmsg(fd, &m[0].msg_hdr, 0), 1);
		ADD(&nr_sent, 1);
		break;
	default:
		CHECK_EQ(sendmmsg(fd, m, 2, 0), 2);
		ADD(&nr_sent, 2);
		break;
	}
	close(fd);
	return NULL;
}

static void *sends_in_time(void *arg)
{
	struct timeval tv = { .tv_usec = 30000 };
	int fd = (int)CHECK_SYS(socket(AF_UNIX, SOCK_DGRAM, 0));
	int64_t before = now_ns();

	CHECK_SYS(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)));
	CHECK_ERRNO(sendto(fd, "b", 1, 0, (struct sockaddr *)&name, name_len), EAGAIN);
	/* The kernel counts this one in its ticks: on a busy machine it has been less than 29 ms. */
	CHECK(now_ns() - before >= 15 * MS);
	close(fd);
	return arg;
}

#define NR_SENDERS 12

static void check_full(void)
{
	int fd = (int)CHECK_SYS(socket(AF_UNIX, SOCK_DGRAM, 0)), nr_filled = 0;
	int reader = (int)CHECK_SYS(socket(AF_UNIX, SOCK_DGRAM, 0));
	pthread_t t[NR_SENDERS];
	int64_t wall, cpu;
	char c;

	name_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			       (size_t)snprintf(name.sun_path + 1, 32, "weft-%d", getpid()));
	CHECK_SYS(bind(reader, (struct sockaddr *)&name, name_len));
	while (sendto(fd, "a", 1, MSG_DONTWAIT, (struct sockaddr *)&name, name_len) == 1)
		nr_filled++;
	CHECK_EQ(errno, EAGAIN);
	join(start(sends_in_time, NULL));
	for (intptr_t i = 0; i < NR_SENDERS; i++)
		t[i] = start(sends_to, (void *)i);
	/* As long as it takes until all of them wait: the first of these that is quiet. */
	do {
		wall = now_ns();
		cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
		sleep_ns(100 * MS);
		wall = now_ns() - wall;
		cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	} while (cpu >= wall / 8);
	CHECK_EQ(LOAD(&nr_sent), 0);
	for (int i = 0; i < nr_filled; i++)
		CHECK(recv(reader, &c, 1, 0) == 1 && c == 'a');
	for (int i = 0; i < NR_SENDERS + NR_SENDERS / 3; i++)
		CHECK(recv(reader, &c, 1, 0) == 1 && c == 'b');
	for (int i = 0; i < NR_SENDERS; i++)
		join(t[i]);
	close(fd);
	close(reader);
	ok("senders wait for a socket that is full, and do nothing else");
}

int main(void)
{
	check_shutdown(udp, SHUT_RDWR, "UDP");
	check_shutdown(udp_to_itself, SHUT_RD, "UDP, connected");
	check_shutdown(in_pair, SHUT_RD, "unix");
	check_full();
	return finish();
}
