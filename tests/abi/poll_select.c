// SPDX-License-Identifier: Apache-2.0
/*
 * poll, ppoll, select and pselect: readiness from another thread, timeouts, signal masks.
 */
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include "tcp.h"

static int fds[2], waits_at;
static volatile sig_atomic_t nr_signals;

static void on_signal(int sig)
{
	(void)sig;
	nr_signals++;
}

static int wait_with(int kind, int fd, int64_t timeout_ns)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct timespec ts = timespec_of(timeout_ns > 0 ? timeout_ns : 0);
	struct timeval tv = { ts.tv_sec, ts.tv_nsec / 1000 };
	fd_set set;
	int ret;

	FD_ZERO(&set);
	FD_SET(fd, &set);
	switch (kind) {
	case 0:
		ret = poll(&p, 1, timeout_ns < 0 ? -1 : (int)(timeout_ns / MS));
		CHECK(ret <= 0 || p.revents & (POLLIN | POLLHUP));
		return ret;
	case 1:
		ret = ppoll(&p, 1, timeout_ns < 0 ? NULL : &ts, NULL);
		CHECK(ret <= 0 || p.revents & (POLLIN | POLLHUP));
		return ret;
	case 2:
		ret = select(fd + 1, &set, NULL, NULL, timeout_ns < 0 ? NULL : &tv);
		CHECK_EQ(!!FD_ISSET(fd, &set), ret != 0);
		return ret;
	default:
		ret = pselect(fd + 1, &set, NULL, NULL, timeout_ns < 0 ? NULL : &ts, NULL);
		CHECK_EQ(!!FD_ISSET(fd, &set), ret != 0);
		return ret;
	}
}

static void *waits(void *arg)
{
	char c;

	CHECK_EQ(wait_with((int)(intptr_t)arg, fds[0], -1), 1);
	CHECK_EQ(read(fds[0], &c, 1), 1);
	return NULL;
}

/* Numbers at the ends of the words that a set consists of, and no bit of a word that is not asked for. */
static void *waits_at_edges(void *arg)
{
	static const int edges[] = { 31, 32, 63, 64, 65, 127, 128, 1022, 1023 };
	const int kind = (int)(intptr_t)arg;
	char c;

	for (size_t i = 0; i < sizeof(edges) / sizeof(edges[0]); i++) {
		CHECK_SYS(dup2(fds[0], edges[i]));
		CHECK_EQ(write(fds[1], "x", 1), 1);
		CHECK_EQ(wait_with(kind, edges[i], -1), 1);
		CHECK_EQ(read(edges[i], &c, 1), 1);
		STORE(&waits_at, edges[i]);
		CHECK_EQ(wait_with(kind, edges[i], -1), 1); /* it comes while we sleep */
		CHECK_EQ(read(edges[i], &c, 1), 1);
		close(edges[i]);
	}
	STORE(&waits_at, -1);
	return NULL;
}

static void wake_at_edges(int kind)
{
	pthread_t t;
	int at = 0;

	CHECK_SYS(pipe(fds));
	STORE(&waits_at, 0);
	t = start(waits_at_edges, (void *)(intptr_t)kind);
	while (at >= 0) {
		while (LOAD(&waits_at) == at)
			sched_yield();
		at = LOAD(&waits_at);
		if (at < 0)
			break;
		let_others_block();
		CHECK_EQ(write(fds[1], "x", 1), 1);
	}
	join(t);
	close(fds[0]);
	close(fds[1]);
}

