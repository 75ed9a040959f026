// SPDX-License-Identifier: Apache-2.0
/*
 * The cost of libweft's channels, events and select, beside the same game with libc's semaphores; ns each. All in one run, in
 * turn, since only their ratios mean something on a machine that does other things.
 *
 *	bench-sync [ROUNDS [PART OF A NAME]]      WEFT=0 in the environment: with threads of the kernel
 *
 * A round trip is two hand-overs; a hop is one. Median of the rounds, the best, and the least that it took of the processors:
 * that is the figure for a machine that does other things.
 */
#include <weft/weft.h>

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MOST_ROUNDS 99
#define RING 503
#define LAPS 200

static long nr;

static pthread_t start(void *(*fn)(void *), void *arg)
{
	pthread_attr_t attr;
	pthread_t t;

	if (pthread_attr_init(&attr) || pthread_attr_setstacksize(&attr, 128ul << 10) ||
	    pthread_create(&t, &attr, fn, arg))
		abort();
	pthread_attr_destroy(&attr);
	return t;
}

static void end(pthread_t t)
{
	if (pthread_join(t, NULL))
		abort();
}

static void must(int ret)
{
	if (ret)
		abort();
}

/* --- ping-pong --- */

static sem_t sem_a, sem_b;
static weft_chan *chan_a, *chan_b;
static weft_event event_a, event_b;

static void *sem_answers(void *arg)
{
	for (long i = 0; i < nr; i++) {
		sem_wait(&sem_a);
		sem_post(&sem_b);
	}
	return arg;
}

static void pingpong_sem(void)
{
	pthread_t t;

	sem_init(&sem_a, 0, 0);
	sem_init(&sem_b, 0, 0);
	t = start(sem_answers, NULL);
	for (long i = 0; i < nr; i++) {
		sem_post(&sem_a);
		sem_wait(&sem_b);
	}
	end(t);
}

static void *chan_answers(void *arg)
{
	for (long i = 0; i < nr; i++) {
		must(weft_chan_take(chan_a, WEFT_NEVER));
		must(weft_chan_give(chan_b, WEFT_NEVER));
	}
	return arg;
}

static void pingpong_chan(size_t capacity)
{
	pthread_t t;

	chan_a = weft_chan_new(0, capacity, "a");
	chan_b = weft_chan_new(0, capacity, "b");
	t = start(chan_answers, NULL);
	for (long i = 0; i < nr; i++) {
		must(weft_chan_give(chan_a, WEFT_NEVER));
		must(weft_chan_take(chan_b, WEFT_NEVER));
	}
	end(t);
	weft_chan_free(chan_a);
	weft_chan_free(chan_b);
}

static void pingpong_tokens(void)
{
	pingpong_chan(1);
}

static void pingpong_rendezvous(void)
{
	pingpong_chan(0);
}

static void *event_answers(void *arg)
{
	for (long i = 0; i < nr; i++) {
		must(weft_event_wait(&event_a, WEFT_NEVER));
		weft_event_clear(&event_a);
		weft_event_set(&event_b);
	}
	return arg;
}

static void pingpong_event(void)
{
	pthread_t t = start(event_answers, NULL);

	for (long i = 0; i < nr; i++) {
		weft_event_set(&event_a);
		must(weft_event_wait(&event_b, WEFT_NEVER));
		weft_event_clear(&event_b);
	}
	end(t);
}

static void *select_answers(void *arg)
{
	weft_event never[2] = { { { 0 } } };
	struct weft_op ops[] = { WEFT_ON(&never[0]), WEFT_ON(&never[1]), WEFT_TAKE(chan_b),
				 WEFT_TAKE(chan_a) };

	for (long i = 0; i < nr; i++) {
		must(weft_select(ops, 4, WEFT_NEVER) != 3);
		must(weft_chan_give(chan_b, WEFT_NEVER));
	}
	return arg;
}

/* The thread that answers waits for four; the other one takes from what it looks at, too, before it can. */
static void pingpong_select(void)
{
	weft_chan *idle = weft_chan_new(0, 0, "idle");
	weft_event never[2] = { { { 0 } } };
	pthread_t t;

	chan_a = weft_chan_new(0, 1, "a");
	chan_b = weft_chan_new(0, 0, "b");
	t = start(select_answers, NULL);
	for (long i = 0; i < nr; i++) {
		struct weft_op ops[] = { WEFT_ON(&never[0]), WEFT_ON(&never[1]), WEFT_TAKE(idle),
					 WEFT_TAKE(chan_b) };

		must(weft_chan_give(chan_a, WEFT_NEVER));
		must(weft_select(ops, 4, WEFT_NEVER) != 3);
	}
	end(t);
	weft_chan_free(chan_a);
	weft_chan_free(chan_b);
	weft_chan_free(idle);
}

/* --- ring --- */

static sem_t ring_sem[RING];
static weft_chan *ring_chan[RING];

static void *passes_sem(void *arg)
{
	long i = (long)arg;

	for (int lap = 0; lap < LAPS; lap++) {
		sem_wait(&ring_sem[i]);
		sem_post(&ring_sem[(i + 1) % RING]);
	}
	return NULL;
}

