// SPDX-License-Identifier: Apache-2.0
/* <threads.h>: threads, locks, conditions and thread-specific storage of C11. */
#include <limits.h>
#include <threads.h>

#include "check.h"

#define NR_THREADS 8
#define NR_ROUNDS 200

static mtx_t lock;
static cnd_t changed;
static tss_t key;
static once_flag once = ONCE_FLAG_INIT;
static int nr_once, nr_destroyed, turn, counter;

static void count_once(void)
{
	nr_once++;
}

static void destroyed(void *value)
{
	CHECK(value != NULL);
	ADD(&nr_destroyed, 1);
}

static struct timespec in_ms(int ms)
{
	struct timespec ts;

	CHECK_EQ(timespec_get(&ts, TIME_UTC), TIME_UTC);
	return timespec_of(ts.tv_sec * SEC + ts.tv_nsec + ms * MS);
}

static int counts(void *arg)
{
	call_once(&once, count_once);
	CHECK_EQ(tss_set(key, arg), thrd_success);
	for (int i = 0; i < NR_ROUNDS; i++) {
		CHECK_EQ(mtx_lock(&lock), thrd_success);
		counter++;
		thrd_yield();
		CHECK_EQ(mtx_unlock(&lock), thrd_success);
	}
	CHECK(tss_get(key) == arg);
	return (int)(intptr_t)arg;
}

static int takes_turns(void *arg)
{
	int me = (int)(intptr_t)arg;

	mtx_lock(&lock);
	for (int i = 0; i < NR_ROUNDS; i++) {
		while (turn % NR_THREADS != me)
			CHECK_EQ(cnd_wait(&changed, &lock), thrd_success);
		turn++;
		CHECK_EQ(cnd_broadcast(&changed), thrd_success);
	}
	mtx_unlock(&lock);
	thrd_exit(me);
}

static void run_all(thrd_start_t fn)
{
	thrd_t t[NR_THREADS];

	for (int i = 0; i < NR_THREADS; i++)
		CHECK_EQ(thrd_create(&t[i], fn, (void *)(intptr_t)i), thrd_success);
	for (int i = 0; i < NR_THREADS; i++) {
		int value = -1;

		CHECK_EQ(thrd_join(t[i], &value), thrd_success);
		CHECK_EQ(value, i);
	}
}

static int holds(void *arg)
{
	mtx_t *m = arg;

	CHECK_EQ(mtx_trylock(m), thrd_busy);
	CHECK_EQ(mtx_timedlock(m, &(struct timespec){ 0, 0 }), thrd_timedout);
	struct timespec soon = in_ms(5);
	CHECK_EQ(mtx_timedlock(m, &soon), thrd_timedout);
	return 0;
}

static void test_kinds(int kind)
{
	int is_recursive = kind & mtx_recursive;
	mtx_t m;
	thrd_t t;

	CHECK_EQ(mtx_init(&m, kind), thrd_success);
	CHECK_EQ(mtx_lock(&m), thrd_success);
	CHECK_EQ(mtx_trylock(&m), is_recursive ? thrd_success : thrd_busy);
	if (is_recursive)
		CHECK_EQ(mtx_unlock(&m), thrd_success);
	CHECK_EQ(thrd_create(&t, holds, &m), thrd_success);
	CHECK_EQ(thrd_join(t, NULL), thrd_success);
	CHECK_EQ(mtx_unlock(&m), thrd_success);
	mtx_destroy(&m);
}

static int detached(void *arg)
{
	STORE((int *)arg, 1);
	return 0;
}

int main(void)
{
	struct timespec past = { 0, 0 }, rem, bad = { 0, SEC }, soon;
	static int has_run;
	thrd_t t;

	CHECK_EQ(mtx_init(&lock, mtx_plain), thrd_success);
	CHECK_EQ(cnd_init(&changed), thrd_success);
	CHECK_EQ(tss_create(&key, destroyed), thrd_success);
	run_all(counts);
	CHECK_EQ(counter, NR_THREADS * NR_ROUNDS);
	CHECK_EQ(nr_once, 1);
	CHECK_EQ(nr_destroyed, NR_THREADS - 1); /* one of the values is NULL */
	tss_delete(key);
	ok("threads, locks, call_once, storage");

	run_all(takes_turns);
	CHECK_EQ(turn, NR_THREADS * NR_ROUNDS);
	CHECK_EQ(cnd_signal(&changed), thrd_success);
	mtx_lock(&lock);
	CHECK_EQ(cnd_timedwait(&changed, &lock, &past), thrd_timedout);
	soon = in_ms(5);
	CHECK_EQ(cnd_timedwait(&changed, &lock, &soon), thrd_timedout);
	CHECK_EQ(cnd_timedwait(&changed, &lock, &bad), thrd_error);
	mtx_unlock(&lock);
	cnd_destroy(&changed);
	mtx_destroy(&lock);
	ok("conditions");

	test_kinds(mtx_timed);
	test_kinds(mtx_timed | mtx_recursive);
	ok("kinds of locks");

	CHECK(thrd_equal(thrd_current(), thrd_current()));
	CHECK_EQ(thrd_create(&t, detached, &has_run), thrd_success);
	CHECK_EQ(thrd_detach(t), thrd_success);
	while (!LOAD(&has_run))
		thrd_yield();
	CHECK_EQ(thrd_sleep(&(struct timespec){ 0, 1000 }, &rem), 0);
	CHECK_EQ(thrd_sleep(&bad, NULL), -2);
	ok("detach and sleep");
	return finish();
}
