// SPDX-License-Identifier: Apache-2.0
/*
 * eventfd, timerfd and signalfd read by blocked threads; what can be read or written though poll() does not say so.
 */
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/eventfd.h>
#include <sys/fanotify.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include "check.h"

#define ROUNDS 3000

static int ping, pong, signals;

static void *answers(void *arg)
{
	uint64_t value;

	for (int i = 0; i < ROUNDS; i++) {
		CHECK_EQ(read(ping, &value, sizeof(value)), sizeof(value));
		CHECK_EQ(write(pong, &value, sizeof(value)), sizeof(value));
	}
	return arg;
}

static void *takes_units(void *arg)
{
	uint64_t value;

	for (int i = 0; i < 100; i++) {
		CHECK_EQ(read(ping, &value, sizeof(value)), sizeof(value));
		CHECK_EQ(value, 1);
	}
	return arg;
}

static void *reads_signals(void *arg)
{
	struct signalfd_siginfo info;

	for (int i = 0; i < 3; i++) {
		CHECK_EQ(read(signals, &info, sizeof(info)), sizeof(info));
		CHECK_EQ(info.ssi_signo, SIGRTMIN + 1);
		CHECK_EQ(info.ssi_int, 100 + i);
		CHECK_EQ(info.ssi_pid, getpid());
	}
	return arg;
}

static void *makes_counter(void *arg)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
					.config = PERF_COUNT_SW_CPU_CLOCK,
					.size = sizeof(attr) };

	(void)arg;
	return (void *)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
}

/* poll() speaks of the samples in its buffer; a counter can be read at any time. */
static void counter_is_read_at_once(void)
{
	size_t bytes = 2 * (size_t)sysconf(_SC_PAGESIZE);
	int fd = (int)(intptr_t)join(start(makes_counter, NULL));
	uint64_t count;
	void *samples;

	if (fd < 0)
		return; /* not for everybody */
	samples = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (samples != MAP_FAILED) {
		CHECK(read(fd, &count, sizeof(count)) >= 0);
		munmap(samples, bytes);
	}
	close(fd);
}

/* So is an answer about a file that somebody wants to open: the descriptor is never ready to be written. */
static void *opens(void *path)
{
	int fd = open(path, O_RDONLY);

	CHECK(fd >= 0);
	close(fd);
	return NULL;
}

static void answer_is_written_at_once(void)
{
	char path[] = "/tmp/weft-fanotify-XXXXXX";
	int file = CHECK_SYS(mkstemp(path)), fd = fanotify_init(FAN_CLASS_CONTENT, O_RDONLY);
	struct fanotify_event_metadata event;
	struct fanotify_response answer = { .response = FAN_ALLOW };
	pthread_t t;

	close(file);
	if (fd >= 0 && fanotify_mark(fd, FAN_MARK_ADD, FAN_OPEN_PERM, AT_FDCWD, path) == 0) {
		t = start(opens, path);
		CHECK_EQ(read(fd, &event, sizeof(event)), sizeof(event));
		answer.fd = event.fd;
		CHECK_EQ(write(fd, &answer, sizeof(answer)), sizeof(answer));
		close(event.fd);
		join(t);
	}
	if (fd >= 0)
		close(fd);
	unlink(path);
}

int main(void)
{
	pthread_t t[4];
	uint64_t value = 1;

	ping = (int)CHECK_SYS(eventfd(0, 0));
	pong = (int)CHECK_SYS(eventfd(0, 0));
	t[0] = start(answers, NULL);
	for (uint64_t i = 1; i <= ROUNDS; i++) {
		CHECK_EQ(write(ping, &i, sizeof(i)), sizeof(i));
		CHECK_EQ(read(pong, &value, sizeof(value)), sizeof(value));
		CHECK_EQ(value, i);
	}
	join(t[0]);
	close(ping);
	ping = (int)CHECK_SYS(eventfd(0, EFD_SEMAPHORE));
	for (int i = 0; i < 4; i++)
		t[i] = start(takes_units, NULL);
	for (int i = 0; i < 4; i++) {
		value = 100;
		CHECK_EQ(write(ping, &value, sizeof(value)), sizeof(value));
	}
	for (int i = 0; i < 4; i++)
		join(t[i]);
	ok("eventfd, counting and as a semaphore");

	struct itimerspec spec = { .it_value.tv_nsec = 20 * MS, .it_interval.tv_nsec = 2 * MS };
	int timer = (int)CHECK_SYS(timerfd_create(CLOCK_MONOTONIC, 0));
	int64_t before = now_ns();
	uint64_t ticks = 0;
	CHECK_SYS(timerfd_settime(timer, 0, &spec, NULL));
	while (ticks < 10) {
		CHECK_EQ(read(timer, &value, sizeof(value)), sizeof(value));
		CHECK(value >= 1);
		ticks += value;
	}
	CHECK(now_ns() - before >= 20 * MS + 9 * 2 * MS);
	ok("timerfd");

	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN + 1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	signals = (int)CHECK_SYS(signalfd(-1, &set, 0));
	t[0] = start(reads_signals, NULL);
	for (int i = 0; i < 3; i++) {
		let_others_block();
		CHECK_SYS(sigqueue(getpid(), SIGRTMIN + 1, (union sigval){ .sival_int = 100 + i }));
	}
	join(t[0]);
	ok("signalfd read by a thread");

	counter_is_read_at_once();
	answer_is_written_at_once();
	ok("what poll() does not tell");
	return finish();
}
