// SPDX-License-Identifier: Apache-2.0
/*
 * A signal that was sent before a system call returns is handled by the time it returns: of a child that
 * was waited for, of the caller's process group, of a timer that is then disarmed.
 */
#include "check.h"

#include <stdbool.h>
#include <sys/time.h>

#define ROUNDS 200

static int nr_handled; /* atomic */

static void on_signal(int sig)
{
	(void)sig;
	ADD(&nr_handled, 1);
}

static void *waits(void *stop)
{
	while (!LOAD((int *)stop))
		sleep_ns(MS);
	return NULL;
}

static pid_t child_that_signals(int sig)
{
	pid_t pid = fork();

	if (pid == 0) {
		if (sig)
			kill(getppid(), sig);
		_exit(0);
	}
	return pid;
}

static void wait_shows(int sig)
{
	int status;
	siginfo_t info;

	for (int i = 0; i < ROUNDS; i++) {
		STORE(&nr_handled, 0);
		pid_t pid = child_that_signals(sig == SIGCHLD ? 0 : sig);

		switch (i % 3) {
		case 0:
			while (waitpid(pid, &status, 0) == -1 && errno == EINTR)
				;
			break;
		case 1:
			while (waitpid(pid, &status, WNOHANG) == 0)
				;
			break;
		default:
			while (waitid(P_PID, (id_t)pid, &info, WEXITED) == -1 && errno == EINTR)
				;
		}
		CHECK_EQ(LOAD(&nr_handled), 1);
	}
}

/* About as long as the timer: it expires now before, now after we disarm it. */
static void spin(int round)
{
	int64_t end = now_ns() + (round % 40) * 5000;

	while (now_ns() < end)
		;
}

static void disarm_itimer(void)
{
	struct itimerval soon = { .it_value.tv_usec = 100 }, off = { 0 };

	for (int i = 0; i < ROUNDS; i++) {
		signal(SIGALRM, on_signal);
		setitimer(ITIMER_REAL, &soon, NULL);
		spin(i);
		setitimer(ITIMER_REAL, &off, NULL);
		signal(SIGALRM, SIG_DFL);
	}
}

static void disarm_alarm(void)
{
	struct itimerval soon = { .it_value.tv_usec = 100 };

	for (int i = 0; i < ROUNDS; i++) {
		signal(SIGALRM, on_signal);
		setitimer(ITIMER_REAL, &soon, NULL);
		spin(i);
		alarm(0);
		signal(SIGALRM, SIG_DFL);
	}
}

static void disarm_timer(bool by_delete)
{
	struct sigevent ev = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR2 };
	struct itimerspec soon = { .it_value.tv_nsec = 100000 }, off = { 0 };

	for (int i = 0; i < ROUNDS; i++) {
		timer_t timer;
		int seen;

		signal(SIGUSR2, on_signal);
		CHECK_SYS(timer_create(CLOCK_MONOTONIC, &ev, &timer));
		timer_settime(timer, 0, &soon, NULL);
		spin(i);
		if (!by_delete)
			timer_settime(timer, 0, &off, NULL);
		else
			timer_delete(timer);
		seen = LOAD(&nr_handled);
		if (!by_delete)
			timer_delete(timer);
		CHECK_EQ(LOAD(&nr_handled), seen);
		signal(SIGUSR2, SIG_DFL);
	}
}

int main(void)
{
	int stop = 0;
	pthread_t t;

	if (getpgrp() != getpid())
		CHECK_SYS(setpgid(0, 0));
	signal(SIGUSR1, on_signal);
	signal(SIGCHLD, SIG_DFL);
	/* The only other thread takes none of them. */
	sigset_t all, old;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	t = start(waits, &stop);
	pthread_sigmask(SIG_SETMASK, &old, NULL);

	wait_shows(SIGUSR1);
	ok("what a child sent before it ended");
	signal(SIGCHLD, on_signal);
	wait_shows(SIGCHLD);
	signal(SIGCHLD, SIG_DFL);
	ok("SIGCHLD of the child that was waited for");
	for (int i = 0; i < ROUNDS; i++) {
		STORE(&nr_handled, 0);
		CHECK_SYS(kill(i % 2 ? 0 : -getpid(), SIGUSR1));
		CHECK_EQ(LOAD(&nr_handled), 1);
	}
	ok("kill() of our process group");
	disarm_itimer();
	disarm_alarm();
	ok("after an interval timer is off, no signal of it");
	disarm_timer(false);
	disarm_timer(true);
	ok("after a POSIX timer is off or gone, no signal of it");
	STORE(&stop, 1);
	join(t);
	return finish();
}
