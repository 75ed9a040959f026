// SPDX-License-Identifier: Apache-2.0
/*
 * Follows by behaviour the tests of nsync: cv_test, cv_mu_timeout_stress_test, mu_starvation_test, wait_test, note_test,
 * pingpong_test. Its locks and conditions are pthread's here, within scopes; its notes are events and scopes; its wait for several
 * is a select.
 */
#include <weft/weft.h>

#include "native.h"
#include "tap.h"
#include "threads.h"

#include <errno.h>
#include <stdatomic.h>

/* --- cv_mu_timeout_stress: many count by turns, by waits that end too early, again and again --- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t is_turn[4] = { PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER,
				     PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER };
static unsigned count, timeouts, holders;

#define EACH 60
#define PER_TURN 3

/* By a scope where it reaches into libc, else by the time of the call. */
static void wait_a_little(pthread_cond_t *cond, unsigned us)
{
	weft_time until = weft_now() + us * WEFT_US;

	if (is_native_run()) {
		struct timespec ts;

		clock_gettime(CLOCK_REALTIME, &ts);
		ts.tv_nsec += us * 1000L;
		ts.tv_sec += ts.tv_nsec / 1000000000;
		ts.tv_nsec %= 1000000000;
		timeouts += pthread_cond_timedwait(cond, &mutex, &ts) == ETIMEDOUT;
	} else {
		WEFT_SCOPE(s, until);
		int error = pthread_cond_wait(cond, &mutex);

		CHECK(error == 0 || error == ETIMEDOUT);
		CHECK_EQ(weft_scope_close(&s), error ? -ETIMEDOUT : 0);
		timeouts += error != 0;
	}
	/* However it ended, the lock is ours. */
	CHECK_EQ(holders++, 0);
	holders--;
}

static void *counts_at_its_turn(void *arg)
{
	unsigned turn = (unsigned)(uintptr_t)arg, us = turn;

	pthread_mutex_lock(&mutex);
	for (int i = 0; i < EACH; i++) {
		while (count % 4 != turn)
			wait_a_little(&is_turn[turn], (us = us * 13 + 7) % 400);
		count++;
		pthread_cond_signal(&is_turn[count % 4]);
	}
	/* Others of this turn may sleep on a signal that came to one that was about to leave. */
	for (int i = 0; i < 4; i++)
		pthread_cond_broadcast(&is_turn[i]);
	pthread_mutex_unlock(&mutex);
	return NULL;
}

TEST(many_count_by_turns_though_their_waits_end_early)
{
	pthread_t t[4 * PER_TURN];
	int nr = 0;

	count = timeouts = 0;
	/* Those whose turn it is come last. */
	for (unsigned turn = 4; turn--;) {
		for (int i = 0; i < PER_TURN; i++)
			t[nr++] = spawn(counts_at_its_turn, (void *)(uintptr_t)turn);
		if (turn == 1)
			weft_sleep_until(weft_now() + 20 * WEFT_MS); /* many time-outs */
	}
	while (nr)
		join(t[--nr]);
	CHECK_EQ(count, 4 * PER_TURN * EACH);
	CHECK(timeouts > 0);
}

/* --- pingpong: within a scope that is cancelled in the end --- */

static pthread_cond_t turns[2] = { PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER };
static int whose;

static void *plays(void *arg)
{
	int me = (int)(intptr_t)arg;
	WEFT_SCOPE(s, weft_now() + 3600 * WEFT_SEC);

	pthread_mutex_lock(&mutex);
	for (int i = 0; i < 2000; i++) {
		while (whose != me)
			CHECK_EQ(pthread_cond_wait(&turns[me], &mutex), 0);
		whose = !me;
		pthread_cond_signal(&turns[!me]);
	}
	pthread_mutex_unlock(&mutex);
	CHECK_EQ(weft_scope_check(), 0);
	return NULL;
}

TEST(two_that_play_within_scopes_notice_nothing_of_them)
{
	pthread_t t = spawn(plays, (void *)1);

	(void)plays(NULL);
	join(t);
}

/* --- mu_starvation: whoever waits for a lock that is hogged gets it or goes on waiting, and never goes without --- */

