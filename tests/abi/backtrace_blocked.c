// SPDX-License-Identifier: Apache-2.0
/*
 * backtrace() in a signal handler of a blocked or spinning thread reaches the thread's functions.
 */
#include <execinfo.h>
#include <semaphore.h>
#include "check.h"

static sem_t sem, seen;
static int fds[2], stop, nr_frames;
static void *frames[64];

static void on_signal(int sig)
{
	int saved = errno;

	(void)sig;
	nr_frames = backtrace(frames, 64);
	sem_post(&seen);
	errno = saved;
}

__attribute__((noinline)) static void in_read(void)
{
	char c;

	CHECK_EQ(read(fds[0], &c, 1), 1);
	__asm__ volatile("");
}

__attribute__((noinline)) static void in_sem(void)
{
	while (sem_wait(&sem) == -1)
		;
	__asm__ volatile("");
}

__attribute__((noinline)) static void in_loop(void)
{
	while (!LOAD(&stop))
		;
	__asm__ volatile("");
}

static void *runs(void *fn)
{
	((void (*)(void))fn)();
	return NULL;
}

static int is_in(void (*fn)(void))
{
	for (int i = 0; i < nr_frames; i++)
		if ((char *)frames[i] >= (char *)fn && (char *)frames[i] < (char *)fn + 200)
			return 1;
	return 0;
}

static void try_one(void (*fn)(void), const char *name)
{
	pthread_t t = start(runs, (void *)fn);

	/* Until it is inside, the frame is not there yet; it must come. */
	do {
		CHECK_PT(pthread_kill(t, SIGUSR1));
		while (sem_wait(&seen) == -1)
			;
	} while (!is_in(fn));
	CHECK(nr_frames >= 3);
	STORE(&stop, 1);
	/* Only what fn waits for: a byte left over would let the next one out before its signal. */
	if (fn == in_read)
		CHECK_EQ(write(fds[1], "x", 1), 1);
	if (fn == in_sem)
		sem_post(&sem);
	join(t);
	ok(name);
}

int main(void)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_RESTART };

	CHECK_SYS(pipe(fds));
	sem_init(&sem, 0, 0);
	sem_init(&seen, 0, 0);
	backtrace(frames, 64); /* loads libgcc now, not in the handler */
	sigaction(SIGUSR1, &sa, NULL);
	try_one(in_loop, "spinning");
	try_one(in_read, "blocked in read");
	try_one(in_sem, "blocked in sem_wait");
	return finish();
}
