// SPDX-License-Identifier: Apache-2.0
/*
 * Real-time signals for the process, sent in bursts by another process and by threads, while the threads that
 * want them come and go, flip their masks or wait with time-outs: each is taken exactly once.
 */
#include "check.h"

#define NR 2000
#define SIG (SIGRTMIN + 1)
#define OTHER (SIGRTMIN + 2)

static unsigned char taken[NR];
static int nr_taken, is_over;

static void took(int value)
{
	if (value < 0 || value >= NR || ADD(&taken[value], 1) != 1)
		ADD(&abi_failures, 1);
	ADD(&nr_taken, 1);
}

static void handler(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	took(info->si_value.sival_int);
}

static void set_blocked(int how, int sig)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, sig);
	pthread_sigmask(how, &set, NULL);
}

static void *sends(void *arg)
{
	union sigval value;
	long part = (long)arg;

	for (int i = (int)part * NR / 4; i < (int)(part + 1) * NR / 4; i++) {
		value.sival_int = i;
		while (sigqueue(getpid(), SIG, value) == -1)
			sched_yield();
	}
	return NULL;
}

/* Half from a child, half from two threads. */
static void storm(void)
{
	pid_t parent = getpid(), pid;
	union sigval value;
	pthread_t t[2];

	pid = fork();
	if (pid == 0) {
		for (int i = 0; i < NR / 2; i++) {
			value.sival_int = i;
			while (sigqueue(parent, SIG, value) == -1)
				sched_yield();
		}
		_exit(0);
	}
	for (long i = 0; i < 2; i++)
		t[i] = start(sends, (void *)(i + 2));
	join(t[0]);
	join(t[1]);
	reap(pid);
}

static void *lives_shortly(void *arg)
{
	set_blocked(SIG_UNBLOCK, SIG);
	sched_yield();
	return arg;
}

static void *makes_threads(void *arg)
{
	while (!LOAD(&is_over))
		join(start(lives_shortly, NULL));
	return arg;
}

static void *flips(void *arg)
{
	while (!LOAD(&is_over)) {
		set_blocked(SIG_UNBLOCK, SIG);
		sched_yield();
		set_blocked(SIG_BLOCK, SIG);
		sched_yield();
	}
	return arg;
}

static void *waits_shortly(void *arg)
{
	struct timespec shortly = { 0, 100000 };
	siginfo_t info;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIG);
	while (!LOAD(&is_over))
		if (sigtimedwait(&set, &info, &shortly) == SIG)
			took(info.si_value.sival_int);
	return arg;
}

/* Signals that end its waits all the time: those of SIG that came with them must not be lost. */
static void *suspends(void *arg)
{
	sigset_t set;

	pthread_sigmask(SIG_SETMASK, NULL, &set);
	sigdelset(&set, SIG);
	sigdelset(&set, OTHER);
	while (!LOAD(&is_over))
		sigsuspend(&set);
	return arg;
}

static void nudge(int sig)
{
	(void)sig;
}

static void run(const char *what, void *(*a)(void *), void *(*b)(void *))
{
	pthread_t t[4];

	memset(taken, 0, sizeof(taken));
	STORE(&nr_taken, 0);
	STORE(&is_over, 0);
	for (int i = 0; i < 4; i++)
		t[i] = start(i % 2 ? a : b, NULL);
	storm();
	while (LOAD(&nr_taken) < NR) {
		if (a == suspends || b == suspends)
			for (int i = 0; i < 4; i++)
				pthread_kill(t[i], OTHER);
		sched_yield();
	}
	STORE(&is_over, 1);
	for (int i = 0; i < 4; i++) {
		/* blocked but in sigsuspend(): it stays pending until then */
		if (a == suspends || b == suspends)
			pthread_kill(t[i], OTHER);
		join(t[i]);
	}
	CHECK_EQ(nr_taken, NR);
	ok(what);
}

int main(void)
{
	struct sigaction act = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART };

	sigaction(SIG, &act, NULL);
	act = (struct sigaction){ .sa_handler = nudge };
	sigaction(OTHER, &act, NULL);
	set_blocked(SIG_BLOCK, SIG);
	run("by threads that come and go", makes_threads, makes_threads);
	run("by threads that flip their masks", flips, flips);
	run("by threads that wait for a short time", waits_shortly, waits_shortly);
	run("by either", flips, waits_shortly);
	set_blocked(SIG_BLOCK, OTHER);
	run("by threads in sigsuspend", suspends, suspends);
	return finish();
}
