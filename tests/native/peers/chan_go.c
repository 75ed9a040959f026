// SPDX-License-Identifier: Apache-2.0
/* The demands of Go's own tests of channels: order, sieves, attempts that do not wait, long chains, items of no size. */
#include <weft/weft.h>

#include "native.h"
#include "tap.h"
#include "threads.h"

#include <errno.h>
#include <sched.h>
#include <stdint.h>

static weft_chan *new_chan(size_t bytes, size_t capacity)
{
	return weft_chan_new(bytes, capacity, "test");
}

/* --- fifo --- */

TEST(a_buffered_channel_is_a_queue)
{
	weft_chan *ch = new_chan(sizeof(int), 10);

	for (int i = 0; i < 10; i++)
		CHECK_EQ(weft_chan_send(ch, &i, WEFT_NEVER), 0);
	for (int i = 0; i < 10; i++) {
		int n = -1;

		CHECK_EQ(weft_chan_recv(ch, &n, WEFT_NEVER), 0);
		CHECK_EQ(n, i);
	}
	weft_chan_free(ch);
}

static weft_chan *chan;

struct link {
	weft_chan *in, *out;
	int value;
};

/* Each sends its number when its predecessor is done. */
static void *sends_in_turn(void *arg)
{
	struct link *l = arg;
	int n;

	CHECK_EQ(weft_chan_recv(l->in, &n, WEFT_NEVER), 0);
	CHECK_EQ(weft_chan_send(chan, &l->value, WEFT_NEVER), 0);
	CHECK_EQ(weft_chan_send(l->out, &n, WEFT_NEVER), 0);
	return NULL;
}

TEST(a_rendezvous_keeps_the_order_of_the_senders)
{
	struct link links[10];
	weft_chan *steps[11];
	pthread_t t[10];
	int n = 0;

	chan = new_chan(sizeof(int), 0);
	for (int i = 0; i <= 10; i++)
		steps[i] = new_chan(sizeof(int), 1);
	for (int i = 0; i < 10; i++) {
		links[i] = (struct link){ steps[i], steps[i + 1], i };
		t[i] = spawn(sends_in_turn, &links[i]);
	}
	CHECK_EQ(weft_chan_send(steps[0], &n, WEFT_NEVER), 0);
	for (int i = 0; i < 10; i++) {
		CHECK_EQ(weft_chan_recv(chan, &n, WEFT_NEVER), 0);
		CHECK_EQ(n, i);
	}
	for (int i = 0; i < 10; i++)
		join(t[i]);
	for (int i = 0; i <= 10; i++)
		weft_chan_free(steps[i]);
	weft_chan_free(chan);
}

/* --- goroutines: a long chain --- */

static void *passes_on(void *arg)
{
	struct link *l = arg;
	int n;

	CHECK_EQ(weft_chan_recv(l->in, &n, WEFT_NEVER), 0);
	n++;
	CHECK_EQ(weft_chan_send(l->out, &n, WEFT_NEVER), 0);
	return NULL;
}

TEST(an_item_goes_through_a_long_chain)
{
	static struct link links[2000];
	static pthread_t t[2000];
	int nr = is_native_run() ? 200 : 2000, n = 0;
	weft_chan *first = new_chan(sizeof(int), 0), *in = first;

	for (int i = 0; i < nr; i++) {
		links[i] = (struct link){ in, new_chan(sizeof(int), 0), 0 };
		in = links[i].out;
		t[i] = spawn(passes_on, &links[i]);
	}
	CHECK_EQ(weft_chan_send(first, &n, WEFT_NEVER), 0);
	CHECK_EQ(weft_chan_recv(in, &n, WEFT_NEVER), 0);
	CHECK_EQ(n, nr);
	weft_chan_free(first);
	for (int i = 0; i < nr; i++) {
		join(t[i]);
		weft_chan_free(links[i].out);
	}
}

/* --- sieve1: each prime is a thread that lets through what it does not divide --- */

#define MOST_PRIMES 64
static weft_chan *sieve[MOST_PRIMES + 1];

static void *generates(void *arg)
{
	int n = 2;

	while (weft_chan_send(sieve[0], &n, WEFT_NEVER) == 0)
		n++;
	return arg;
}

