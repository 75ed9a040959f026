// SPDX-License-Identifier: Apache-2.0
/*
 * poll() right after a read that found nothing: what came meanwhile, in whatever form, is seen at once, and the
 * answers are written even if there was nothing to look at.
 */
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include "check.h"

#define ROUNDS 300

static int ours, theirs; /* the two ends of a connection; ours does not block */
static int turn;         /* the helper acts, once for each */
static void (*act)(void);

static void sends_a_byte(void)
{
	CHECK_EQ(send(theirs, "x", 1, 0), 1);
}

static void sends_urgent_data(void)
{
	CHECK_EQ(send(theirs, "!", 1, MSG_OOB), 1);
}

static void ends_its_side(void)
{
	CHECK_SYS(shutdown(theirs, SHUT_WR));
}

static void resets(void)
{
	struct linger now = { .l_onoff = 1 };

	CHECK_SYS(setsockopt(theirs, SOL_SOCKET, SO_LINGER, &now, sizeof(now)));
	CHECK_SYS(close(theirs));
}

static void shuts_our_end(void)
{
	CHECK_SYS(shutdown(ours, SHUT_RD));
}

static void connect_both(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof(at);
	int listener = CHECK_SYS(socket(AF_INET, SOCK_STREAM, 0));
	int one = 1;

	CHECK_SYS(bind(listener, (struct sockaddr *)&at, len));
	CHECK_SYS(listen(listener, 1));
	CHECK_SYS(getsockname(listener, (struct sockaddr *)&at, &len));
	theirs = CHECK_SYS(socket(AF_INET, SOCK_STREAM, 0));
	CHECK_SYS(connect(theirs, (struct sockaddr *)&at, len));
	CHECK_SYS(setsockopt(theirs, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)));
	ours = CHECK_SYS(accept4(listener, NULL, NULL, SOCK_NONBLOCK));
	CHECK_SYS(close(listener));
}

static short poll_ours(short events, int ms)
{
	struct pollfd p = { .fd = ours, .events = events, .revents = -1 };

	(void)CHECK_SYS(poll(&p, 1, ms));
	return p.revents;
}

static void read_until_empty(void)
{
	char buf[16];

	while (recv(ours, buf, sizeof(buf), 0) > 0)
		;
	CHECK_EQ(errno, EAGAIN);
}

/* The descriptor becomes known to whoever watches descriptors: somebody has waited for it. */
static void warm_up(void)
{
	CHECK_EQ(poll_ours(POLLIN, 1), 0);
	read_until_empty();
	CHECK_EQ(poll_ours(POLLIN, 1), 0);
}

static void *helps(void *arg)
{
	for (int seen = 0;;) {
		int now = LOAD(&turn);

		if (now < 0)
			return arg;
		if (now == seen) {
			sched_yield();
			continue;
		}
		seen = now;
		act();
	}
}

static short event_of(void (*what)(void), short events)
{
	short got;

	connect_both();
	warm_up();
	act = what;
	read_until_empty();
	ADD(&turn, 1);
	got = poll_ours(events, -1);
	CHECK_SYS(close(ours));
	if (what != resets)
		CHECK_SYS(close(theirs));
	return got;
}

int main(void)
{
	pthread_t helper;
	char c;

	helper = start(helps, NULL);
	connect_both();
	warm_up();
	act = sends_a_byte;
	for (int i = 0; i < ROUNDS; i++) {
		ADD(&turn, 1);
		while (recv(ours, &c, 1, 0) != 1)
			CHECK_EQ(poll_ours(POLLIN, -1), POLLIN);
		CHECK_EQ(poll_ours(POLLIN, 0), 0);
		read_until_empty();
		CHECK_EQ(poll_ours(POLLIN | POLLOUT, -1) & POLLOUT, POLLOUT);
	}
	ok("data");

	/* Part of what was sent is read, through another descriptor: the rest is still there. */
	read_until_empty();
	int copy = CHECK_SYS(dup(ours));
	CHECK_EQ(send(theirs, "ab", 2, 0), 2);
	while (recv(copy, &c, 1, 0) != 1)
		CHECK_EQ(errno, EAGAIN);
	CHECK_EQ(poll_ours(POLLIN, -1), POLLIN);
	/* Data that were peeked at stay. */
	CHECK_EQ(recv(ours, &c, 1, MSG_PEEK), 1);
	CHECK_EQ(poll_ours(POLLIN, -1), POLLIN);
	read_until_empty();
	/* A read of urgent data that is not there says nothing of the rest. */
	CHECK_EQ(send(theirs, "c", 1, 0), 1);
	CHECK_EQ(poll_ours(POLLIN, -1), POLLIN);
	CHECK_EQ(recv(ours, &c, 1, MSG_OOB), -1);
	CHECK_EQ(poll_ours(POLLIN, -1), POLLIN);
	CHECK_SYS(close(copy));
	CHECK_SYS(close(ours));
	CHECK_SYS(close(theirs));
	ok("what is left");

	connect_both();
	warm_up();
	read_until_empty();
	CHECK_EQ(poll_ours(POLLIN, 20), 0);
	read_until_empty();
	CHECK_EQ(poll_ours(POLLIN, 0), 0);
	CHECK_SYS(close(theirs));
	CHECK_SYS(close(ours));
	struct pollfd closed = { .fd = ours, .events = POLLIN };
	CHECK_EQ(poll(&closed, 1, -1), 1);
	CHECK_EQ(closed.revents, POLLNVAL);
	ok("nothing");

	for (int i = 0; i < ROUNDS / 10; i++) {
		CHECK_EQ(event_of(sends_a_byte, POLLIN), POLLIN);
		CHECK_EQ(event_of(sends_urgent_data, POLLPRI) & POLLPRI, POLLPRI);
		CHECK_EQ(event_of(ends_its_side, POLLIN | POLLRDHUP), POLLIN | POLLRDHUP);
		CHECK_EQ(event_of(resets, POLLIN) & (POLLERR | POLLHUP), POLLERR | POLLHUP);
		CHECK_EQ(event_of(shuts_our_end, POLLIN) & POLLIN, POLLIN);
	}
	ok("urgent data, ends, errors");

	STORE(&turn, -1);
	join(helper);
	return finish();
}
