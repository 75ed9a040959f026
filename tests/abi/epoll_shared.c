// SPDX-License-Identifier: Apache-2.0
/*
 * The program's own epoll: sets shared by threads, edge and one-shot, timeouts, epoll_pwait.
 */
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include "check.h"

#define NR 8
#define EVENTS 2000

static int set, quit, fds[NR][2], nr_seen;
static volatile sig_atomic_t nr_signals;

static void on_signal(int sig)
{
	(void)sig;
	nr_signals++;
}

static void add(int fd, uint32_t events, int data)
{
	struct epoll_event e = { .events = events, .data.u32 = (uint32_t)data };

	CHECK_SYS(epoll_ctl(set, EPOLL_CTL_ADD, fd, &e));
}

static void *serves(void *arg)
{
	for (;;) {
		struct epoll_event e;
		char c;

		if (CHECK_SYS(epoll_wait(set, &e, 1, -1)) < 1 || e.data.u32 == NR)
			return arg;
		int i = (int)e.data.u32;

		CHECK_EQ(read(fds[i][0], &c, 1), 1);
		ADD(&nr_seen, 1);
		e.events = EPOLLIN | EPOLLONESHOT;
		CHECK_SYS(epoll_ctl(set, EPOLL_CTL_MOD, fds[i][0], &e));
	}
}

static void *waits_with_mask(void *arg)
{
	struct epoll_event e;
	sigset_t none;

	sigemptyset(&none);
	CHECK_PT(pthread_kill(pthread_self(), SIGUSR1));
	CHECK_ERRNO(epoll_pwait(set, &e, 1, -1, &none), EINTR);
	CHECK_EQ(nr_signals, 1);
	return arg;
}

int main(void)
{
	pthread_t t[4];
	struct epoll_event e[4];
	sigset_t usr1;

	set = (int)CHECK_SYS(epoll_create1(EPOLL_CLOEXEC));
	for (int i = 0; i < NR; i++) {
		CHECK_SYS(pipe(fds[i]));
		add(fds[i][0], EPOLLIN | EPOLLONESHOT, i);
	}
	for (int i = 0; i < 4; i++)
		t[i] = start(serves, NULL);
	for (int i = 0; i < EVENTS; i++)
		CHECK_EQ(write(fds[i % NR][1], "x", 1), 1);
	while (LOAD(&nr_seen) < EVENTS)
		sched_yield();
	quit = (int)CHECK_SYS(eventfd(1, 0));
	add(quit, EPOLLIN, NR);
	for (int i = 0; i < 4; i++)
		join(t[i]);
	CHECK_EQ(nr_seen, EVENTS);
	close(set);
	ok("four threads serve eight pipes, one-shot");

	set = (int)CHECK_SYS(epoll_create1(0));
	for (int i = 0; i < 4; i++) {
		int64_t before = now_ns();

		CHECK_EQ(epoll_wait(set, e, 4, i * 5), 0);
		CHECK(now_ns() - before >= i * 5 * MS);
	}
	ok("timeouts");

	add(fds[0][0], EPOLLIN | EPOLLET, 0);
	CHECK_EQ(write(fds[0][1], "ab", 2), 2);
	CHECK_EQ(epoll_wait(set, e, 4, -1), 1);
	CHECK_EQ(epoll_wait(set, e, 4, 0), 0);
	CHECK_EQ(write(fds[0][1], "c", 1), 1);
	CHECK_EQ(epoll_wait(set, e, 4, -1), 1);
	close(fds[0][1]);
	CHECK_EQ(epoll_wait(set, e, 4, -1), 1);
	CHECK_EQ(e[0].events, EPOLLIN | EPOLLHUP);
	CHECK_SYS(epoll_ctl(set, EPOLL_CTL_DEL, fds[0][0], NULL));
	CHECK_ERRNO(epoll_ctl(set, EPOLL_CTL_DEL, fds[0][0], NULL), ENOENT);
	CHECK_ERRNO(epoll_wait(set, e, 0, 0), EINVAL);
	CHECK_ERRNO(epoll_wait(fds[1][0], e, 1, 0), EINVAL);
	ok("edges, hang-up, errors");

	signal(SIGUSR1, on_signal);
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &usr1, NULL);
	join(start(waits_with_mask, NULL));
	ok("epoll_pwait lets a signal in");
	return finish();
}