static void *filters(void *arg)
{
	struct link *l = arg;
	int n;

	while (weft_chan_recv(l->in, &n, WEFT_NEVER) == 0)
		if (n % l->value && weft_chan_send(l->out, &n, WEFT_NEVER))
			break;
	weft_chan_close(l->in);
	return NULL;
}

TEST(the_sieve_finds_primes)
{
	static const int primes[] = { 2,  3,  5,  7,  11, 13, 17, 19, 23, 29, 31, 37, 41,
				      43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97 };
	static struct link links[MOST_PRIMES];
	pthread_t t[MOST_PRIMES], generator;
	int nr = (int)(sizeof(primes) / sizeof(primes[0]));

	for (size_t capacity = 0; capacity < 2; capacity++) {
		for (int i = 0; i <= nr; i++)
			sieve[i] = new_chan(sizeof(int), capacity);
		generator = spawn(generates, NULL);
		for (int i = 0; i < nr; i++) {
			int prime = 0;

			CHECK_EQ(weft_chan_recv(sieve[i], &prime, WEFT_NEVER), 0);
			CHECK_EQ(prime, primes[i]);
			links[i] = (struct link){ sieve[i], sieve[i + 1], prime };
			t[i] = spawn(filters, &links[i]);
		}
		/* Closed from the far end: each finds it so, and passes it on. */
		weft_chan_close(sieve[nr]);
		for (int i = 0; i < nr; i++)
			join(t[i]);
		join(generator);
		for (int i = 0; i <= nr; i++)
			weft_chan_free(sieve[i]);
	}
}

/* --- sieve2: one thread merges the multiples of all primes --- */

static void *counts_multiples(void *arg)
{
	struct link *l = arg;
	int n = l->value * l->value;

	while (weft_chan_send(l->out, &n, WEFT_NEVER) == 0)
		n += l->value;
	return NULL;
}

TEST(multiples_that_are_merged_leave_primes)
{
	static const int primes[] = { 2, 3, 5, 7 };
	struct link links[4];
	int next[4], nr_left = 0;
	pthread_t t[4];

	for (int i = 0; i < 4; i++) {
		links[i] = (struct link){ NULL, new_chan(sizeof(int), 2), primes[i] };
		t[i] = spawn(counts_multiples, &links[i]);
		CHECK_EQ(weft_chan_recv(links[i].out, &next[i], WEFT_NEVER), 0);
	}
	for (int n = 2; n < 121; n++) {
		bool is_prime = true;

		for (int i = 0; i < 4; i++)
			while (next[i] <= n) {
				is_prime = is_prime && next[i] != n;
				CHECK_EQ(weft_chan_recv(links[i].out, &next[i], WEFT_NEVER), 0);
			}
		nr_left += is_prime;
	}
	CHECK_EQ(nr_left, 30);
	for (int i = 0; i < 4; i++) {
		weft_chan_close(links[i].out);
		join(t[i]);
		weft_chan_free(links[i].out);
	}
}

/* --- powser1: series of rationals, computed on demand --- */

struct ratio {
	int64_t num, den;
};

struct series {
	weft_chan *request, *coefficient;
};

static int64_t gcd(int64_t a, int64_t b)
{
	return b ? gcd(b, a % b) : a < 0 ? -a : a;
}

static struct ratio ratio(int64_t num, int64_t den)
{
	int64_t g = gcd(num, den);

	return (struct ratio){ num / g, den / g };
}

static struct series new_series(void)
{
	return (struct series){ weft_chan_new(0, 0, "request"),
				weft_chan_new(sizeof(struct ratio), 0, "coefficient") };
}

static void free_series(struct series s)
{
	weft_chan_free(s.request);
	weft_chan_free(s.coefficient);
}

static struct ratio get(struct series s)
{
	struct ratio r = { 0, 0 };

	CHECK_EQ(weft_chan_give(s.request, WEFT_NEVER), 0);
	CHECK_EQ(weft_chan_recv(s.coefficient, &r, WEFT_NEVER), 0);
	return r;
}

struct operation {
	struct series a, b, out;
};

