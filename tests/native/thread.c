// SPDX-License-Identifier: Apache-2.0
/* weft/thread.h: what a thread finds, and what becomes of it. */
#include <weft/weft.h>

#include "native.h"
#include "spawned.h"
#include "tap.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

TEST(the_result_is_what_the_function_returned)
{
	CHECK_EQ(result_of(returns, (void *)42l, NULL), 42);
	CHECK_EQ(result_of(returns, (void *)-5l, NULL), -5);
}

static int says_ready(void *arg)
{
	sem_post(arg);
	return 0;
}

TEST(a_thread_that_nobody_wants_to_join_runs)
{
	sem_init(&ready, 0, 0);
	CHECK_EQ(weft_thread_spawn(says_ready, &ready, NULL, NULL), 0);
	CHECK_EQ(sem_wait(&ready), 0);
}

TEST(a_join_that_is_late_can_be_made_again)
{
	weft_thread *t;
	int result = 7;

	sem_init(&ready, 0, 0);
	sem_init(&go, 0, 0);
	CHECK_EQ(weft_thread_spawn(waits_for_go, (void *)3l, NULL, &t), 0);
	CHECK_EQ(weft_thread_join(t, &result, WEFT_NOW), -ETIMEDOUT);
	CHECK_EQ(weft_thread_join(t, &result, weft_now() + WEFT_MS), -ETIMEDOUT);
	CHECK_EQ(weft_thread_join(t, &result, 0), -ETIMEDOUT);
	CHECK_EQ(result, 7);
	sem_post(&go);
	CHECK_EQ(weft_thread_join(t, &result, weft_now() + 60 * WEFT_SEC), 0);
	CHECK_EQ(result, 3);
}

static void on_signal(int sig)
{
	(void)sig;
}

static void *interrupts(void *main)
{
	struct timespec moment = { 0, 1000000 };

	for (int i = 0; i < 10; i++) {
		pthread_kill(*(pthread_t *)main, SIGUSR1);
		nanosleep(&moment, NULL);
	}
	sem_post(&go);
	return NULL;
}

TEST(signals_do_not_end_a_join)
{
	struct sigaction sa = { .sa_handler = on_signal };
	pthread_t self = pthread_self(), p;
	weft_thread *t;

	sem_init(&ready, 0, 0);
	sem_init(&go, 0, 0);
	sigaction(SIGUSR1, &sa, NULL);
	CHECK_EQ(weft_thread_spawn(waits_for_go, (void *)1l, NULL, &t), 0);
	CHECK_EQ(pthread_create(&p, NULL, interrupts, &self), 0);
	errno = 99;
	CHECK_EQ(weft_thread_join(t, NULL, WEFT_NEVER), 0);
	CHECK_EQ(errno, 99);
	pthread_join(p, NULL);
}

static int exits(void *arg)
{
	pthread_exit(arg);
}

static int is_cancelled(void *arg)
{
	(void)arg;
	pthread_cancel(weft_thread_pthread(weft_thread_self()));
	pthread_testcancel();
	return 1;
}

TEST(other_ends_have_a_result_of_their_own)
{
	CHECK_EQ(result_of(exits, (void *)5l, NULL), -ECANCELED);
	CHECK_EQ(result_of(is_cancelled, NULL, NULL), -ECANCELED);
}

static int is_itself(void *arg)
{
	weft_thread *self = weft_thread_self();

	*(weft_thread **)arg = self;
	return self && pthread_equal(weft_thread_pthread(self), pthread_self());
}

static void *has_no_handle(void *arg)
{
	*(weft_thread **)arg = weft_thread_self();
	return NULL;
}

TEST(a_thread_knows_its_handle)
{
	weft_thread *t, *self = NULL;
	pthread_t p;
	int result = 0;

	CHECK(!weft_thread_self());
	CHECK_EQ(weft_thread_spawn(is_itself, &self, NULL, &t), 0);
	CHECK_EQ(weft_thread_join(t, &result, WEFT_NEVER), 0);
	CHECK(self == t);
	CHECK_EQ(result, 1);
	CHECK_EQ(pthread_create(&p, NULL, has_no_handle, &self), 0);
	pthread_join(p, NULL);
	CHECK(!self);
}

static int yields(void *arg)
{
	while (!__atomic_load_n((int *)arg, __ATOMIC_ACQUIRE))
		weft_thread_yield();
	return 1;
}

TEST(a_yield_lets_others_run)
{
	int flag = 0, result = 0;
	weft_thread *t[4];

	for (int i = 0; i < 4; i++)
		CHECK_EQ(weft_thread_spawn(yields, &flag, NULL, &t[i]), 0);
	__atomic_store_n(&flag, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < 4; i++) {
		CHECK_EQ(weft_thread_join(t[i], &result, WEFT_NEVER), 0);
		CHECK_EQ(result, 1);
	}
}