static atomic_bool is_over;
static weft_event is_hogged;

static void *hogs(void *arg)
{
	while (!atomic_load(&is_over)) {
		pthread_mutex_lock(&mutex);
		weft_event_set(&is_hogged);
		CHECK_EQ(holders++, 0);
		weft_sleep_until(weft_now() + 200 * WEFT_US);
		holders--;
		pthread_mutex_unlock(&mutex);
		weft_thread_yield();
	}
	return arg;
}

TEST(a_scope_that_is_over_lets_nobody_in_without_the_lock)
{
	pthread_t t;

	atomic_store(&is_over, false);
	weft_event_clear(&is_hogged);
	t = spawn(hogs, NULL);
	CHECK_EQ(weft_event_wait(&is_hogged, WEFT_NEVER), 0);
	for (int i = 0; i < 20; i++) {
		WEFT_SCOPE(s, WEFT_NOW);

		CHECK_EQ(pthread_mutex_lock(&mutex), 0);
		CHECK_EQ(holders++, 0);
		holders--;
		pthread_mutex_unlock(&mutex);
		CHECK_EQ(weft_scope_close(&s), 0);
	}
	atomic_store(&is_over, true);
	join(t);
}

/* --- note: an event is one, a scope is one in a tree --- */

TEST(an_event_that_is_set_is_so_for_each_way_to_look)
{
	weft_event e = { { 0 } };
	weft_time start = weft_now();

	CHECK(!weft_event_is_set(&e));
	CHECK_EQ(weft_event_wait(&e, WEFT_NOW), -ETIMEDOUT);
	CHECK_EQ(weft_event_wait(&e, start + 10 * WEFT_MS), -ETIMEDOUT);
	CHECK(weft_now() >= start + 10 * WEFT_MS);
	for (int i = 0; i < 2; i++) {
		weft_event_set(&e);
		CHECK(weft_event_is_set(&e));
		CHECK_EQ(weft_event_wait(&e, WEFT_NOW), 0);
		CHECK_EQ(weft_event_wait(&e, WEFT_NEVER), 0);
	}
}

TEST(of_nested_scopes_the_inner_ones_are_over_and_not_the_outer)
{
	for (int focus = 0; focus < 4; focus++) {
		weft_scope s[4];

		for (int i = 0; i < 4; i++)
			weft_scope_open(&s[i], WEFT_NEVER, "note");
		CHECK_EQ(weft_scope_check(), 0);
		weft_scope_cancel(&s[focus]);
		for (int i = 4; i--;) {
			CHECK_EQ(weft_scope_check(), i >= focus ? -ECANCELED : 0);
			CHECK_EQ(weft_scope_close(&s[i]), i == focus ? -ECANCELED : 0);
		}
		CHECK_EQ(weft_scope_check(), 0);
	}
}

/* --- wait: each of many events is found once, and then no more --- */

#define NOTES 30
static weft_event notes[NOTES], go;

static void *notifies(void *arg)
{
	CHECK_EQ(weft_event_wait(&go, WEFT_NEVER), 0);
	weft_event_set(&notes[(intptr_t)arg]);
	return NULL;
}

TEST(a_wait_for_many_finds_each_once)
{
	for (int round = 0; round < 15; round++) {
		struct weft_op ops[NOTES];
		pthread_t t[NOTES];

		weft_event_clear(&go);
		for (intptr_t i = 0; i < NOTES; i++) {
			weft_event_clear(&notes[i]);
			ops[i] = (struct weft_op)WEFT_ON(&notes[i]);
			t[i] = spawn(notifies, (void *)i);
		}
		weft_event_set(&go);
		for (int left = NOTES; left; left--) {
			int which = weft_select(ops, NOTES, WEFT_NEVER);

			if (!CHECK(which >= 0 && ops[which].object == &notes[which]))
				break;
			ops[which].object = NULL;
		}
		CHECK_EQ(weft_select(ops, NOTES, WEFT_NOW), -ETIMEDOUT);
		for (int i = 0; i < NOTES; i++)
			join(t[i]);
	}
}