static void *exponential(void *arg)
{
	struct operation *o = arg;
	struct ratio r = { 1, 1 };

	for (int64_t n = 1; weft_chan_take(o->out.request, WEFT_NEVER) == 0; n++) {
		CHECK_EQ(weft_chan_send(o->out.coefficient, &r, WEFT_NEVER), 0);
		r = ratio(r.num, r.den * n);
	}
	return NULL;
}

static void *derivative(void *arg)
{
	struct operation *o = arg;

	(void)get(o->a);
	for (int64_t n = 1; weft_chan_take(o->out.request, WEFT_NEVER) == 0; n++) {
		struct ratio r = get(o->a);

		r = ratio(r.num * n, r.den);
		CHECK_EQ(weft_chan_send(o->out.coefficient, &r, WEFT_NEVER), 0);
	}
	weft_chan_close(o->a.request);
	return NULL;
}

static void *sum(void *arg)
{
	struct operation *o = arg;

	while (weft_chan_take(o->out.request, WEFT_NEVER) == 0) {
		struct ratio a = get(o->a), b = get(o->b),
			     r = ratio(a.num * b.den + b.num * a.den, a.den * b.den);

		CHECK_EQ(weft_chan_send(o->out.coefficient, &r, WEFT_NEVER), 0);
	}
	weft_chan_close(o->a.request);
	weft_chan_close(o->b.request);
	return NULL;
}

/* exp is its own derivative: both, added, are twice as much. */
TEST(power_series_are_computed_on_demand)
{
	struct operation a = { .out = new_series() }, b = { .out = new_series() };
	struct operation d = { .a = b.out, .out = new_series() };
	struct operation s = { .a = a.out, .b = d.out, .out = new_series() };
	pthread_t t[4] = { spawn(exponential, &a), spawn(exponential, &b), spawn(derivative, &d),
			   spawn(sum, &s) };
	int64_t factorial = 1;

	for (int n = 0; n < 12; n++) {
		struct ratio r = get(s.out), expected;

		factorial *= n ? n : 1;
		expected = ratio(2, factorial);
		CHECK_EQ(r.num, expected.num);
		CHECK_EQ(r.den, expected.den);
	}
	weft_chan_close(s.out.request);
	for (int i = 0; i < 4; i++)
		join(t[i]);
	free_series(a.out);
	free_series(b.out);
	free_series(d.out);
	free_series(s.out);
}

/* --- nonblock --- */

static void *receives_one(void *arg)
{
	int n = 0;

	CHECK_EQ(weft_chan_recv(chan, &n, WEFT_NEVER), 0);
	CHECK_EQ(n, 123);
	return arg;
}

static void *sends_one(void *arg)
{
	int n = 234;

	CHECK_EQ(weft_chan_send(chan, &n, WEFT_NEVER), 0);
	return arg;
}

TEST(an_attempt_meets_whoever_waits_already)
{
	for (size_t capacity = 0; capacity < 2; capacity++) {
		int n = 123;
		pthread_t t;

		chan = new_chan(sizeof(int), capacity);
		t = spawn(receives_one, NULL);
		while (weft_chan_send(chan, &n, WEFT_NOW) == -ETIMEDOUT)
			sched_yield();
		join(t);
		t = spawn(sends_one, NULL);
		while (weft_chan_recv(chan, &n, WEFT_NOW) == -ETIMEDOUT)
			sched_yield();
		CHECK_EQ(n, 234);
		join(t);
		CHECK_EQ(weft_chan_count(chan), 0);
		weft_chan_free(chan);
	}
}

/* --- zerosize --- */

TEST(items_of_no_size_are_counted)
{
	weft_chan *ch = new_chan(0, 3);

	for (int i = 0; i < 3; i++)
		CHECK_EQ(weft_chan_give(ch, WEFT_NOW), 0);
	CHECK_EQ(weft_chan_give(ch, WEFT_NOW), -ETIMEDOUT);
	weft_chan_close(ch);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(weft_chan_take(ch, WEFT_NEVER), 0);
	CHECK_EQ(weft_chan_take(ch, WEFT_NEVER), -EPIPE);
	weft_chan_free(ch);
}
