// SPDX-License-Identifier: Apache-2.0
/*
 * sigwait, sigwaitinfo and sigtimedwait in threads, for signals that are blocked everywhere.
 */
#include "check.h"

#define ROUNDS 200

static sigset_t set;
static int nr_taken, acknowledged;

static void *takes(void *arg)
{
	int sig;

	for (int i = 0; i < ROUNDS; i++) {
		CHECK_PT(sigwait(&set, &sig));
		CHECK(sig == SIGUSR1 || sig == SIGUSR2 || sig == SIGTERM);
		ADD(&nr_taken, 1);
	}
	return arg;
}

static void *takes_info(void *arg)
{
	siginfo_t info;

	CHECK_EQ(sigwaitinfo(&set, &info), SIGUSR2);
	CHECK_EQ(info.si_signo, SIGUSR2);
	CHECK_EQ(info.si_code, SI_QUEUE);
	CHECK_EQ(info.si_value.sival_int, 42);
	CHECK_EQ(info.si_pid, getpid());
	return arg;
}

static void *takes_many(void *arg)
{
	siginfo_t info;

	/* Directed at this thread, and others wait for the same signal. */
	CHECK_EQ(sigwaitinfo(&set, &info), SIGUSR1);
	CHECK_EQ(info.si_code, SI_USER); /* glibc hides SI_TKILL here */
	ADD(&acknowledged, 1);
	return arg;
}

static void *takes_realtime(void *arg)
{
	siginfo_t info;
	int sig;

	ADD(&acknowledged, 1);
	/* A thread that was woken for one that the other took may be told of an interruption. */
	do
		sig = sigwaitinfo((sigset_t *)arg, &info);
	while (sig == -1 && errno == EINTR);
	CHECK(sig == SIGRTMIN + 1 || sig == SIGRTMIN + 2);
	return NULL;
}

/* Two wait for either of two that come at once: what one does not take is the other's. */
static void one_for_each(void)
{
	sigset_t realtime;

	sigemptyset(&realtime);
	sigaddset(&realtime, SIGRTMIN + 1);
	sigaddset(&realtime, SIGRTMIN + 2);
	pthread_sigmask(SIG_BLOCK, &realtime, NULL);
	for (int i = 0; i < 20; i++) {
		pthread_t t[2];

		STORE(&acknowledged, 0);
		for (int k = 0; k < 2; k++)
			t[k] = start(takes_realtime, &realtime);
		while (LOAD(&acknowledged) < 2)
			sched_yield();
		let_others_block();
		for (int k = 0; k < 2; k++)
			CHECK_SYS(sigqueue(getpid(), SIGRTMIN + 1 + (i + k) % (1 + i / 2 % 2),
					   (union sigval){ 0 }));
		for (int k = 0; k < 2; k++)
			join(t[k]);
	}
}

static int is_over, took[2];
static sigset_t wanted[2];

/* And stays: whoever ends tells the others, too. */
static void *takes_one_of(void *arg)
{
	int me = (int)(intptr_t)arg, sig;
	siginfo_t info;

	ADD(&acknowledged, 1);
	do
		sig = sigwaitinfo(&wanted[me], &info);
	while (sig == -1 && errno == EINTR);
	STORE(&took[me], sig);
	while (!LOAD(&is_over))
		sleep_ns(MS);
	return NULL;
}

static int taken_by(int who)
{
	while (!LOAD(&took[who]))
		sleep_ns(MS);
	return LOAD(&took[who]);
}

