// SPDX-License-Identifier: Apache-2.0
/*
 * Random reads of 4 KiB from one file, as many at a time as asked for: by a thread for each, or by one thread that
 * hands them to a pool of as many. Knows nothing of weft; run it natively and under `weft run`.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define BLOCK 4096u
#define MIB (1u << 20)

struct job {
	struct job *next;
	char *buffer;
	uint64_t seed;
};

struct queue {
	pthread_mutex_t lock;
	pthread_cond_t filled;
	struct job *head, **tail;
};

static int fd;
static uint64_t nr_blocks;
static atomic_bool stops;
static atomic_ulong nr_reads;
static struct queue todo, finished;

static void die(const char *what, int error)
{
	fprintf(stderr, "disk: %s: %s\n", what, strerror(error));
	exit(1);
}

static uint64_t next_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

static void read_one(struct job *job)
{
	off_t at = (off_t)(next_random(&job->seed) % nr_blocks * BLOCK);
	ssize_t got = pread(fd, job->buffer, BLOCK, at);

	if (got != BLOCK)
		die("pread", got < 0 ? errno : EIO);
}

static void put(struct queue *q, struct job *job)
{
	job->next = NULL;
	pthread_mutex_lock(&q->lock);
	*q->tail = job;
	q->tail = &job->next;
	pthread_mutex_unlock(&q->lock);
	pthread_cond_signal(&q->filled);
}

static struct job *take(struct queue *q)
{
	struct job *job;

	pthread_mutex_lock(&q->lock);
	while (!q->head)
		pthread_cond_wait(&q->filled, &q->lock);
	job = q->head;
	q->head = job->next;
	if (!q->head)
		q->tail = &q->head;
	pthread_mutex_unlock(&q->lock);
	return job;
}

static void *run_thread(void *arg)
{
	while (!atomic_load_explicit(&stops, memory_order_relaxed)) {
		read_one(arg);
		atomic_fetch_add_explicit(&nr_reads, 1, memory_order_relaxed);
	}
	return NULL;
}

static void *run_pool(void *arg)
{
	(void)arg;
	for (;;) {
		struct job *job = take(&todo);

		read_one(job);
		put(&finished, job);
	}
	return NULL;
}

/* By the owner of the pool: what is done is asked for again. */
static void *run_submitter(void *arg)
{
	(void)arg;
	while (!atomic_load_explicit(&stops, memory_order_relaxed)) {
		put(&todo, take(&finished));
		atomic_fetch_add_explicit(&nr_reads, 1, memory_order_relaxed);
	}
	return NULL;
}

static void make_queue(struct queue *q)
{
	pthread_mutex_init(&q->lock, NULL);
	pthread_cond_init(&q->filled, NULL);
	q->tail = &q->head;
}

static void start(void *(*run)(void *), void *arg)
{
	pthread_t thread;
	int error = pthread_create(&thread, NULL, run, arg);

	if (error)
		die("pthread_create", error);
}

static void sleep_for(double seconds)
{
	struct timespec left = { (time_t)seconds,
				 (long)((seconds - (double)(time_t)seconds) * 1e9) };

	while (nanosleep(&left, &left) && errno == EINTR)
		;
}

struct used {
	unsigned long reads;
	double wall, cpu;
	long switches;
};

static struct used look(void)
{
	struct rusage usage;
	struct timespec now;

	getrusage(RUSAGE_SELF, &usage);
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (struct used){
		.reads = atomic_load(&nr_reads),
		.wall = (double)now.tv_sec + (double)now.tv_nsec / 1e9,
		.cpu = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
		       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6,
		.switches = usage.ru_nvcsw + usage.ru_nivcsw,
	};
}

static void measure(double seconds)
{
	struct used from, to;
	double reads;

	sleep_for(0.3); /* until all are at work; what comes before is not counted */
	from = look();
	sleep_for(seconds);
	to = look();
	reads = (double)(to.reads - from.reads);
	printf("%.0f reads/s, %.2f us of CPU and %.2f switches each\n",
	       reads / (to.wall - from.wall), (to.cpu - from.cpu) / reads * 1e6,
	       (double)(to.switches - from.switches) / reads);
}

static void open_file(const char *path, bool is_direct)
{
	off_t size;

	fd = open(path, O_RDONLY | O_CLOEXEC | (is_direct ? O_DIRECT : 0));
	if (fd < 0)
		die(path, errno);
	size = lseek(fd, 0, SEEK_END);
	if (size < (off_t)MIB)
		die(path, EINVAL);
	nr_blocks = (uint64_t)size / BLOCK;
}

int main(int argc, char **argv)
{
	bool is_pool, is_direct;
	int nr;

	if (argc != 6 || (nr = atoi(argv[3])) < 1 || atof(argv[5]) <= 0) {
		fprintf(stderr, "usage: disk threads|pool direct|buffered NUMBER FILE SECONDS\n");
		return 2;
	}
	is_pool = !strcmp(argv[1], "pool");
	is_direct = !strcmp(argv[2], "direct");
	open_file(argv[4], is_direct);
	make_queue(&todo);
	make_queue(&finished);
	for (int i = 0; i < nr; i++) {
		struct job *job = calloc(1, sizeof(*job));

		if (!job || posix_memalign((void **)&job->buffer, BLOCK, BLOCK))
			die("memory", ENOMEM);
		job->seed = 0x9e3779b97f4a7c15u * (uint64_t)(i + 1);
		memset(job->buffer, 0, BLOCK);
		if (is_pool)
			put(&finished, job);
		start(is_pool ? run_pool : run_thread, job);
	}
	if (is_pool)
		start(run_submitter, NULL);
	measure(atof(argv[5]));
	exit(0);
}
