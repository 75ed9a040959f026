// SPDX-License-Identifier: Apache-2.0
/*
 * poll, ppoll, select and pselect: readiness from another thread, timeouts, signal masks.
 */
#include <poll.h>
#include <sys/select.h>
#include "check.h"

static int fds[2];
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
	ok("signal masks of pselect and ppoll");
	return finish();
}
