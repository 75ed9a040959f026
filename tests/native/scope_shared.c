// SPDX-License-Identifier: Apache-2.0
/* Scopes and what processes share: semaphores wait in the kernel, and nothing that is posted is lost to a wait that was cut off. */
#include "native.h"
#include "tap.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weft/scope.h>
#include <weft/thread.h>
#include <weft/weft.h>

#define NR_ROUNDS 300
#define NR_CROWD 40 /* more than wait in calls of their own: the rest goes to a ring */

#define IF_REACHED()                                                                               \
	do {                                                                                       \
		if (is_native_run())                                                               \
			SKIP("scopes do not reach into libc in native mode");                      \
		map();                                                                             \
	} while (0)

static struct shared {
	sem_t sem, told;
	pthread_mutex_t lock;
} * shared;

static void map(void)
{
	pthread_mutexattr_t attr;

	if (!shared)
		shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	sem_init(&shared->sem, 1, 0);
	sem_init(&shared->told, 1, 0);
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&shared->lock, &attr);
}

static int wait_errno(void)
{
	return sem_wait(&shared->sem) < 0 ? errno : 0;
}

TEST(a_post_after_a_wait_that_was_cut_off_is_there)
{
	weft_scope s;

	IF_REACHED();
	weft_scope_open(&s, weft_now() + WEFT_MS, "s");
	CHECK_EQ(wait_errno(), ETIMEDOUT);
	CHECK_EQ(sem_post(&shared->sem), 0);
	CHECK_EQ(wait_errno(), 0);
	CHECK_EQ(sem_trywait(&shared->sem), -1);
	CHECK_EQ(weft_scope_close(&s), -ETIMEDOUT);
}

TEST(what_is_there_is_had_in_a_scope_that_is_over)
{
	weft_scope s;

	IF_REACHED();
	CHECK_EQ(sem_post(&shared->sem), 0);
	weft_scope_open(&s, WEFT_NOW, "s");
	CHECK_EQ(wait_errno(), 0);
	CHECK_EQ(weft_scope_close(&s), 0);
}

