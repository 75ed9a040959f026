// SPDX-License-Identifier: Apache-2.0
/*
 * Blocking calls inside a signal handler that interrupted a blocking call: each blocks, none spins.
 */
#include "check.h"

#include <poll.h>
#include <semaphore.h>
#include <sys/eventfd.h>

#define WAIT_NS (100 * MS)
#define ATTEMPTS 10

static int handler_pipe[2], event_fd, is_back;
static volatile sig_atomic_t nr_handled;

static void write_event(void)
{
	const uint64_t one = 1;

	CHECK_EQ(write(event_fd, &one, sizeof(one)), sizeof(one));
}

static void sleep_a_while(void)
{
	const struct timespec ts = timespec_of(WAIT_NS);

	CHECK_SYS(nanosleep(&ts, NULL));
}

static void poll_in_vain(void)
{
	struct pollfd p = { .fd = handler_pipe[0], .events = POLLIN };

	CHECK_EQ(poll(&p, 1, WAIT_NS / MS), 0);
}

static void read_pipe(void)
{
	char c = 0;

	CHECK_EQ(read(handler_pipe[0], &c, 1), 1);
	CHECK_EQ(c, 'x');
}

static void sem_in_vain(void)
{
	struct timespec until = timespec_of(clock_ns(CLOCK_REALTIME) + WAIT_NS);
	sem_t sem;

	sem_init(&sem, 0, 0);
	CHECK_ERRNO(sem_timedwait(&sem, &until), ETIMEDOUT);
}

static void (*in_handler)(void);

static void on_signal(int sig)
{
	int saved = errno;

	(void)sig;
	if (nr_handled++ == 0)
		in_handler();
	errno = saved;
}

/* The call that the signal interrupts. */
static void *blocks_in_poll(void *arg)
{
	(void)arg;
	CHECK_ERRNO(poll(NULL, 0, 60000), EINTR);
	STORE(&is_back, 1);
	return NULL;
}

static void *blocks_in_read(void *arg)
{
	const int *fds = arg;
	char c;

	CHECK_ERRNO(read(fds[0], &c, 1), EINTR);
	STORE(&is_back, 1);
	return NULL;
}

static void *blocks_in_event_read(void *arg)
{
	int fd = eventfd(0, 0);
	uint64_t value;

	(void)arg;
	CHECK_ERRNO(read(fd, &value, sizeof(value)), EINTR);
	STORE(&is_back, 1);
	close(fd);
	return NULL;
}

/* The CPU time that it took. */
static int64_t interrupt(void *(*fn)(void *), int *fds)
{
	int64_t cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	pthread_t t;

	nr_handled = is_back = 0;
	t = start(fn, fds);
	let_others_block();
	CHECK_PT(pthread_kill(t, SIGUSR1));
	sleep_ns(WAIT_NS);
	if (in_handler == read_pipe)
		CHECK_EQ(write(handler_pipe[1], "x", 1), 1);
	/* It had not blocked yet when the signal came: another one gets it out. */
	for (let_others_block(); !LOAD(&is_back); let_others_block())
		CHECK_PT(pthread_kill(t, SIGUSR1));
	join(t);
	CHECK(nr_handled >= 1);
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
}

/* Time that the host takes away counts as used, now and then; a spin uses all of it each time. */
static void blocks_in_handler_of(void *(*fn)(void *), int *fds)
{
	int64_t used = WAIT_NS;

	for (int i = 0; i < ATTEMPTS && used >= WAIT_NS / 2; i++)
		used = interrupt(fn, fds);
	CHECK(used < WAIT_NS / 2);
}

int main(void)
{
	static const struct {
		void (*fn)(void);
		const char *name;
	} calls[] = {
		{ write_event, "a write to an eventfd" },
		{ sleep_a_while, "nanosleep" },
		{ poll_in_vain, "poll" },
		{ read_pipe, "a read from a pipe" },
		{ sem_in_vain, "sem_timedwait" },
	};
	struct sigaction act = { .sa_handler = on_signal };
	int fds[2];

	CHECK_SYS(pipe(fds));
	CHECK_SYS(pipe(handler_pipe));
	event_fd = (int)CHECK_SYS(eventfd(0, 0));
	CHECK_SYS(sigaction(SIGUSR1, &act, NULL));
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		in_handler = calls[i].fn;
		blocks_in_handler_of(blocks_in_poll, fds);
		blocks_in_handler_of(blocks_in_read, fds);
		blocks_in_handler_of(blocks_in_event_read, fds);
		ok(calls[i].name);
	}
	return finish();
}