static pthread_key_t key;
static int nr_destroyed;

static void destroys(void *value)
{
	(void)value;
	usleep(2000); /* a join that does not wait for it would be over by then */
	__atomic_add_fetch(&nr_destroyed, 1, __ATOMIC_RELAXED);
}

static int sets_key(void *arg)
{
	pthread_setspecific(key, &nr_destroyed);
	return (int)(long)arg;
}

TEST(a_join_sees_what_destructors_have_done)
{
	pthread_key_create(&key, destroys);
	for (int i = 1; i <= 10; i++) {
		CHECK_EQ(result_of(sets_key, (void *)(long)i, NULL), i);
		CHECK_EQ(__atomic_load_n(&nr_destroyed, __ATOMIC_RELAXED), i);
	}
}

static int sleeps_for_ever(void *arg)
{
	int ret;

	sem_post(&ready);
	ret = weft_sleep_until(WEFT_NEVER);
	/* Each wait fails from now on, and what needs none does not. */
	return ret == -ECANCELED && weft_sleep_until(WEFT_NEVER) == -ECANCELED &&
			       weft_scope_check() == -ECANCELED
		       ? (int)(long)arg
		       : ret;
}

static int is_not_cancelled(void *arg)
{
	(void)arg;
	return weft_scope_check() == 0;
}

static int reads(void *fd)
{
	char c;

	sem_post(&ready);
	return read((int)(long)fd, &c, 1) < 0 ? -errno : 0;
}

TEST(a_cancel_ends_waits_by_an_error)
{
	int result = 0, fds[2];
	weft_thread *t;

	sem_init(&ready, 0, 0);
	/* Before it has begun, as it goes to sleep, and when it sleeps, as a rule. */
	for (int started = 0; started < 3; started++) {
		CHECK_EQ(weft_thread_spawn(sleeps_for_ever, (void *)8l, NULL, &t), 0);
		if (started)
			sem_wait(&ready);
		if (started == 2)
			weft_sleep_until(weft_now() + 5 * WEFT_MS);
		weft_thread_cancel(t);
		weft_thread_cancel(t);
		CHECK_EQ(weft_thread_join(t, &result, WEFT_NEVER), 0);
		CHECK_EQ(result, 8);
	}
	CHECK_EQ(result_of(is_not_cancelled, NULL, NULL), 1);
	CHECK_EQ(weft_thread_spawn(returns, (void *)2l, NULL, &t), 0);
	weft_sleep_until(weft_now() + WEFT_MS);
	weft_thread_cancel(t); /* has ended, as a rule */
	CHECK_EQ(weft_thread_join(t, &result, WEFT_NEVER), 0);
	CHECK_EQ(result, 2);
	if (is_native_run())
		return;
	CHECK_EQ(pipe(fds), 0);
	CHECK_EQ(weft_thread_spawn(reads, (void *)(long)fds[0], NULL, &t), 0);
	sem_wait(&ready);
	weft_thread_cancel(t);
	CHECK_EQ(weft_thread_join(t, &result, WEFT_NEVER), 0);
	CHECK_EQ(result, -ECANCELED);
	close(fds[0]);
	close(fds[1]);
}

static int sleeps_until_cancelled(void *arg)
{
	(void)arg;
	return weft_sleep_until(WEFT_NEVER);
}

TEST(a_cancel_may_come_as_it_begins)
{
	for (size_t i = 0; i < 400; i++) {
		weft_thread *t;
		int result = 0;

		CHECK_EQ(weft_thread_spawn(sleeps_until_cancelled, NULL, NULL, &t), 0);
		for (size_t spin = 0; spin < i * 40; spin++)
			__asm__ volatile("" ::: "memory");
		weft_thread_cancel(t);
		CHECK_EQ(weft_thread_join(t, &result, WEFT_NEVER), 0);
		CHECK_EQ(result, -ECANCELED);
	}
}

static int works_for_a_moment(void *rounds)
{
	volatile char used[4096];

	for (size_t i = 0; i < (size_t)rounds; i++)
		used[i % sizeof(used)] = (char)i;
	return 5;
}

/* A canceller looks at the stack of a thread that may be ending. */
TEST(a_cancel_may_come_at_the_very_end)
{
	for (size_t i = 0; i < 400; i++) {
		weft_thread *t;
		int result = 0;

		CHECK_EQ(weft_thread_spawn(works_for_a_moment, (void *)(i * 100), NULL, &t), 0);
		for (size_t spin = 0; spin < i * 40; spin++)
			__asm__ volatile("" ::: "memory");
		weft_thread_cancel(t);
		CHECK_EQ(weft_thread_join(t, &result, WEFT_NEVER), 0);
		CHECK_EQ(result, 5);
	}
}