/* A thread that was told of one takes another that came meanwhile: then the first is for the other, which is told. */
static void left_to_the_other(void)
{
	const struct timespec now = { 0, 0 };
	siginfo_t info;

	for (int k = 0; k < 2; k++) {
		sigemptyset(&wanted[k]);
		sigaddset(&wanted[k], SIGRTMIN + 2);
	}
	sigaddset(&wanted[0], SIGRTMIN + 1);
	pthread_sigmask(SIG_BLOCK, &wanted[0], NULL);
	for (int i = 0; i < 20; i++) {
		pthread_t t[2];
		int sig;

		/* the one or the other first: who is asked first is not said */
		STORE(&acknowledged, 0);
		STORE(&is_over, 0);
		took[0] = took[1] = 0;
		for (int k = 0; k < 2; k++) {
			intptr_t which = (i + k) % 2;

			t[which] = start(takes_one_of, (void *)which);
			while (LOAD(&acknowledged) < k + 1)
				sched_yield();
			let_others_block();
		}
		CHECK_SYS(kill(getpid(), SIGRTMIN + 2));
		CHECK_SYS(kill(getpid(), SIGRTMIN + 1));
		sig = taken_by(0);
		if (sig == SIGRTMIN + 2) { /* it came before the other was sent */
			CHECK_SYS(kill(getpid(), SIGRTMIN + 2));
			CHECK_EQ(sigtimedwait(&wanted[0], &info, &now), SIGRTMIN + 1);
		} else {
			CHECK_EQ(sig, SIGRTMIN + 1);
		}
		CHECK_EQ(taken_by(1), SIGRTMIN + 2);
		STORE(&is_over, 1);
		join(t[0]);
		join(t[1]);
	}
}

int main(void)
{
	static const int sigs[] = { SIGUSR1, SIGUSR2, SIGTERM };
	pthread_t t[8];
	siginfo_t info;

	sigemptyset(&set);
	for (int i = 0; i < 3; i++)
		sigaddset(&set, sigs[i]);
	pthread_sigmask(SIG_BLOCK, &set, NULL);

	t[0] = start(takes, NULL);
	for (int i = 1; i <= ROUNDS; i++) {
		CHECK_SYS(kill(getpid(), sigs[i % 3]));
		while (LOAD(&nr_taken) < i)
			sched_yield();
	}
	join(t[0]);
	ok("sigwait takes what is sent to the process");

	t[0] = start(takes_info, NULL);
	let_others_block();
	CHECK_SYS(sigqueue(getpid(), SIGUSR2, (union sigval){ .sival_int = 42 }));
	join(t[0]);
	CHECK_SYS(sigqueue(getpid(), SIGUSR2, (union sigval){ .sival_int = 42 }));
	join(start(takes_info, NULL));
	ok("sigwaitinfo, sent after and before");

	for (int i = 0; i < 8; i++)
		t[i] = start(takes_many, NULL);
	for (int i = 7; i >= 0; i--)
		CHECK_PT(pthread_kill(t[i], SIGUSR1));
	for (int i = 0; i < 8; i++)
		join(t[i]);
	CHECK_EQ(acknowledged, 8);
	ok("each thread takes its own");
	one_for_each();
	ok("two signals for two who wait");
	left_to_the_other();
	ok("one that is left to the other");

	for (int i = 0; i < 4; i++) {
		struct timespec ts = timespec_of(i * 5 * MS);
		int64_t before = now_ns();

		CHECK_ERRNO(sigtimedwait(&set, &info, &ts), EAGAIN);
		CHECK(now_ns() - before >= i * 5 * MS);
	}
	struct timespec bad = { .tv_nsec = SEC };
	CHECK_ERRNO(sigtimedwait(&set, &info, &bad), EINVAL);
	raise(SIGTERM);
	struct timespec zero = { .tv_sec = 0 };
	CHECK_EQ(sigtimedwait(&set, &info, &zero), SIGTERM);
	ok("sigtimedwait");

	pid_t parent = getpid(), pid = fork();
	if (pid == 0)
		_exit(kill(parent, SIGTERM) ? 1 : 0);
	CHECK_EQ(sigwaitinfo(&set, &info), SIGTERM);
	CHECK_EQ(info.si_code, SI_USER);
	CHECK_EQ(info.si_pid, pid);
	reap(pid);
	ok("sent by another process");
	return finish();
}