/* The rest of the time is told, and the mask of a call that found something is that call's alone. */
static void *looks_with_time_and_mask(void *arg)
{
	struct pollfd p = { .fd = fds[0], .events = POLLIN };
	struct epoll_event event = { .events = EPOLLIN };
	struct timeval tv = { 100, 0 };
	int epoll;
	sigset_t none, mask;
	fd_set set;

	sigemptyset(&none);
	FD_ZERO(&set);
	FD_SET(fds[0], &set);
	CHECK_EQ(select(fds[0] + 1, &set, NULL, NULL, &tv), 1);
	CHECK(tv.tv_sec >= 50 && tv.tv_sec <= 100);
	CHECK_EQ(ppoll(&p, 1, NULL, &none), 1);
	CHECK_PT(pthread_sigmask(SIG_SETMASK, NULL, &mask));
	CHECK(sigismember(&mask, SIGUSR1));
	CHECK_EQ(pselect(fds[0] + 1, &set, NULL, NULL, NULL, &none), 1);
	CHECK_PT(pthread_sigmask(SIG_SETMASK, NULL, &mask));
	CHECK(sigismember(&mask, SIGUSR1));
	CHECK_SYS(epoll = epoll_create1(0));
	CHECK_SYS(epoll_ctl(epoll, EPOLL_CTL_ADD, fds[0], &event));
	CHECK_EQ(epoll_pwait(epoll, &event, 1, -1, &none), 1);
	CHECK_PT(pthread_sigmask(SIG_SETMASK, NULL, &mask));
	CHECK(sigismember(&mask, SIGUSR1));
	close(epoll);
	return arg;
}

/* Each of the three sets wakes by itself, and only it has the bit then. */
static void *selects(void *arg)
{
	const int kind = (int)(intptr_t)arg;
	fd_set sets[3];

	for (int i = 0; i < 3; i++)
		FD_ZERO(&sets[i]);
	FD_SET(fds[0], &sets[kind]);
	CHECK_EQ(select(fds[0] + 1, &sets[0], kind == 1 ? &sets[1] : NULL, &sets[2], NULL), 1);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(!!FD_ISSET(fds[0], &sets[i]), i == kind);
	STORE(&waits_at, -1);
	return NULL;
}

static void select_sets(void)
{
	static char block[1 << 16];

	for (intptr_t kind = 0; kind < 3; kind++) {
		pthread_t t;

		tcp_pair(fds);
		if (kind == 1)
			while (send(fds[0], block, sizeof(block), MSG_DONTWAIT) > 0)
				;
		STORE(&waits_at, 0);
		t = start(selects, (void *)kind);
		let_others_block();
		if (kind != 1)
			CHECK_EQ(send(fds[1], "x", 1, kind ? MSG_OOB : 0), 1);
		while (kind == 1 && !LOAD(&waits_at))
			(void)recv(fds[1], block, sizeof(block), MSG_DONTWAIT);
		join(t);
		close(fds[0]);
		close(fds[1]);
	}
}

struct asked {
	int events, seen;
};

/* Each kind of event wakes by itself. */
static void *waits_for_event(void *arg)
{
	struct asked *a = arg;
	struct pollfd p = { .fd = fds[0], .events = (short)a->events };

	CHECK_EQ(poll(&p, 1, -1), 1);
	STORE(&a->seen, p.revents);
	return NULL;
}

static void poll_events(void)
{
	enum {
		SHUTS_DOWN,
		SENDS,
		SENDS_URGENT,
		READS
	};
	static const struct {
		int events, other_does, seen;
	} cases[] = {
		{ POLLRDHUP, SHUTS_DOWN, POLLRDHUP }, { POLLIN, SHUTS_DOWN, POLLIN },
		{ POLLRDNORM, SENDS, POLLRDNORM },    { POLLIN | POLLRDHUP, SENDS, POLLIN },
		{ POLLPRI, SENDS_URGENT, POLLPRI },   { POLLOUT, READS, POLLOUT },
		{ POLLWRNORM, READS, POLLWRNORM },
	};
	static char block[1 << 16];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct asked asked = { .events = cases[i].events };
		pthread_t t;

		tcp_pair(fds);
		if (cases[i].other_does == READS)
			while (send(fds[0], block, sizeof(block), MSG_DONTWAIT) > 0)
				;
		t = start(waits_for_event, &asked);
		let_others_block();
		switch (cases[i].other_does) {
		case SHUTS_DOWN:
			CHECK_SYS(shutdown(fds[1], SHUT_WR));
			break;
		case SENDS:
			CHECK_EQ(send(fds[1], "x", 1, 0), 1);
			break;
		case SENDS_URGENT:
			CHECK_EQ(send(fds[1], "x", 1, MSG_OOB), 1);
			break;
		case READS:
			CHECK_SYS(fcntl(fds[1], F_SETFL, O_NONBLOCK));
			while (!LOAD(&asked.seen) && recv(fds[1], block, sizeof(block), 0) != 0)
				;
			break;
		}
		join(t);
		CHECK_EQ(asked.seen, cases[i].seen);
		close(fds[0]);
		close(fds[1]);
	}
}