TEST(a_sleep_is_shortened_by_scopes)
{
	weft_time began = weft_now();
	weft_scope s;

	weft_scope_open(&s, began + 5 * WEFT_MS, "short");
	CHECK_EQ(weft_sleep_until(WEFT_NEVER), -ETIMEDOUT);
	CHECK_EQ(weft_sleep_until(weft_now() + 60 * WEFT_SEC), -ETIMEDOUT);
	CHECK(weft_now() >= began + 5 * WEFT_MS);
	CHECK_EQ(weft_scope_close(&s), -ETIMEDOUT);
	CHECK_EQ(weft_sleep_until(weft_now() + WEFT_MS), 0);
}

static int spawns(void *arg)
{
	long depth = (long)arg;

	return depth ? 1 + result_of(spawns, (void *)(depth - 1), NULL) : 0;
}

TEST(threads_spawn_threads)
{
	CHECK_EQ(result_of(spawns, (void *)50l, NULL), 50);
}

static pthread_t own[100];

static int notes_pthread(void *arg)
{
	*(pthread_t *)arg = pthread_self();
	return waits_for_go(NULL);
}

/* Most of them have not begun when they are asked. */
TEST(a_thread_has_its_pthread_from_the_spawn_on)
{
	enum {
		MANY = 100
	};
	static weft_thread *t[MANY];
	pthread_t seen[MANY];

	sem_init(&go, 0, 0);
	sem_init(&ready, 0, 0);
	for (int i = 0; i < MANY; i++)
		CHECK_EQ(weft_thread_spawn(notes_pthread, &own[i], NULL, &t[i]), 0);
	for (int i = MANY; i--;)
		seen[i] = weft_thread_pthread(t[i]);
	for (int i = 0; i < MANY; i++)
		sem_wait(&ready);
	for (int i = 0; i < MANY; i++)
		CHECK(pthread_equal(seen[i], own[i]));
	for (int i = 0; i < MANY; i++)
		sem_post(&go);
	for (int i = 0; i < MANY; i++)
		CHECK_EQ(weft_thread_join(t[i], NULL, WEFT_NEVER), 0);
}

static int counts(void *arg)
{
	__atomic_add_fetch((int *)arg, 1, __ATOMIC_RELAXED);
	return 0;
}

TEST(many_threads_one_after_the_other_and_at_once)
{
	enum {
		AT_ONCE = 200,
		ROUNDS = 10
	};
	static weft_thread *t[AT_ONCE];
	int n = 0;

	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < AT_ONCE; i++)
			CHECK_EQ(weft_thread_spawn(counts, &n, NULL, &t[i]), 0);
		for (int i = 0; i < AT_ONCE; i++)
			CHECK_EQ(weft_thread_join(t[i], NULL, WEFT_NEVER), 0);
	}
	CHECK_EQ(n, ROUNDS * AT_ONCE);
}

static int spawns_many(void *arg)
{
	enum {
		AT_ONCE = 150
	};
	weft_thread *t[AT_ONCE];
	const int rounds = is_native_run() ? 1 : 200;
	int sum = 0;

	for (int round = 0; round < rounds; round++) {
		for (int i = 0; i < AT_ONCE; i++)
			if (weft_thread_spawn(returns, (void *)1l, NULL, &t[i]))
				return -1;
		for (int i = 0; i < AT_ONCE; i++) {
			int one = 0;

			if (weft_thread_join(t[i], &one, WEFT_NEVER))
				return -1;
			sum += one;
			if (i % 10 == 0)
				weft_thread_yield();
		}
	}
	return sum == rounds * AT_ONCE ? 6 : -1;
}

static int spawns_on_all_workers(void *arg)
{
	weft_thread *t[8];
	int one, sum = 0;

	for (int i = 0; i < 8; i++)
		if (weft_thread_spawn(spawns_many, NULL, NULL, &t[i]))
			return -1;
	for (int i = 0; i < 8; i++)
		sum += weft_thread_join(t[i], &one, WEFT_NEVER) == 0 && one == 6;
	return sum == 8 ? 6 : -1;
}

TEST(a_fork_child_spawns_threads_of_its_own)
{
	int status = -1;
	weft_thread *t;
	pid_t pid;

	CHECK_EQ(result_of(spawns_on_all_workers, NULL, NULL), 6); /* workers keep handles */
	pid = fork();
	if (pid == 0)
		_exit(weft_thread_spawn(spawns_on_all_workers, NULL, NULL, &t) ||
				      weft_thread_join(t, &status, WEFT_NEVER)
			      ? 1
			      : status);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), 6);
}
