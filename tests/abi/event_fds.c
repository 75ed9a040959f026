// SPDX-License-Identifier: Apache-2.0
/*
 * eventfd, timerfd and signalfd read by blocked threads.
 */
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include "check.h"

#define ROUNDS 3000

static int ping, pong, signals;

static void *answers(void *arg)
{
	uint64_t value;

	for (int i = 0; i < ROUNDS; i++) {
		CHECK_EQ(read(ping, &value, sizeof(value)), sizeof(value));
		CHECK_EQ(write(pong, &value, sizeof(value)), sizeof(value));
	}
	return arg;
}

static void *takes_units(void *arg)
{
	uint64_t value;

	for (int i = 0; i < 100; i++) {
		CHECK_EQ(read(ping, &value, sizeof(value)), sizeof(value));
		CHECK_EQ(value, 1);
	}
	return arg;
}

static void *reads_signals(void *arg)
{
	struct signalfd_siginfo info;

	for (int i = 0; i < 3; i++) {
		CHECK_EQ(read(signals, &info, sizeof(info)), sizeof(info));
		CHECK_EQ(info.ssi_signo, SIGRTMIN + 1);
		CHECK_EQ(info.ssi_int, 100 + i);
		CHECK_EQ(info.ssi_pid, getpid());
	}
	return arg;
}

int main(void)
{
	pthread_t t[4];
	uint64_t value = 1;

	ping = (int)CHECK_SYS(eventfd(0, 0));
	pong = (int)CHECK_SYS(eventfd(0, 0));
	t[0] = start(answers, NULL);
	for (uint64_t i = 1; i <= ROUNDS; i++) {
		CHECK_EQ(write(ping, &i, sizeof(i)), sizeof(i));
		CHECK_EQ(read(pong, &value, sizeof(value)), sizeof(value));
		CHECK_EQ(value, i);
	}
	join(t[0]);
	close(ping);
	ping = (int)CHECK_SYS(eventfd(0, EFD_SEMAPHORE));
	for (int i = 0; i < 4; i++)
		t[i] = start(takes_units, NULL);
	for (int i = 0; i < 4; i++) {
		value = 100;
		CHECK_EQ(write(ping, &value, sizeof(value)), sizeof(value));
	}
	for (int i = 0; i < 4; i++)
		join(t[i]);
	ok("eventfd, counting and as a semaphore");

	struct itimerspec spec = { .it_value.tv_nsec = 20 * MS, .it_interval.tv_nsec = 2 * MS };
	int timer = (int)CHECK_SYS(timerfd_create(CLOCK_MONOTONIC, 0));
	int64_t before = now_ns();
	uint64_t ticks = 0;
	CHECK_SYS(timerfd_settime(timer, 0, &spec, NULL));
	while (ticks < 10) {
		CHECK_EQ(read(timer, &value, sizeof(value)), sizeof(value));
		CHECK(value >= 1);
		ticks += value;
	}
	CHECK(now_ns() - before >= 20 * MS + 9 * 2 * MS);
	ok("timerfd");

	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN + 1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	signals = (int)CHECK_SYS(signalfd(-1, &set, 0));
	t[0] = start(reads_signals, NULL);
	for (int i = 0; i < 3; i++) {
		let_others_block();
		CHECK_SYS(sigqueue(getpid(), SIGRTMIN + 1, (union sigval){ .sival_int = 100 + i }));
	}
	join(t[0]);
	ok("signalfd read by a thread");
	return finish();
}