static void *waits_with_mask(void *arg)
{
	struct pollfd p = { .fd = fds[0], .events = POLLIN };
	sigset_t none;

	sigemptyset(&none);
	/* Blocked everywhere, pending by now: the mask of the call lets it in. */
	CHECK_PT(pthread_kill(pthread_self(), SIGUSR1));
	CHECK_EQ(nr_signals, 0);
	if (arg)
		CHECK_ERRNO(ppoll(&p, 1, NULL, &none), EINTR);
	else
		CHECK_ERRNO(pselect(0, NULL, NULL, NULL, NULL, &none), EINTR);
	CHECK_EQ(nr_signals, 1);
	nr_signals = 0;
	sigset_t now;
	pthread_sigmask(SIG_SETMASK, NULL, &now);
	CHECK(sigismember(&now, SIGUSR1));
	return NULL;
}

int main(void)
{
	static const char *const names[] = { "poll", "ppoll", "select", "pselect" };
	sigset_t usr1;

	for (int kind = 0; kind < 4; kind++) {
		CHECK_SYS(pipe(fds));
		pthread_t t = start(waits, (void *)(intptr_t)kind);
		let_others_block();
		CHECK_EQ(write(fds[1], "x", 1), 1);
		join(t);
		for (int i = 0; i < 4; i++) {
			int64_t before = now_ns();

			CHECK_EQ(wait_with(kind, fds[0], i * 5 * MS), 0);
			CHECK(now_ns() - before >= i * 5 * MS);
		}
		close(fds[1]);
		CHECK_EQ(wait_with(kind, fds[0], -1), 1);
		close(fds[0]);
		ok(names[kind]);
	}
	for (int kind = 2; kind < 4; kind++)
		wake_at_edges(kind);
	ok("descriptors at the ends of a set's words");
	select_sets();
	ok("each set alone");
	poll_events();
	ok("each event alone");

	struct pollfd p[3] = { { .fd = -1, .events = POLLIN }, { .fd = 999, .events = POLLIN } };
	CHECK_SYS(pipe(fds));
	p[2] = (struct pollfd){ .fd = fds[1], .events = POLLIN | POLLOUT };
	CHECK_EQ(poll(p, 3, -1), 2);
	CHECK_EQ(p[0].revents, 0);
	CHECK_EQ(p[1].revents, POLLNVAL);
	CHECK_EQ(p[2].revents, POLLOUT);
	close(fds[0]);
	CHECK_EQ(poll(&p[2], 1, -1), 1);
	CHECK_EQ(p[2].revents, POLLOUT | POLLERR);
	ok("POLLNVAL, POLLOUT, POLLERR");

	signal(SIGUSR1, on_signal);
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &usr1, NULL);
	CHECK_SYS(pipe(fds));
	join(start(waits_with_mask, NULL));
	join(start(waits_with_mask, fds));
	CHECK_EQ(write(fds[1], "x", 1), 1);
	join(start(looks_with_time_and_mask, NULL));
	ok("signal masks of pselect and ppoll");
	return finish();
}