TEST(another_process_ends_a_wait_in_a_scope)
{
	weft_scope s;
	int status = 0;
	pid_t pid;

	IF_REACHED();
	weft_scope_open(&s, weft_now() + 60 * WEFT_SEC, "s");
	pid = fork();
	if (pid == 0) {
		sem_wait(&shared->told);
		sem_post(&shared->sem);
		_exit(0);
	}
	sem_post(&shared->told);
	CHECK_EQ(wait_errno(), 0);
	CHECK_EQ(weft_scope_close(&s), 0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
}

/* One waits in a scope, and behind it one in none; a post and the end of the scope come within some microseconds. */
struct race {
	weft_time other_at, end_at, post_at;
	weft_scope scope;
	bool is_cancelled;
};

static void reach(weft_time at)
{
	weft_sleep_until(at - 200 * WEFT_US);
	while (weft_now() < at)
		;
}

static void *post(void *arg)
{
	struct race *r = arg;

	reach(r->post_at);
	sem_post(&shared->sem);
	return arg;
}

static void *end(void *arg)
{
	struct race *r = arg;

	reach(r->end_at);
	if (r->is_cancelled)
		weft_scope_cancel(&r->scope);
	return arg;
}

static void *take(void *arg)
{
	struct race *r = arg;

	reach(r->other_at);
	CHECK_EQ(wait_errno(), 0);
	return arg;
}

/* A wake-up that the first loses leaves the second there. */
TEST(no_wake_up_is_lost_to_a_wait_that_is_cut_off)
{
	int nr_cut = 0;

	IF_REACHED();
	for (int i = 0; i < NR_ROUNDS; i++) {
		weft_time now = weft_now();
		struct race r = { .other_at = now + 500 * WEFT_US, .end_at = now + WEFT_MS };
		pthread_t other, poster, ender;
		weft_scope shield;
		int error;

		r.is_cancelled = i % 2;
		r.post_at = r.end_at + (i * 7 % 41 - 10) * 5 * WEFT_US;
		weft_scope_open(&r.scope, r.is_cancelled ? WEFT_NEVER : r.end_at, "race");
		pthread_create(&other, NULL, take, &r);
		pthread_create(&poster, NULL, post, &r);
		pthread_create(&ender, NULL, end, &r);
		error = wait_errno();
		/* A join is one of the waits that a scope ends. */
		weft_scope_shield(&shield, WEFT_NEVER, "shield");
		pthread_join(ender, NULL);
		weft_scope_close(&shield);
		CHECK(error == 0 || error == ETIMEDOUT);
		if (!error)
			sem_post(&shared->sem);
		CHECK_EQ(weft_scope_close(&r.scope), !error           ? 0
						     : r.is_cancelled ? -ECANCELED
								      : -ETIMEDOUT);
		pthread_join(other, NULL);
		pthread_join(poster, NULL);
		CHECK_EQ(sem_trywait(&shared->sem), -1);
		nr_cut += error != 0;
	}
	tap_note("%d of %d cut off", nr_cut, NR_ROUNDS);
}

static void *wait_in_time(void *until)
{
	weft_scope s;

	weft_scope_open(&s, *(weft_time *)until, "crowd");
	CHECK_EQ(wait_errno(), ETIMEDOUT);
	CHECK(weft_now() >= *(weft_time *)until);
	CHECK_EQ(weft_scope_close(&s), -ETIMEDOUT);
	return NULL;
}

TEST(a_crowd_is_cut_off_in_time)
{
	weft_time until = weft_now() + 20 * WEFT_MS;
	pthread_t t[NR_CROWD];

	IF_REACHED();
	for (int i = 0; i < NR_CROWD; i++)
		pthread_create(&t[i], NULL, wait_in_time, &until);
	for (int i = 0; i < NR_CROWD; i++)
		pthread_join(t[i], NULL);
	CHECK_EQ(sem_trywait(&shared->sem), -1);
}

static int wait_twice(void *unused)
{
	weft_scope s;
	int in_time, cancelled;

	weft_scope_open(&s, weft_now() + WEFT_MS, "s");
	in_time = wait_errno();
	weft_scope_close(&s);
	sem_post(&shared->told);
	cancelled = wait_errno();
	return in_time == ETIMEDOUT && cancelled == ETIMEDOUT ? 7 : 1;
}

/* By its own scope, and by the one around its function; on a kernel thread of its own no ring is asked. */
TEST(a_cancelled_thread_is_cut_off_also_a_bound_one)
{
	const unsigned flags[] = { 0, WEFT_THREAD_BOUND };

	IF_REACHED();
	for (int i = 0; i < 2; i++) {
		struct weft_thread_opts opts = { .size = sizeof(opts), .flags = flags[i] };
		weft_thread *t;
		int result = 0;

		CHECK_EQ(weft_thread_spawn(wait_twice, NULL, &opts, &t), 0);
		sem_wait(&shared->told);
		weft_thread_cancel(t);
		CHECK_EQ(weft_thread_join(t, &result, WEFT_NEVER), 0);
		CHECK_EQ(result, 7);
	}
}

static void *hold(void *arg)
{
	pthread_mutex_lock(&shared->lock);
	sem_post(&shared->told);
	sem_wait(&shared->sem);
	weft_sleep_until(weft_now() + 5 * WEFT_MS);
	pthread_mutex_unlock(&shared->lock);
	return arg;
}

TEST(no_scope_ends_the_wait_for_a_mutex_that_processes_share)
{
	weft_scope s;
	pthread_t t;

	IF_REACHED();
	pthread_create(&t, NULL, hold, NULL);
	sem_wait(&shared->told);
	weft_scope_open(&s, WEFT_NOW, "s");
	weft_scope_cancel(&s);
	sem_post(&shared->sem);
	CHECK_EQ(pthread_mutex_lock(&shared->lock), 0);
	CHECK_EQ(pthread_mutex_unlock(&shared->lock), 0);
	CHECK_EQ(weft_scope_close(&s), 0);
	pthread_join(t, NULL);
}

/* False: the thread had no processor for so long that the first wait has been ended by both. */
static bool second_rests(weft_time soon)
{
	struct timespec before, after;
	weft_scope outer, s;

	weft_scope_open(&outer, weft_now() + soon, "outer");
	weft_scope_open(&s, WEFT_NOW, "s");
	CHECK_EQ(wait_errno(), ETIMEDOUT);
	if (weft_now() >= outer.deadline) {
		(void)weft_scope_close(&s);
		(void)weft_scope_close(&outer);
		return false;
	}
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
	CHECK_EQ(wait_errno(), ETIMEDOUT);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
	CHECK((after.tv_sec - before.tv_sec) * WEFT_SEC + after.tv_nsec - before.tv_nsec <
	      50 * WEFT_MS);
	CHECK_EQ(weft_scope_close(&s), -ETIMEDOUT);
	CHECK_EQ(weft_scope_close(&outer), -ETIMEDOUT);
	return true;
}

/* The timer of a scope that has done it already breaks the next wait no more: it waits, and does not turn. */
TEST(the_second_wait_in_a_scope_rests)
{
	weft_time soon = 200 * WEFT_MS;

	IF_REACHED();
	while (!second_rests(soon))
		soon *= 2;
}
