// SPDX-License-Identifier: Apache-2.0
/* Tasks and threads: what a task may do on whatever thread it is, what threads may do with tasks, and mistakes. */
#include <weft/task.h>

#include "dies.h"
#include "native.h"
#include "tap.h"
#include "tasks.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A fork child of which makes no threads. */
#ifdef __SANITIZE_THREAD__
#define CHILDREN_WORK false
#else
#define CHILDREN_WORK true
#endif

/* --- what a task may do --- */

struct meeting {
	pthread_mutex_t lock;
	pthread_cond_t change;
	int nr;
};

/* Not what tasks are for, but with so few of them each has a thread. */
static void meets(void *arg)
{
	struct meeting *m = arg;

	pthread_mutex_lock(&m->lock);
	m->nr++;
	pthread_cond_broadcast(&m->change);
	while (m->nr < 2)
		pthread_cond_wait(&m->change, &m->lock);
	pthread_mutex_unlock(&m->lock);
}

TEST(a_task_is_stolen_while_its_owner_waits)
{
	struct meeting m = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0 };
	weft_task t;

	if (!has_others())
		SKIP("one worker");
	weft_task_fork(&t, meets, &m);
	meets(&m);
	weft_task_join(&t);
	CHECK_EQ(m.nr, 2);
}

static volatile bool stops;

static void spins(void *arg)
{
	(void)arg;
	while (!__atomic_load_n(&stops, __ATOMIC_ACQUIRE))
		;
}

TEST(a_task_that_never_waits_stops_nobody)
{
	struct fib f = { 15, 0 };
	weft_task t;

	if (!has_others())
		SKIP("one worker");
	stops = false;
	weft_task_fork(&t, spins, NULL);
	/* Its owner and whoever has stolen it go on. */
	fib(&f);
	CHECK_EQ(f.result, 610);
	__atomic_store_n(&stops, true, __ATOMIC_RELEASE);
	weft_task_join(&t);
}

static void blocks(void *arg)
{
	char c = 0;

	(void)!read(*(int *)arg, &c, 1);
}

#define NR_BLOCKED 6

TEST(tasks_that_block_do_not_keep_others_from_running)
{
	weft_task t[NR_BLOCKED];
	struct fib f = { 15, 0 };
	int ends[2];

	CHECK_EQ(pipe(ends), 0);
	for (int i = 0; i < NR_BLOCKED; i++)
		weft_task_fork(&t[i], blocks, &ends[0]);
	fib(&f);
	CHECK_EQ(f.result, 610);
	CHECK_EQ(write(ends[1], "123456", NR_BLOCKED), NR_BLOCKED);
	for (int i = 0; i < NR_BLOCKED; i++)
		weft_task_join(&t[i]);
	close(ends[0]);
	close(ends[1]);
}

static __thread int local;

struct identity {
	pthread_t thread;
	bool is_right;
};

static void uses_locals(void *arg)
{
	struct identity *id = arg;
	int *where = &local, kept = *where;
	weft_task t;
	int n = 0;

	errno = 61;
	id->thread = pthread_self();
	++*where;
	weft_task_fork(&t, counts, &n);
	free(malloc(100));
	weft_task_join(&t);
	id->is_right = where == &local && *where == kept + 1 && errno == 61 &&
		       pthread_equal(id->thread, pthread_self());
}

TEST(errno_and_thread_locals_are_those_of_one_thread_from_start_to_end)
{
	weft_task t[200];
	struct identity id[200];
	bool is_right = true;

	errno = 62;
	for (int i = 0; i < 200; i++)
		weft_task_fork(&t[i], uses_locals, &id[i]);
	CHECK_EQ(errno, 62);
	for (int i = 199; i >= 0; i--) {
		weft_task_join(&t[i]);
		is_right = is_right && id[i].is_right;
	}
	CHECK(is_right);
}

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static int nr_locked;

static void locks(void *arg)
{
	pthread_mutex_lock(&held);
	nr_locked++;
	pthread_mutex_unlock(&held);
}

/* A join that waits for a stolen task must not call another one meanwhile, which would take this lock again. */
TEST(a_join_runs_no_other_task)
{
	weft_task lock_it, slow;
	struct meeting m = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0 };

	if (!has_others())
		SKIP("one worker");
	nr_locked = 0;
	for (int i = 0; i < 200; i++) {
		m.nr = 0;
		weft_task_fork(&slow, meets, &m);
		meets(&m); /* it was stolen */
		weft_task_fork(&lock_it, locks, NULL);
		pthread_mutex_lock(&held);
		weft_task_join(&slow);
		pthread_mutex_unlock(&held);
		weft_task_join(&lock_it);
	}
	CHECK_EQ(nr_locked, 200);
}

