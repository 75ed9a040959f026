// SPDX-License-Identifier: Apache-2.0
/*
 * The victim of the dump tests: one thread waits in each of a dozen known functions, two are busy.
 *
 * Usage: waiters [THREADS [deadlock]]: so many more threads wait on one condition; two pairs for each other. Prints "ready" when all are where
 * they belong, then answers each line on standard input with the busy counter; ends at its end.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))
#define MAX_THREADS 20000

pthread_mutex_t held_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t cond_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t sem;
static int pipe_fds[2], poll_fds[2], listener;
static volatile unsigned long counter, other_counter;
static volatile int sink;
static pthread_t sleeper;

/* Something behind each wait, so that no call is a jump and every function stays on the stack. */
#define STAY() (sink++)

NOINLINE static void waits_for_mutex(void)
{
	pthread_mutex_lock(&held_mutex);
	STAY();
}

NOINLINE static void waits_for_cond(void)
{
	pthread_mutex_lock(&cond_mutex);
	for (;;)
		pthread_cond_wait(&cond, &cond_mutex);
	STAY();
}

NOINLINE static void waits_for_sem(void)
{
	while (sem_wait(&sem) < 0)
		;
	STAY();
}

NOINLINE static void waits_in_read(void)
{
	char c;

	(void)!read(pipe_fds[0], &c, 1);
	STAY();
}

NOINLINE static void waits_in_accept(void)
{
	(void)accept(listener, NULL, NULL);
	STAY();
}

NOINLINE static void waits_in_sleep(void)
{
	struct timespec ts = { .tv_sec = 10000 };

	nanosleep(&ts, NULL);
	STAY();
}

NOINLINE static void waits_in_poll(void)
{
	struct pollfd p[2] = { { .fd = poll_fds[0], .events = POLLIN },
			       { .fd = listener, .events = POLLPRI } };

	(void)poll(p, 2, -1);
	STAY();
}

NOINLINE static void waits_for_join(void)
{
	pthread_join(sleeper, NULL);
	STAY();
}

NOINLINE static void waits_in_pause(void)
{
	pause();
	STAY();
}

/* A call that only the kernel can answer: the thread blocks in it with its kernel thread. */
NOINLINE static void waits_in_flock(void)
{
	char path[64];
	int a = memfd_create("lock", 0), b;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", a);
	b = open(path, O_RDWR);
	if (a < 0 || b < 0 || flock(a, LOCK_EX) < 0)
		abort();
	(void)flock(b, LOCK_EX);
	STAY();
}

NOINLINE static void spins(void)
{
	for (;;)
		counter++;
}

NOINLINE static void spins_too(void)
{
	for (;;)
		other_counter++;
}

static void in_handler(int sig)
{
	(void)sig;
	/* Waits for ever inside of a signal handler: the dump must cross the handler's frame. */
	waits_for_sem();
}

NOINLINE static void is_interrupted(void)
{
	raise(SIGUSR1);
	STAY();
}

static pthread_mutex_t left = PTHREAD_MUTEX_INITIALIZER, right = PTHREAD_MUTEX_INITIALIZER;
static sem_t has_left, has_right, has_both;

NOINLINE static void takes_left_first(void)
{
	pthread_mutex_lock(&left);
	sem_post(&has_left);
	sem_wait(&has_right);
	sem_post(&has_both);
	pthread_mutex_lock(&right);
	STAY();
}

NOINLINE static void takes_right_first(void)
{
	pthread_mutex_lock(&right);
	sem_post(&has_right);
	sem_wait(&has_left);
	pthread_mutex_lock(&left);
	STAY();
}

/* Only waits for one of the two, in a thread that is older than both. */
NOINLINE static void waits_for_left(void)
{
	sem_wait(&has_both);
	pthread_mutex_lock(&left);
	STAY();
}

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static pthread_t joined;
static sem_t is_joinable, is_held;

NOINLINE static void waits_for_joiner(void)
{
	sem_wait(&is_held);
	pthread_mutex_lock(&held);
	STAY();
}

NOINLINE static void joins_with_lock(void)
{
	pthread_mutex_lock(&held);
	sem_post(&is_held);
	sem_wait(&is_joinable);
	pthread_join(joined, NULL);
	STAY();
}

static void (*const stories[])(void) = {
	waits_for_mutex, waits_for_cond, waits_for_sem,  waits_in_read,  waits_in_accept,
	waits_in_sleep,  waits_in_poll,  waits_for_join, waits_in_pause, is_interrupted,
	waits_in_flock,  spins,          spins_too,
};

static const char *const names[] = {
	"mutex", "cond",  "sem",         "read",  "accept", "sleep",    "poll",
	"join",  "pause", "interrupted", "flock", "spin",   "spin-too",
};

struct start {
	void (*story)(void);
	const char *name;
};

static void *run(void *arg)
{
	const struct start *s = arg;

	pthread_setname_np(pthread_self(), s->name);
	s->story();
	return NULL;
}

static void must(int is_ok, const char *what)
{
	if (is_ok)
		return;
	perror(what);
	exit(2);
}

static void start_all(void)
{
	static struct start starts[sizeof(stories) / sizeof(stories[0])];

	for (size_t i = 0; i < sizeof(stories) / sizeof(stories[0]); i++) {
		pthread_t t;

		starts[i] = (struct start){ stories[i], names[i] };
		must((errno = pthread_create(&t, NULL, run, &starts[i])) == 0, "pthread_create");
		if (stories[i] == waits_in_sleep)
			sleeper = t;
	}
}

static void start_deadlock(void)
{
	static struct start starts[] = { { waits_for_left, "bystander" },
					 { takes_left_first, "left" },
					 { takes_right_first, "right" },
					 { joins_with_lock, "joins" },
					 { waits_for_joiner, "joined" } };

	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++)
		must((errno = pthread_create(&joined, NULL, run, &starts[i])) == 0,
		     "pthread_create");
	sem_post(&is_joinable);
}

static void start_crowd(int nr)
{
	static struct start crowd = { waits_for_cond, "crowd" };
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 << 10);
	for (int i = 0; i < nr; i++) {
		pthread_t t;

		must((errno = pthread_create(&t, &attr, run, &crowd)) == 0, "pthread_create");
	}
}

int main(int argc, char **argv)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof(a);
	int nr = argc > 1 ? atoi(argv[1]) : 0;
	char line[256];

	signal(SIGUSR1, in_handler);
	listener = socket(AF_INET, SOCK_STREAM, 0);
	must(listener >= 0 && bind(listener, (void *)&a, sizeof(a)) == 0 &&
		     listen(listener, 4) == 0 && getsockname(listener, (void *)&a, &len) == 0,
	     "listen");
	must(pipe(pipe_fds) == 0 && pipe(poll_fds) == 0, "pipe");
	sem_init(&sem, 0, 0);
	sem_init(&has_left, 0, 0);
	sem_init(&has_right, 0, 0);
	sem_init(&has_both, 0, 0);
	sem_init(&is_joinable, 0, 0);
	sem_init(&is_held, 0, 0);
	pthread_mutex_lock(&held_mutex);
	start_crowd(nr < MAX_THREADS ? nr : MAX_THREADS);
	if (argc > 2)
		start_deadlock();
	start_all();
	printf("ready %d %d %d\n", pipe_fds[0], listener, ntohs(a.sin_port));
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		if (strncmp(line, "abort", 5) == 0)
			abort();
		printf("%lu %lu\n", counter, other_counter);
		fflush(stdout);
	}
	exit(0);
}
