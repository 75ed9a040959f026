// SPDX-License-Identifier: Apache-2.0
/*
 * How much threads do together in a second: the same work on few processors and on many.
 *
 * usage: scale WORKLOAD THREADS [SECONDS]
 *
 * Of plain pthreads; knows nothing of weft. Prints operations per second, and how many processors were busy meanwhile.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define STACK_BYTES 65536
#define QUEUE_MAX 1000
#define JOB_NS 5000
#define SLEEP_US 1000

/* The place of one thread, or of a pair: nobody else touches its lines. */
struct seat {
	_Alignas(128) sem_t ask, answer;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	int turn; /* 0: the one that asks, 1: the one that answers */
	int to[2], from[2];
	long nr;
};

static atomic_bool is_over;
/* Held until all threads are there: what the first ones did before is not counted. */
static pthread_rwlock_t gate = PTHREAD_RWLOCK_INITIALIZER;
static atomic_long total;
static struct seat *seats;
static pthread_mutex_t shared_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t shared_changed = PTHREAD_COND_INITIALIZER;
static long nr_queued, shared_nr;

static void check(int error, const char *what)
{
	if (!error)
		return;
	(void)fprintf(stderr, "scale: %s: %s\n", what, strerror(error));
	exit(1);
}

static long long now_ns(clockid_t clock)
{
	struct timespec t;

	(void)clock_gettime(clock, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static void *nothing(void *arg)
{
	return arg;
}

/* --- alone, or all with all --- */

static long yield(struct seat *s)
{
	(void)s;
	(void)sched_yield();
	return 1;
}

static long spawn(struct seat *s)
{
	pthread_t t;

	(void)s;
	check(pthread_create(&t, NULL, nothing, NULL), "pthread_create");
	check(pthread_join(t, NULL), "pthread_join");
	return 1;
}

static long count_under_one_lock(struct seat *s)
{
	(void)s;
	(void)pthread_mutex_lock(&shared_lock);
	shared_nr++;
	(void)pthread_mutex_unlock(&shared_lock);
	return 1;
}

/* Two threads share a lock. */
static long count_under_own_lock(struct seat *s)
{
	struct seat *mine = &seats[(s - seats) / 2];

	(void)pthread_mutex_lock(&mine->lock);
	mine->nr++;
	(void)pthread_mutex_unlock(&mine->lock);
	return 1;
}

static long nap(struct seat *s)
{
	(void)s;
	(void)usleep(SLEEP_US);
	return 1;
}

/* One queue, of jobs that take a few microseconds. */
static long take_job(struct seat *s)
{
	bool has_job;
	long long until;

	(void)s;
	(void)pthread_mutex_lock(&shared_lock);
	while (!nr_queued && !is_over)
		(void)pthread_cond_wait(&shared_changed, &shared_lock);
	has_job = nr_queued > 0;
	nr_queued -= has_job;
	(void)pthread_mutex_unlock(&shared_lock);
	until = now_ns(CLOCK_MONOTONIC) + JOB_NS;
	while (has_job && now_ns(CLOCK_MONOTONIC) < until)
		;
	return has_job;
}

static void *produce(void *arg)
{
	while (!is_over) {
		bool is_full;

		(void)pthread_mutex_lock(&shared_lock);
		is_full = ++nr_queued > QUEUE_MAX;
		(void)pthread_cond_signal(&shared_changed);
		(void)pthread_mutex_unlock(&shared_lock);
		if (is_full)
			(void)usleep(50);
	}
	(void)pthread_mutex_lock(&shared_lock);
	(void)pthread_cond_broadcast(&shared_changed);
	(void)pthread_mutex_unlock(&shared_lock);
	return arg;
}

/* --- in pairs: one asks, the other answers until there is no question any more --- */

static long ask_by_semaphore(struct seat *s)
{
	(void)sem_post(&s->ask);
	(void)sem_wait(&s->answer);
	return 1;
}

static void *answer_by_semaphore(void *arg)
{
	struct seat *s = arg;

	while (sem_wait(&s->ask), !is_over)
		(void)sem_post(&s->answer);
	(void)sem_post(&s->answer);
	return NULL;
}

static void pass_turn(struct seat *s, int to)
{
	(void)pthread_mutex_lock(&s->lock);
	s->turn = to;
	(void)pthread_cond_signal(&s->changed);
	while (s->turn == to && !is_over)
		(void)pthread_cond_wait(&s->changed, &s->lock);
	(void)pthread_mutex_unlock(&s->lock);
}

static long ask_by_condition(struct seat *s)
{
	pass_turn(s, 1);
	return 1;
}

/* Whichever of the two comes to the end first wakes the other. */
static void end_condition(struct seat *s)
{
	(void)pthread_mutex_lock(&s->lock);
	(void)pthread_cond_broadcast(&s->changed);
	(void)pthread_mutex_unlock(&s->lock);
}

static void *answer_by_condition(void *arg)
{
	while (!is_over)
		pass_turn(arg, 0);
	end_condition(arg);
	return NULL;
}

static long ask_by_pipe(struct seat *s)
{
	char c = 0;

	return write(s->to[1], &c, 1) == 1 && read(s->from[0], &c, 1) == 1;
}

static void *answer_by_pipe(void *arg)
{
	struct seat *s = arg;
	char c;

	while (read(s->to[0], &c, 1) == 1 && write(s->from[1], &c, 1) == 1)
		;
	return NULL;
}

static void end_semaphore(struct seat *s)
{
	(void)sem_post(&s->ask);
}

static void end_pipe(struct seat *s)
{
	(void)close(s->to[1]);
}

/* --- */

static const struct workload {
	const char *name;
	long (*step)(struct seat *s);
	void *(*answer)(void *s);    /* the other of a pair */
	void (*end)(struct seat *s); /* wakes the other for the last time */
	bool has_producer;
} workloads[] = {
	{ "semaphore", ask_by_semaphore, answer_by_semaphore, end_semaphore, false },
	{ "condition", ask_by_condition, answer_by_condition, end_condition, false },
	{ "pipe", ask_by_pipe, answer_by_pipe, end_pipe, false },
	{ "yield", yield, NULL, NULL, false },
	{ "spawn", spawn, NULL, NULL, false },
	{ "mutex", count_under_one_lock, NULL, NULL, false },
	{ "mutexes", count_under_own_lock, NULL, NULL, false },
	{ "queue", take_job, NULL, NULL, true },
	{ "sleep", nap, NULL, NULL, false },
};

static const struct workload *chosen;

static void *work(void *arg)
{
	long nr = 0;

	(void)pthread_rwlock_rdlock(&gate);
	(void)pthread_rwlock_unlock(&gate);
	while (!is_over)
		nr += chosen->step(arg);
	if (chosen->end)
		chosen->end(arg);
	total += nr;
	return NULL;
}

static void open_seat(struct seat *s)
{
	check(sem_init(&s->ask, 0, 0) ? errno : 0, "sem_init");
	check(sem_init(&s->answer, 0, 0) ? errno : 0, "sem_init");
	check(pthread_mutex_init(&s->lock, NULL), "pthread_mutex_init");
	check(pthread_cond_init(&s->changed, NULL), "pthread_cond_init");
	if (chosen->answer == answer_by_pipe)
		check(pipe(s->to) || pipe(s->from) ? errno : 0, "pipe");
}

static void measure(long nr, double seconds)
{
	pthread_t *threads = calloc((size_t)nr * 2 + 1, sizeof(*threads));
	long nr_threads = 0;
	long long began, cpu, took;
	pthread_attr_t attr;

	seats = aligned_alloc(_Alignof(struct seat), (size_t)nr * sizeof(*seats));
	check(threads && seats ? 0 : ENOMEM, "memory");
	(void)memset(seats, 0, (size_t)nr * sizeof(*seats));
	check(pthread_attr_init(&attr), "pthread_attr_init");
	check(pthread_attr_setstacksize(&attr, STACK_BYTES), "pthread_attr_setstacksize");
	for (long i = 0; i < nr; i++)
		open_seat(&seats[i]);
	(void)pthread_rwlock_wrlock(&gate);
	for (long i = 0; i < nr; i++) {
		check(pthread_create(&threads[nr_threads++], &attr, work, &seats[i]),
		      "pthread_create");
		if (chosen->answer)
			check(pthread_create(&threads[nr_threads++], &attr, chosen->answer,
					     &seats[i]),
			      "pthread_create");
	}
	if (chosen->has_producer)
		check(pthread_create(&threads[nr_threads++], &attr, produce, NULL),
		      "pthread_create");
	(void)pthread_rwlock_unlock(&gate);
	began = now_ns(CLOCK_MONOTONIC);
	cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID);
	(void)usleep((useconds_t)(seconds * 1e6));
	is_over = true;
	took = now_ns(CLOCK_MONOTONIC) - began;
	cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	for (long i = 0; i < nr_threads; i++)
		check(pthread_join(threads[i], NULL), "pthread_join");
	printf("%.0f %.1f\n", (double)total * 1e9 / (double)took, (double)cpu / (double)took);
	(void)pthread_attr_destroy(&attr);
	free(threads);
	free(seats);
}

int main(int argc, char **argv)
{
	long nr = argc > 2 ? strtol(argv[2], NULL, 10) : 0;
	double seconds = argc > 3 ? strtod(argv[3], NULL) : 1;

	for (size_t i = 0; argc > 1 && i < sizeof(workloads) / sizeof(workloads[0]); i++)
		if (!strcmp(workloads[i].name, argv[1]))
			chosen = &workloads[i];
	if (!chosen || nr < 1 || nr > 1000000 || !(seconds > 0 && seconds < 1000)) {
		(void)fputs(
			"usage: scale semaphore|condition|pipe|yield|spawn|mutex|mutexes|queue|sleep THREADS [SECONDS]\n",
			stderr);
		return 2;
	}
	measure(nr, seconds);
	return 0;
}
