// SPDX-License-Identifier: Apache-2.0
/*
 * Signals to the process: main takes them when it can, else a thread that has them unblocked;
 * kill to oneself is delivered before it returns.
 */
#include "check.h"

static int nr_handled;
static int nr_by_others; /* of a round */
static volatile sig_atomic_t last;
static pthread_t handled_by, main_thread;

static void on_signal(int sig)
{
	last = sig;
	handled_by = pthread_self();
	ADD(&nr_handled, 1);
}

static void *sends(void *arg)
{
	for (int i = 0; i < 50; i++) {
		int before = LOAD(&nr_handled);

		CHECK_SYS(kill(getpid(), SIGUSR1));
		while (LOAD(&nr_handled) == before)
			sched_yield();
		nr_by_others += !pthread_equal(handled_by, main_thread);
	}
	STORE((int *)arg, 1);
	return NULL;
}

/*
 * Main is preferred, but while it waits for a processor with a signal to see to, the kernel gives the next one to
 * somebody else. So there are more rounds until main took all of one.
 */
static void main_takes_them(int is_busy)
{
	do {
		int is_done = 0;
		pthread_t t;

		nr_by_others = 0;
		t = start(sends, &is_done);
		while (!LOAD(&is_done))
			if (!is_busy)
				sleep_ns(50 * MS);
		join(t);
	} while (nr_by_others);
}

static void *accepts(void *arg)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	ADD((int *)arg, 1);
	while (LOAD((int *)arg) != 100)
		sleep_ns(MS);
	return NULL;
}

int main(void)
{
	/* SA_NODEFER: a signal that comes before main has left the handler is still main's. */
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_RESTART | SA_NODEFER };
	sigset_t usr2;
	int state = 0;
	pthread_t t;

	main_thread = pthread_self();
	sigaction(SIGUSR1, &sa, NULL);
	sigaction(SIGUSR2, &sa, NULL);
	CHECK_SYS(kill(getpid(), SIGUSR1));
	CHECK_EQ(LOAD(&nr_handled), 1);
	CHECK_EQ(raise(SIGUSR2), 0);
	CHECK_EQ(LOAD(&nr_handled), 2);
	ok("kill and raise are delivered before they return");

	main_takes_them(0);
	main_takes_them(1);
	ok("main takes them, asleep or busy");

	sigemptyset(&usr2);
	sigaddset(&usr2, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &usr2, NULL);
	t = start(accepts, &state);
	while (LOAD(&state) != 1)
		sched_yield();
	for (int i = 0; i < 50; i++) {
		int before = LOAD(&nr_handled);

		CHECK_SYS(kill(getpid(), SIGUSR2));
		while (LOAD(&nr_handled) == before)
			sched_yield();
		CHECK(pthread_equal(handled_by, t));
	}
	ok("when main blocks them, the thread that does not");

	pid_t pid = fork();
	if (pid == 0) {
		int want = LOAD(&nr_handled) + 1;

		kill(getpid(), SIGUSR1);
		CHECK_EQ(LOAD(&nr_handled), want);
		CHECK_EQ(last, SIGUSR1);
		_exit(finish());
	}
	reap(pid);
	STORE(&state, 100);
	join(t);
	CHECK_ERRNO(kill(getpid(), 65), EINVAL);
	CHECK_SYS(kill(getpid(), 0));
	ok("in a forked child; errors");
	return finish();
}
