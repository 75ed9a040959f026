// SPDX-License-Identifier: Apache-2.0
/*
 * `weft trace` is tried on this: a program that does a known number of things, says so, and is quiet then.
 *
 * Usage: recorded [ROUNDS]
 *
 * Two threads pass a semaphore ROUNDS times, three compute for BUSY_MS, one sleeps in a call that holds its kernel thread,
 * one is bound by its affinity. Then it says "ready" and does what it is told, a line each: "go" is once more, "stay" has
 * three threads compute that do not end afterwards, "deadlock", "crash", "exec". At the end of its input it ends.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#define BUSY_MS 60

static int rounds = 100;
static sem_t there, back, about, never;
static pthread_mutex_t locks[2] = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER };
static pthread_barrier_t both;
static char lock_file[] = "/tmp/recorded-XXXXXX";

static void *ping(void *arg)
{
	for (int i = 0; i < rounds; i++) {
		sem_post(&there);
		while (sem_wait(&back))
			;
	}
	return arg;
}

static void *pong(void *arg)
{
	for (int i = 0; i < rounds; i++) {
		while (sem_wait(&there))
			;
		sem_post(&back);
	}
	return arg;
}

static long now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void *compute(void *arg)
{
	long until = now_ms() + BUSY_MS;
	struct timespec cpu;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu); /* from then on times are counted exactly */
	while (now_ms() < until)
		for (volatile int i = 0; i < 10000; i++)
			;
	return arg;
}

static void *compute_and_stay(void *arg)
{
	compute(arg);
	sem_post(&about);
	while (sem_wait(&never))
		;
	return arg;
}

static void stay(void)
{
	pthread_t t;

	for (int i = 0; i < 3; i++)
		if (pthread_create(&t, NULL, compute_and_stay, NULL))
			_exit(3);
	for (int i = 0; i < 3; i++)
		while (sem_wait(&about))
			;
}

/* A wait in the kernel, of which the runtime knows nothing but the call. */
static void *wait_for_file(void *arg)
{
	int fd = open(lock_file, O_RDWR | O_CLOEXEC);

	sem_post(&about);
	if (fd < 0 || flock(fd, LOCK_EX) < 0)
		_exit(3);
	close(fd);
	return arg;
}

static void *be_bound(void *arg)
{
	const struct timespec pause = { .tv_nsec = 5000000 };
	cpu_set_t cpus, one;
	int cpu = 0;

	if (sched_getaffinity(0, sizeof(cpus), &cpus))
		_exit(3);
	while (!CPU_ISSET(cpu, &cpus))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (sched_setaffinity(0, sizeof(one), &one))
		_exit(3);
	nanosleep(&pause, NULL);
	return arg;
}

static void *cross(void *arg)
{
	int first = arg != NULL;

	pthread_mutex_lock(&locks[first]);
	pthread_barrier_wait(&both);
	pthread_mutex_lock(&locks[!first]);
	return arg;
}

static void work(void)
{
	void *(*const what[])(void *) = { ping,    pong,          compute, compute,
					  compute, wait_for_file, be_bound };
	static const char *const names[] = {
		"ping", "pong", "one", "two", "three", "file", "bound"
	};
	enum {
		NR = sizeof(what) / sizeof(what[0])
	};
	const struct timespec pause = { .tv_nsec = 40000000 };
	int fd = mkstemp(lock_file);
	pthread_t t[NR];

	if (fd < 0 || flock(fd, LOCK_EX) < 0)
		_exit(3);
	for (int i = 0; i < NR; i++) {
		if (pthread_create(&t[i], NULL, what[i], NULL))
			_exit(3);
		pthread_setname_np(t[i], names[i]);
	}
	while (sem_wait(&about))
		;
	nanosleep(&pause, NULL);
	close(fd);
	for (int i = 0; i < NR; i++)
		pthread_join(t[i], NULL);
	unlink(lock_file);
	strcpy(strrchr(lock_file, '-'), "-XXXXXX");
}

static void say(const char *word)
{
	puts(word);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	char line[64];
	pthread_t t[2];

	if (argc > 1)
		rounds = atoi(argv[1]);
	sem_init(&there, 0, 0);
	sem_init(&back, 0, 0);
	sem_init(&about, 0, 0);
	sem_init(&never, 0, 0);
	pthread_barrier_init(&both, NULL, 2);
	work();
	say("ready");
	while (fgets(line, sizeof(line), stdin)) {
		if (strcmp(line, "go\n") == 0)
			work();
		else if (strcmp(line, "stay\n") == 0)
			stay();
		else if (strcmp(line, "crash\n") == 0)
			raise(SIGSEGV);
		else if (strcmp(line, "exec\n") == 0)
			execl("/bin/sleep", "sleep", "60", (char *)NULL);
		else if (strcmp(line, "deadlock\n") == 0)
			for (int i = 0; i < 2; i++)
				pthread_create(&t[i], NULL, cross, i ? "1" : NULL);
		say("done");
	}
	return 0;
}
