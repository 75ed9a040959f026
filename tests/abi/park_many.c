// SPDX-License-Identifier: Apache-2.0
/*
 * 10,000 threads parked in read, sem_wait, a sleep and a condition wait; all wake up.
 *
 * Under weft they cost no kernel thread each: the number of those is checked. On the plain kernel
 * 2,000 are enough to be the reference, and what pid limits allow.
 */
#include <semaphore.h>
#include "check.h"

#define MANY 10000

static int fds[2], go, nr_ready;
static sem_t sem;
static int64_t wake_at;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;

static void *parks(void *arg)
{
	struct timespec ts = timespec_of(wake_at);
	char c;

	ADD(&nr_ready, 1);
	switch ((intptr_t)arg % 4) {
	case 0:
		CHECK_EQ(read(fds[0], &c, 1), 1);
		break;
	case 1:
		while (sem_wait(&sem) == -1)
			;
		break;
	case 2:
		CHECK_EQ(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL), 0);
		break;
	default:
		pthread_mutex_lock(&lock);
		while (!go)
			pthread_cond_wait(&cond, &lock);
		pthread_mutex_unlock(&lock);
		break;
	}
	return arg;
}

/* As a child sees them: to itself a program under weft shows its own threads. */
static int nr_kernel_threads(void)
{
	int nr = -1, status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		char path[64], line[256];
		FILE *f;

		snprintf(path, sizeof(path), "/proc/%d/status", getppid());
		f = fopen(path, "r");
		while (f && fgets(line, sizeof(line), f))
			if (sscanf(line, "Threads: %d", &nr) == 1)
				break;
		_exit(nr < 0 || nr > 200 ? 200 : nr);
	}
	while (waitpid(pid, &status, 0) == -1 && errno == EINTR)
		;
	return WEXITSTATUS(status);
}

int main(void)
{
	static pthread_t t[MANY];
	int nr = is_under_weft() ? MANY : 2000;
	pthread_attr_t attr;

	CHECK_SYS(pipe(fds));
	sem_init(&sem, 0, 0);
	wake_at = now_ns() + 500 * MS;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 << 10);
	for (intptr_t i = 0; i < nr; i++) {
		int ret = pthread_create(&t[i], &attr, parks, (void *)i);

		if (ret == EAGAIN && !is_under_weft()) {
			nr = (int)i; /* a limit of this machine */
			break;
		}
		CHECK_PT(ret);
	}
	while (LOAD(&nr_ready) < nr)
		sched_yield();
	ok("all have started");
	let_others_block();
	if (is_under_weft()) {
		int workers = atoi(getenv("WEFT_WORKERS"));

		CHECK(workers >= 1);
		CHECK(nr_kernel_threads() >= 1);
		/* One that was found in a call for long, as on a busy machine, ends once it is not needed. */
		while (nr_kernel_threads() > workers + 4)
			sleep_ns(100 * MS);
	}
	ok("kernel threads do not grow with threads");

	for (int i = 0; i < nr; i++) {
		if (i % 4 == 0)
			CHECK_EQ(write(fds[1], "x", 1), 1);
		if (i % 4 == 1)
			CHECK_SYS(sem_post(&sem));
	}
	pthread_mutex_lock(&lock);
	go = 1;
	pthread_cond_broadcast(&cond);
	pthread_mutex_unlock(&lock);
	for (int i = 0; i < nr; i++)
		CHECK_EQ((intptr_t)join(t[i]), i);
	CHECK(now_ns() >= wake_at);
	ok("all have woken");
	return finish();
}
