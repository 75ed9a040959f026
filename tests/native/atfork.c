// SPDX-License-Identifier: Apache-2.0
/*
 * Fork beside the first thread, task and fiber of all; and handlers of the program's own, which may use any of them. The order of the
 * cases matters: what is the first one of a process is that once.
 */
#include "native.h"
#include "tap.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weft/weft.h>

#define CROWD 4

/* A fork child of which makes no threads. */
#ifdef __SANITIZE_THREAD__
#define CHILDREN_WORK false
#else
#define CHILDREN_WORK true
#endif

static bool is_slow, uses_all; /* of the handlers */
static sem_t forks, has_used;
static int nr_done; /* by the handler of the child */

static int adds(void *arg)
{
	__atomic_fetch_add((int *)arg, 1, __ATOMIC_RELAXED);
	return 0;
}

static void adds_in_task(void *arg)
{
	(void)adds(arg);
}

static void *adds_in_fiber(void *arg)
{
	(void)adds(arg);
	return NULL;
}

static int use_threads(void)
{
	weft_thread *crowd[CROWD];
	int nr = 0;

	for (int i = 0; i < CROWD; i++)
		if (weft_thread_spawn(adds, &nr, NULL, &crowd[i]))
			return -1;
	for (int i = 0; i < CROWD; i++)
		if (weft_thread_join(crowd[i], NULL, WEFT_NEVER))
			return -1;
	return nr;
}

static sem_t is_taken, is_seen;

static void is_taken_over(void *arg)
{
	(void)arg;
	sem_post(&is_taken);
	sem_wait(&is_seen);
}

/* Another thread is there for it. */
static void see_one_taken_over(void)
{
	weft_task t;

	sem_init(&is_taken, 0, 0);
	sem_init(&is_seen, 0, 0);
	weft_task_fork(&t, is_taken_over, NULL);
	sem_wait(&is_taken);
	sem_post(&is_seen);
	weft_task_join(&t);
}

static int use_tasks(void)
{
	weft_task tasks[CROWD];
	int nr = 0;

	if (has_others())
		see_one_taken_over();
	for (int i = 0; i < CROWD; i++)
		weft_task_fork(&tasks[i], adds_in_task, &nr);
	for (int i = CROWD; i-- > 0;)
		weft_task_join(&tasks[i]);
	return nr;
}

static int use_fibers(void)
{
	int nr = 0;

	for (int i = 0; i < CROWD; i++) {
		weft_fiber *f = weft_fiber_new(adds_in_fiber, NULL);

		if (!f)
			return -1;
		weft_fiber_resume(f, &nr);
		weft_fiber_free(f);
	}
	return nr;
}

static int use_all(void)
{
	return use_threads() + use_tasks() + use_fibers();
}

/* Between fork()'s begin and the fork. */
static void prepare(void)
{
	if (is_slow) {
		sem_post(&forks);
		sem_wait(&has_used);
	}
}

static void in_child(void)
{
	if (uses_all)
		nr_done = use_all();
}

/* Before libweft's own, if that were not registered as soon as the program begins. */
__attribute__((constructor)) static void early(void)
{
	pthread_atfork(prepare, NULL, in_child);
}

static bool is_all_done(pid_t pid)
{
	int status = -1;

	waitpid(pid, &status, 0);
	if (status)
		printf("# status %#x\n", status);
	return status == 0;
}

#define SKIP_WITHOUT_CHILDREN                                                                      \
	if (!CHILDREN_WORK)                                                                        \
		SKIP("a child of ThreadSanitizer's makes no threads");                             \
	SKIP_IF_EMULATED("a child of qemu's makes no threads")

static pid_t forks_and_uses(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		alarm(60);
		_exit(nr_done != (uses_all ? 3 * CROWD : 0) || use_all() != 3 * CROWD);
	}
	return pid;
}

static void *runs_fork(void *out)
{
	*(pid_t *)out = forks_and_uses();
	return out;
}

TEST(nothing_of_what_was_first_used_during_a_fork_is_left_in_the_child)
{
	pthread_t forker;
	pid_t pid;

	SKIP_WITHOUT_CHILDREN;
	sem_init(&forks, 0, 0);
	sem_init(&has_used, 0, 0);
	is_slow = uses_all = true;
	CHECK_EQ(pthread_create(&forker, NULL, runs_fork, &pid), 0);
	sem_wait(&forks);
	CHECK_EQ(use_all(), 3 * CROWD);
	sem_post(&has_used);
	pthread_join(forker, NULL);
	CHECK(is_all_done(pid));
	is_slow = uses_all = false;
}

TEST(a_handler_of_the_child_uses_them_before_main_does)
{
	SKIP_WITHOUT_CHILDREN;
	CHECK_EQ(use_all(), 3 * CROWD);
	uses_all = true;
	CHECK(is_all_done(forks_and_uses()));
	uses_all = false;
}

TEST(a_child_of_a_child_uses_them)
{
	int status = -1;
	pid_t pid;

	SKIP_WITHOUT_CHILDREN;
	CHECK_EQ(use_all(), 3 * CROWD);
	uses_all = true;
	pid = fork();
	if (pid == 0)
		_exit(!is_all_done(forks_and_uses()));
	waitpid(pid, &status, 0);
	CHECK_EQ(status, 0);
	uses_all = false;
}
