// SPDX-License-Identifier: Apache-2.0
/*
 * Threads that do nothing but send signals, by pthread_kill(), kill() and sigqueue(), against threads that do
 * nothing but make calls: every real-time signal is handled once, no call with SA_RESTART fails, what was
 * written is read, the last signal of a kind is never lost, and who is signalled gets to run its handler.
 */
#include <poll.h>
#include <sched.h>
#include <semaphore.h>
#include "check.h"

#define NR_KINDS 6
#define NR_SENDERS 6
#define NR_SENT 500
#define NR_HANDLED 200
#define RT_SIG (SIGRTMIN + 1)

static int is_over, nr_ready, next_target, nr_in_process, nr_queued;
static unsigned char queued[NR_SENDERS * NR_SENT];
static __thread int *handled; /* of a target */
static int nr_handled[NR_KINDS];
static pthread_t targets[NR_KINDS];

static void on_thread(int sig)
{
	(void)sig;
	if (handled)
		ADD(handled, 1);
}

static void on_process(int sig)
{
	(void)sig;
	ADD(&nr_in_process, 1);
}

static void on_queued(int sig, siginfo_t *info, void *context)
{
	int value = info->si_value.sival_int;

	(void)sig;
	(void)context;
	if (value < 0 || value >= NR_SENDERS * NR_SENT || ADD(&queued[value], 1) != 1)
		ADD(&abi_failures, 1);
	ADD(&nr_queued, 1);
}

static void calls_getppid(void)
{
	(void)getppid();
}

static void moves_bytes(void)
{
	static __thread int ends[2];
	static __thread unsigned char next;
	unsigned char byte = 0;

	if (!ends[1])
		CHECK_SYS(pipe(ends));
	next++;
	CHECK_EQ(write(ends[1], &next, 1), 1);
	CHECK_EQ(read(ends[0], &byte, 1), 1);
	CHECK_EQ(byte, next);
}

static void sleeps(void)
{
	struct timespec shortly = { 0, 1000 };

	if (nanosleep(&shortly, NULL) == -1)
		CHECK_EQ(errno, EINTR);
}

static void polls(void)
{
	if (poll(NULL, 0, 1) == -1)
		CHECK_EQ(errno, EINTR);
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;

static void waits_for_condition(void)
{
	struct timespec until = timespec_of(clock_ns(CLOCK_REALTIME) + 10000);
	int ret;

	pthread_mutex_lock(&mutex);
	ret = pthread_cond_timedwait(&cond, &mutex, &until);
	pthread_mutex_unlock(&mutex);
	if (ret != 0)
		CHECK_EQ(ret, ETIMEDOUT);
}

/* Blocked but while it waits: neither kind may be lost in between. */
static void suspends(void)
{
	static __thread sigset_t blocked, open;
	static __thread int is_set;

	if (!is_set) {
		sigemptyset(&blocked);
		sigaddset(&blocked, SIGUSR1);
		sigaddset(&blocked, SIGUSR2);
		sigaddset(&blocked, RT_SIG);
		pthread_sigmask(SIG_BLOCK, &blocked, &open);
		is_set = 1;
	}
	CHECK_ERRNO(sigsuspend(&open), EINTR);
}

static void (*const kinds[NR_KINDS])(void) = { calls_getppid, moves_bytes,         sleeps,
					       polls,         waits_for_condition, suspends };

static void *target(void *arg)
{
	intptr_t kind = (intptr_t)arg;

	handled = &nr_handled[kind];
	ADD(&nr_ready, 1);
	while (!LOAD(&is_over))
		kinds[kind]();
	return NULL;
}

static void block_all(void)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
}

static void *sender(void *arg)
{
	intptr_t me = (intptr_t)arg;

	block_all();
	for (int i = 0; i < NR_SENT; i++) {
		union sigval value = { .sival_int = (int)me * NR_SENT + i };

		CHECK_PT(pthread_kill(targets[ADD(&next_target, 1) % NR_KINDS], SIGUSR1));
		CHECK_SYS(kill(getpid(), SIGUSR2));
		while (sigqueue(getpid(), RT_SIG, value) == -1) {
			CHECK_EQ(errno, EAGAIN);
			sched_yield();
		}
	}
	return NULL;
}

/* As long as it takes: one more is always enough when none is lost. */
static void all_hear_the_last_one(void)
{
	int before = LOAD(&nr_in_process);

	CHECK_SYS(kill(getpid(), SIGUSR2));
	while (LOAD(&nr_in_process) == before)
		sched_yield();
	for (int i = 0; i < NR_KINDS; i++) {
		before = LOAD(&nr_handled[i]);
		CHECK_PT(pthread_kill(targets[i], SIGUSR1));
		while (LOAD(&nr_handled[i]) == before)
			sched_yield();
	}
}

static void storm(void)
{
	pthread_t senders[NR_SENDERS];

	for (intptr_t i = 0; i < NR_KINDS; i++)
		targets[i] = start(target, (void *)i);
	while (LOAD(&nr_ready) <
	       NR_KINDS) /* what a thread handles before it knows where to count is not counted */
		sched_yield();
	for (intptr_t i = 0; i < NR_SENDERS; i++)
		senders[i] = start(sender, (void *)i);
	for (int i = 0; i < NR_SENDERS; i++)
		join(senders[i]);
	while (LOAD(&nr_queued) < NR_SENDERS * NR_SENT)
		sched_yield();
	ok("every queued signal was handled once");
	for (int i = 0; i < 5; i++)
		all_hear_the_last_one();
	ok("the last signal is never lost");
	STORE(&is_over, 1);
	CHECK_PT(pthread_kill(targets[NR_KINDS - 1], SIGUSR1));
	for (int i = 0; i < NR_KINDS; i++)
		join(targets[i]);
	CHECK_EQ(nr_queued, NR_SENDERS * NR_SENT);
	ok("nothing came twice");
}

static void *pauses(void *arg)
{
	handled = &nr_handled[0];
	while (LOAD(handled) < NR_HANDLED)
		pause();
	return arg;
}

/* Two that never wait for anything, and whom they wake all the time. */
static void *never_waits(void *arg)
{
	block_all();
	while (!LOAD(&is_over))
		CHECK_PT(pthread_kill(*(pthread_t *)arg, SIGUSR1));
	return NULL;
}

static void wakes_a_sleeper(void)
{
	pthread_t t, senders[2];

	STORE(&is_over, 0);
	STORE(&nr_handled[0], 0);
	t = start(pauses, NULL);
	for (int i = 0; i < 2; i++)
		senders[i] = start(never_waits, &t);
	while (LOAD(&nr_handled[0]) < NR_HANDLED)
		sleep_ns(MS);
	STORE(&is_over, 1);
	for (int i = 0; i < 2; i++)
		join(senders[i]);
	join(t);
	ok("who is woken by senders that never wait gets to run");
}

int main(void)
{
	struct sigaction act = { .sa_handler = on_thread, .sa_flags = SA_RESTART };

	sigaction(SIGUSR1, &act, NULL);
	act.sa_handler = on_process;
	sigaction(SIGUSR2, &act, NULL);
	act = (struct sigaction){ .sa_sigaction = on_queued, .sa_flags = SA_RESTART | SA_SIGINFO };
	sigaction(RT_SIG, &act, NULL);
	storm();
	wakes_a_sleeper();
	return finish();
}
