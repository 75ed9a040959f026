// SPDX-License-Identifier: Apache-2.0
/*
 * Condition variables: signal wakes one, broadcast wakes all, a bounded queue loses nothing.
 */
#include "check.h"

#define NR 50
#define ITEMS 20000
#define ROOM 16

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
static pthread_cond_t arrived = PTHREAD_COND_INITIALIZER;
static int nr_waiting, nr_awake, tickets;

static pthread_cond_t not_full = PTHREAD_COND_INITIALIZER, not_empty = PTHREAD_COND_INITIALIZER;
static int queue[ROOM], head, tail;
static long consumed;

static void *takes_ticket(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&lock);
	nr_waiting++;
	pthread_cond_signal(&arrived);
	while (tickets == 0)
		pthread_cond_wait(&wake, &lock);
	tickets--;
	nr_awake++;
	pthread_cond_signal(&arrived);
	pthread_mutex_unlock(&lock);
	return NULL;
}

static void *produces(void *arg)
{
	(void)arg;
	for (int i = 1; i <= ITEMS; i++) {
		pthread_mutex_lock(&lock);
		while (tail - head == ROOM)
			pthread_cond_wait(&not_full, &lock);
		queue[tail++ % ROOM] = i;
		pthread_cond_signal(&not_empty);
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

static void *consumes(void *arg)
{
	(void)arg;
	for (int i = 1; i <= ITEMS; i++) {
		pthread_mutex_lock(&lock);
		while (tail == head)
			pthread_cond_wait(&not_empty, &lock);
		consumed += queue[head++ % ROOM];
		pthread_cond_signal(&not_full);
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

int main(void)
{
	pthread_t t[NR];

	for (int i = 0; i < NR; i++)
		t[i] = start(takes_ticket, NULL);
	pthread_mutex_lock(&lock);
	while (nr_waiting < NR)
		pthread_cond_wait(&arrived, &lock);
	ok("50 threads wait");

	for (int i = 1; i <= NR / 2; i++) {
		tickets = 1;
		pthread_cond_signal(&wake);
		while (nr_awake < i)
			pthread_cond_wait(&arrived, &lock);
		CHECK_EQ(nr_awake, i);
	}
	ok("signal: one ticket, one thread");

	tickets = NR - NR / 2;
	pthread_cond_broadcast(&wake);
	pthread_mutex_unlock(&lock);
	for (int i = 0; i < NR; i++)
		join(t[i]);
	CHECK_EQ(nr_awake, NR);
	CHECK_EQ(tickets, 0);
	ok("broadcast wakes the others");

	for (int i = 0; i < 4; i++)
		t[i] = start(i % 2 ? produces : consumes, NULL);
	for (int i = 0; i < 4; i++)
		join(t[i]);
	CHECK_EQ(consumed, 2 * ((long)ITEMS * (ITEMS + 1) / 2));
	ok("bounded queue");
	CHECK_PT(pthread_cond_destroy(&wake));
	return finish();
}