static void *passes_chan(void *arg)
{
	long i = (long)arg;

	for (int lap = 0; lap < LAPS; lap++) {
		must(weft_chan_take(ring_chan[i], WEFT_NEVER));
		must(weft_chan_give(ring_chan[(i + 1) % RING], WEFT_NEVER));
	}
	return NULL;
}

static void go_round(void *(*fn)(void *), void (*begin)(void))
{
	static pthread_t t[RING];

	for (long i = 0; i < RING; i++)
		t[i] = start(fn, (void *)i);
	begin();
	for (long i = 0; i < RING; i++)
		end(t[i]);
}

static void begin_sem(void)
{
	sem_post(&ring_sem[0]);
}

static void begin_chan(void)
{
	must(weft_chan_give(ring_chan[0], WEFT_NEVER));
}

static void ring_of_sems(void)
{
	for (int i = 0; i < RING; i++)
		sem_init(&ring_sem[i], 0, 0);
	go_round(passes_sem, begin_sem);
}

static void ring_of_chans(void)
{
	for (int i = 0; i < RING; i++)
		ring_chan[i] = weft_chan_new(0, 1, "ring");
	go_round(passes_chan, begin_chan);
	for (int i = 0; i < RING; i++)
		weft_chan_free(ring_chan[i]);
}

/* --- alone --- */

static void sem_alone(void)
{
	sem_init(&sem_a, 0, 0);
	for (long i = 0; i < nr; i++) {
		sem_post(&sem_a);
		sem_wait(&sem_a);
	}
}

static void chan_alone(void)
{
	weft_chan *ch = weft_chan_new(sizeof(long), 16, "alone");

	for (long i = 0; i < nr; i++) {
		long n;

		must(weft_chan_send(ch, &i, WEFT_NEVER));
		must(weft_chan_recv(ch, &n, WEFT_NEVER));
	}
	weft_chan_free(ch);
}

static void event_alone(void)
{
	weft_event e = { { 0 } };

	for (long i = 0; i < nr; i++) {
		weft_event_set(&e);
		must(weft_event_wait(&e, WEFT_NEVER));
		weft_event_clear(&e);
	}
}

static void select_alone(void)
{
	weft_event e[3] = { { { 0 } } };
	weft_chan *ch = weft_chan_new(0, 1, "alone");
	struct weft_op ops[] = { WEFT_ON(&e[0]), WEFT_ON(&e[1]), WEFT_ON(&e[2]), WEFT_TAKE(ch) };

	for (long i = 0; i < nr; i++) {
		must(weft_chan_give(ch, WEFT_NEVER));
		must(weft_select(ops, 4, WEFT_NEVER) != 3);
	}
	weft_chan_free(ch);
}

/* --- in turn --- */

static const struct game {
	const char *name;
	void (*play)(void);
	bool is_ring;
} games[] = {
	{ "semaphore ping-pong, round trip", pingpong_sem, false },
	{ "channel of tokens, round trip", pingpong_tokens, false },
	{ "rendezvous of tokens, round trip", pingpong_rendezvous, false },
	{ "event ping-pong, round trip", pingpong_event, false },
	{ "select over 4, round trip", pingpong_select, false },
	{ "ring of 503 semaphores, hop", ring_of_sems, true },
	{ "ring of 503 channels, hop", ring_of_chans, true },
	{ "semaphore post and wait, alone", sem_alone, false },
	{ "channel send and receive, alone", chan_alone, false },
	{ "event set, wait and clear, alone", event_alone, false },
	{ "select over 4, the last is ready", select_alone, false },
};
#define NR_GAMES (sizeof(games) / sizeof(games[0]))

static int ascending(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static weft_time cpu_now(void)
{
	struct timespec used;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	return used.tv_sec * WEFT_SEC + used.tv_nsec;
}

int main(int argc, char **argv)
{
	static double ns[NR_GAMES][MOST_ROUNDS], cpu[NR_GAMES][MOST_ROUNDS];
	int rounds = argc > 1 ? atoi(argv[1]) : 5;
	const char *part = argc > 2 ? argv[2] : "";

	if (rounds < 1 || rounds > MOST_ROUNDS) {
		fprintf(stderr, "Usage: bench-sync [ROUNDS [PART OF A NAME]]   1 to %d\n",
			MOST_ROUNDS);
		return 2;
	}
	nr = weft_mode(NULL) == WEFT_MODE_NATIVE ? 3000 : 30000;
	for (int r = 0; r < rounds; r++)
		for (size_t g = 0; g < NR_GAMES; g++) {
			if (!strstr(games[g].name, part))
				continue;
			double times = games[g].is_ring ? (double)RING * LAPS : (double)nr;
			weft_time began = weft_now(), used = cpu_now();

			games[g].play();
			cpu[g][r] = (double)(cpu_now() - used) / times;
			ns[g][r] = (double)(weft_now() - began) / times;
		}
	printf("%-34s %9s %9s %9s\n", "ns", "median", "best", "CPU");
	for (size_t g = 0; g < NR_GAMES; g++) {
		if (!strstr(games[g].name, part))
			continue;
		qsort(ns[g], (size_t)rounds, sizeof(double), ascending);
		qsort(cpu[g], (size_t)rounds, sizeof(double), ascending);
		printf("%-34s %9.1f %9.1f %9.1f\n", games[g].name, ns[g][rounds / 2], ns[g][0],
		       cpu[g][0]);
	}
	return 0;
}