/* --- threads --- */

static void *runs_fib(void *arg)
{
	struct fib f = { 16, 0 };

	for (int i = 0; i < 10; i++) {
		fib(&f);
		if (f.result != 987)
			return arg;
	}
	return NULL;
}

TEST(all_threads_may_fork_and_end)
{
	pthread_t t[16];
	void *result;

	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 16; i++)
			CHECK_EQ(pthread_create(&t[i], NULL, runs_fib, &t), 0);
		for (int i = 0; i < 16; i++) {
			CHECK_EQ(pthread_join(t[i], &result), 0);
			CHECK(!result);
		}
	}
}

static int64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec * 1000000000ll + now.tv_nsec;
}

TEST(an_idle_crew_uses_no_processor)
{
	const struct timespec while_idle = { 0, 200000000 };
	struct fib f = { 12, 0 };
	int64_t before;

	fib(&f);
	nanosleep(&(struct timespec){ 0, 20000000 }, NULL); /* it goes to sleep */
	before = cpu_ns();
	nanosleep(&while_idle, NULL);
	CHECK(cpu_ns() - before < 20000000);
}

static void in_child(void)
{
	struct fib f = { 14, 0 };

	fib(&f);
	_exit(f.result == 377 ? 7 : 8);
}

TEST(a_fork_child_forks_tasks)
{
	struct fib f = { 14, 0 };
	int status = 0;
	pid_t pid;

	if (!CHILDREN_WORK)
		SKIP("a child of ThreadSanitizer's makes no threads");
	SKIP_IF_EMULATED("a child of qemu's makes no threads");
	fib(&f);
	pid = fork();
	if (pid == 0)
		in_child();
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 7 << 8);
}

static void *ends_main_by_exit(void *arg)
{
	return arg;
}

/* A crew must not keep a process alive whose threads have ended. */
TEST(a_process_whose_main_thread_exits_ends)
{
	int status = -1;
	pid_t pid;

	if (!CHILDREN_WORK)
		SKIP("a child of ThreadSanitizer's makes no threads");
	SKIP_IF_EMULATED("a child of qemu's makes no threads");
	pid = fork();
	if (pid == 0) {
		struct fib f = { 14, 0 };

		fib(&f);
		pthread_exit(ends_main_by_exit(NULL));
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
}

/* --- mistakes --- */

static weft_task shared;

static void join_twice(void)
{
	weft_task t;
	int n = 0;

	weft_task_fork(&t, counts, &n);
	weft_task_join(&t);
	weft_task_join(&t);
}

static void join_what_was_not_forked(void)
{
	memset(&shared, 0, sizeof(shared));
	weft_task_join(&shared);
}

static void *joins(void *t)
{
	weft_task_join(t);
	return NULL;
}

/* So that it is not over, whoever has it. */
static void never_ends(void *arg)
{
	(void)arg;
	for (;;)
		(void)pause();
}

static void join_on_another_thread(void)
{
	pthread_t t;

	weft_task_fork(&shared, never_ends, NULL);
	(void)pthread_create(&t, NULL, joins, &shared);
	(void)pthread_join(t, NULL);
}

/* More than fit at first. */
#define NR 3000

static weft_task tasks[NR];

static void *forks_and_ends(void *arg)
{
	for (int i = 0; i < NR; i++)
		weft_task_fork(&tasks[i], never_ends, NULL);
	return arg;
}

static void end_with_tasks(void)
{
	pthread_t t;

	(void)pthread_create(&t, NULL, forks_and_ends, NULL);
	(void)pthread_join(t, NULL);
}

TEST(mistakes_end_the_process)
{
	if (!CHILDREN_WORK)
		SKIP("a child of ThreadSanitizer's makes no threads");
	SKIP_IF_EMULATED("a child of qemu's makes no threads");
	CHECK_DIES(join_twice, "a task is joined that was joined before");
	CHECK_DIES(join_what_was_not_forked, "a task is joined that was not forked");
	CHECK_DIES(join_on_another_thread, "a task is joined by a thread that has not forked it");
	CHECK_DIES(end_with_tasks, "a thread ends that has not joined a task");
}
