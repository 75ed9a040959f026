// SPDX-License-Identifier: Apache-2.0
/*
 * Many threads wait on one level-triggered set, and each takes one item at a time: what one leaves behind reaches
 * another, whether that one sleeps, looks or lies down just then; also when some of them give up by time, and when
 * a poll() waits on the set itself.
 */
#include <fcntl.h>
#include <poll.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include "check.h"

#define THREADS 8
#define PIPES 16
#define BURSTS 1500

static int set, fds[PIPES][2], is_over;
static sem_t taken;

static void *takes_one_at_a_time(void *arg)
{
	/* Half of them wait for ever, the others for a millisecond. */
	int ms = (intptr_t)arg % 2 ? 1 : -1;

	while (!LOAD(&is_over)) {
		struct epoll_event e;
		char c;

		if (CHECK_SYS(epoll_wait(set, &e, 1, ms)) == 1 && read(e.data.fd, &c, 1) == 1)
			CHECK_SYS(sem_post(&taken));
	}
	return arg;
}

static void *polls_the_set(void *arg)
{
	while (!LOAD(&is_over)) {
		struct pollfd p = { .fd = set, .events = POLLIN };

		CHECK_SYS(poll(&p, 1, -1));
		sched_yield();
	}
	return arg;
}

int main(void)
{
	pthread_t t[THREADS + 1];

	set = CHECK_SYS(epoll_create1(0));
	sem_init(&taken, 0, 0);
	for (int i = 0; i < PIPES; i++) {
		CHECK_SYS(pipe2(fds[i], O_NONBLOCK));
		struct epoll_event e = { .events = EPOLLIN, .data.fd = fds[i][0] };
		CHECK_SYS(epoll_ctl(set, EPOLL_CTL_ADD, fds[i][0], &e));
	}
	for (intptr_t i = 0; i < THREADS; i++)
		t[i] = start(takes_one_at_a_time, (void *)i);
	t[THREADS] = start(polls_the_set, NULL);
	for (int burst = 0; burst < BURSTS; burst++) {
		int nr = 1 + burst % PIPES;

		for (int i = 0; i < nr; i++)
			CHECK_EQ(write(fds[i][1], "x", 1), 1);
		for (int i = 0; i < nr; i++)
			CHECK_SYS(sem_wait(&taken));
	}
	ok("every item is taken");

	STORE(&is_over, 1);
	/* Nobody reads these: they end every wait. */
	for (int i = 0; i < PIPES; i++)
		CHECK_EQ(write(fds[i][1], "yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy", 32), 32);
	for (int i = 0; i < THREADS + 1; i++)
		join(t[i]);
	return finish();
}
