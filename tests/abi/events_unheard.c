// SPDX-License-Identifier: Apache-2.0
/*
 * Data that comes many times over while nobody waits for it, as where a program waits in an epoll set of its own, and
 * then is waited for again: by a read, by poll() and by the set, and while it is just on its way.
 */
#include <netinet/in.h>
#include <poll.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include "tcp.h"

#define NR_UNHEARD 40 /* in a row */
#define NR_TURNS 30
#define NR_RACES 20000

static int here, there; /* two ends */
static sem_t wanted;

static void wait_by_read(void)
{
	char c;

	CHECK_EQ(read(here, &c, 1), 1);
}

static void wait_by_poll(void)
{
	struct pollfd p = { .fd = here, .events = POLLIN };

	CHECK_EQ(poll(&p, 1, -1), 1);
	wait_by_read();
}

static void wait_by_set(void)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int set = (int)CHECK_SYS(epoll_create1(0));

	CHECK_SYS(epoll_ctl(set, EPOLL_CTL_ADD, here, &ev));
	CHECK_EQ(epoll_wait(set, &ev, 1, -1), 1);
	wait_by_read();
	close(set);
}

/* Not a wait of any kind: it is there when read() is called. */
static void read_unheard(void)
{
	struct pollfd p = { .fd = here, .events = POLLIN };
	char c = 'u';

	CHECK_EQ(write(there, &c, 1), 1);
	while (poll(&p, 1, 0) != 1)
		sched_yield();
	CHECK_EQ(read(here, &c, 1), 1);
}

static void *writes_when_wanted(void *arg)
{
	for (int i = 0; i < NR_TURNS; i++) {
		CHECK_SYS(sem_wait(&wanted));
		let_others_block();
		CHECK_EQ(write(there, "w", 1), 1);
	}
	return arg;
}

static void waits_between(void)
{
	static void (*const waits[])(void) = { wait_by_read, wait_by_poll, wait_by_set };
	pthread_t t = start(writes_when_wanted, NULL);

	for (int i = 0; i < NR_TURNS; i++) {
		CHECK_SYS(sem_post(&wanted));
		waits[i % 3]();
		for (int n = 0; n < NR_UNHEARD; n++)
			read_unheard();
	}
	join(t);
}

static void *writes_all_the_time(void *arg)
{
	for (int i = 0; i < NR_RACES; i++) {
		CHECK_EQ(write(there, "r", 1), 1);
		for (int n = 0; n < i % 64; n++)
			(void)LOAD(
				&abi_failures); /* some times it is read before, some times waited for */
		if (i % 1024 == 0)
			sched_yield();
	}
	return arg;
}

static void waits_at_any_moment(void)
{
	pthread_t t = start(writes_all_the_time, NULL);
	int nr = 0;

	for (int i = 0; nr < NR_RACES; i++) {
		struct pollfd p = { .fd = here, .events = POLLIN };
		char buf[8];
		ssize_t len;

		if (i % 300 < 290 && poll(&p, 1, i % 3 ? 0 : -1) != 1)
			continue;
		len = CHECK_SYS(read(here, buf, sizeof(buf)));
		if (len <= 0)
			break;
		nr += (int)len;
	}
	CHECK_EQ(nr, NR_RACES);
	join(t);
}

static void run_on(const char *kind)
{
	waits_between();
	waits_at_any_moment();
	close(here);
	close(there);
	ok(kind);
}

static void on_tcp(void)
{
	int fds[2];

	tcp_pair(fds);
	here = fds[0];
	there = fds[1];
	run_on("a TCP connection");
}

static void *all(void *arg)
{
	int fds[2];

	CHECK_SYS(sem_init(&wanted, 0, 0));
	CHECK_SYS(socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
	here = fds[0];
	there = fds[1];
	run_on("a unix socket");
	CHECK_SYS(pipe(fds));
	here = fds[0];
	there = fds[1];
	run_on("a pipe");
	on_tcp();
	return arg;
}

int main(void)
{
	join(start(all, NULL));
	return finish();
}
