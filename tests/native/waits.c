// SPDX-License-Identifier: Apache-2.0
/* The victim of test_dump.py: a thread waits in each function of libweft. Prints "ready", and ends at the end of its input. */
#include <weft/weft.h>

#include "threads.h"

#include <poll.h>
#include <unistd.h>

weft_event never;
static weft_chan *jobs, *results, *unnamed;
static int fds[2];

static void *receives(void *arg)
{
	long job;

	pthread_setname_np(pthread_self(), "receives");
	(void)weft_chan_recv(results, &job, WEFT_NEVER);
	return arg;
}

static void *sends(void *arg)
{
	long job = 9;

	pthread_setname_np(pthread_self(), "sends");
	(void)weft_chan_send(jobs, &job, WEFT_NEVER);
	return arg;
}

static void *takes(void *arg)
{
	pthread_setname_np(pthread_self(), "takes");
	(void)weft_chan_take(unnamed, WEFT_NEVER);
	return arg;
}

static void *waits(void *arg)
{
	pthread_setname_np(pthread_self(), "waits");
	(void)weft_event_wait(&never, WEFT_NEVER);
	return arg;
}

static void *selects(void *arg)
{
	long job;
	struct weft_op ops[] = { WEFT_ON(&never), WEFT_RECV(results, &job) };

	pthread_setname_np(pthread_self(), "selects");
	(void)weft_select(ops, 2, WEFT_NEVER);
	return arg;
}

static void *polls(void *arg)
{
	struct weft_op ops[] = { WEFT_ON(&never), WEFT_FD(-1, POLLIN), WEFT_FD(fds[0], POLLIN) };

	pthread_setname_np(pthread_self(), "polls");
	(void)weft_select(ops, 3, WEFT_NEVER);
	return arg;
}

int main(void)
{
	void *(*const stories[])(void *) = { receives, sends, takes, waits, selects, polls };
	long job = 1;
	char c;

	jobs = weft_chan_new(sizeof(long), 3, "jobs");
	results = weft_chan_new(sizeof(long), 8, "results");
	unnamed = weft_chan_new(0, 0, NULL);
	if (!jobs || !results || !unnamed || pipe(fds))
		return 2;
	for (int i = 0; i < 3; i++)
		(void)weft_chan_send(jobs, &job, WEFT_NOW);
	for (size_t i = 0; i < sizeof(stories) / sizeof(stories[0]); i++)
		(void)spawn(stories[i], NULL);
	printf("ready\n");
	fflush(stdout);
	while (read(0, &c, 1) > 0)
		;
	_exit(0);
}
