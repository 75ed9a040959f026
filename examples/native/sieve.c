// SPDX-License-Identifier: Apache-2.0
// The primes up to a number: each prime is a thread that hands on what it does not divide, through a channel to the next one.
//
// Usage: sieve [number]
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <weft/weft.h>

static weft_group sieve = { .name = "sieve" };
static long last = 100;

static int numbers(void *arg)
{
	weft_chan *out = arg;
	int ret = 0;

	for (long n = 2; n <= last && ret == 0; n++)
		ret = weft_chan_send(out, &n, WEFT_NEVER);
	weft_chan_close(out);
	return ret;
}

/* The first number that arrives is a prime; the next filter is made when there is a number for it. */
static int filter(void *arg)
{
	weft_chan *in = arg, *out = NULL;
	long prime, n;
	int ret = weft_chan_recv(in, &prime, WEFT_NEVER);

	if (ret < 0)
		return ret;
	printf("%ld\n", prime);
	while ((ret = weft_chan_recv(in, &n, WEFT_NEVER)) == 0) {
		if (n % prime == 0)
			continue;
		if (!out) {
			out = weft_chan_new(sizeof(n), 1, "sieve");
			ret = out ? weft_group_go(&sieve, filter, out) : -ENOMEM;
			if (ret < 0)
				return ret; /* which cancels all the others */
		}
		ret = weft_chan_send(out, &n, WEFT_NEVER);
		if (ret < 0)
			return ret;
	}
	if (ret != -EPIPE)
		return ret;
	if (out)
		weft_chan_close(out);
	weft_chan_free(in); /* closed and empty: nobody names it any more */
	return 0;
}

int main(int argc, char **argv)
{
	weft_chan *all = weft_chan_new(sizeof(long), 1, "numbers");
	int ret;

	last = argc > 1 ? atol(argv[1]) : last;
	if (!all || last < 2)
		return 1;
	ret = weft_group_go(&sieve, numbers, all);
	if (ret == 0)
		ret = weft_group_go(&sieve, filter, all);
	if (ret < 0)
		weft_group_cancel(&sieve); /* else the one that was started waits for ever */
	return weft_group_wait(&sieve) < 0 || ret < 0;
}
