// SPDX-License-Identifier: Apache-2.0
/*
 * An event loop that is the only busy thread of its program: its waits may be made in the kernel as they are. Events,
 * times, signals, cancellation and other threads' work must find it all the same, again and again.
 *
 * With an argument another thread waits for a descriptor meanwhile, until the end.
 */
#include <sys/epoll.h>
#include <sys/socket.h>

#include "check.h"

#define ROUNDS 2000

static int set, ping[2], pong[2], late[2];

static void add(int fd, uint32_t events, uint32_t data)
{
	struct epoll_event e = { .events = events, .data.u32 = data };

	CHECK_SYS(epoll_ctl(set, EPOLL_CTL_ADD, fd, &e));
}

/* Nobody of this process: it must not keep a worker awake. */
static pid_t start_peer(void)
{
	pid_t pid = fork();
	char c;

	CHECK_SYS(pid);
	if (pid)
		return pid;
	close(ping[0]);
	close(pong[1]);
	while (write(ping[1], "p", 1) == 1 && read(pong[0], &c, 1) == 1)
		;
	_exit(0);
}

static void serve(int rounds)
{
	struct epoll_event e;
	char c;

	for (int i = 0; i < rounds; i++) {
		if (epoll_wait(set, &e, 1, -1) == 1 && e.data.u32 == 1) {
			CHECK_EQ(read(ping[0], &c, 1), 1);
			CHECK_EQ(write(pong[1], "q", 1), 1);
		} else {
			CHECK(!"an event of the peer");
		}
	}
}

/* In the middle of a round: nothing comes of the peer, whose last "p" was not answered. */
static void *loops_in_silence(void *arg)
{
	struct epoll_event e;
	char c;

	serve(100);
	CHECK_EQ(epoll_wait(set, &e, 1, -1), 1);
	CHECK_EQ(read(ping[0], &c, 1), 1);
	(void)!write(late[1], "r", 1); /* ready */
	for (;;) {
		int n = epoll_wait(set, &e, 1, -1);

		if (n == 1 && e.data.u32 == 2)
			break;
		CHECK(n == -1 && errno == EINTR);
	}
	(void)!write(pong[1], "q", 1);
	return arg;
}

static void wait_for_silence(void)
{
	char c;

	CHECK_EQ(read(late[0], &c, 1), 1);
	let_others_block();
}

static int nr_signals;

static void on_signal(int sig)
{
	(void)sig;
	ADD(&nr_signals, 1);
}

static void times_out(void)
{
	int64_t began = now_ns();
	struct epoll_event e;
	int empty = (int)CHECK_SYS(epoll_create1(0));

	CHECK_EQ(epoll_wait(empty, &e, 1, 30), 0);
	CHECK(now_ns() - began >= 30 * MS);
	close(empty);
}

static void *times_out_in_thread(void *arg)
{
	serve(50);
	times_out();
	return arg;
}

static void *computes(void *flag)
{
	while (!LOAD((int *)flag))
		;
	return flag;
}

static void *raises(void *flag)
{
	STORE((int *)flag, 1);
	return flag;
}

/* The other thread computes until a third has run, which needs the worker of the loop, or a turn. */
static void others_need_to_run(void)
{
	int flags[20] = { 0 };

	for (int i = 0; i < 20; i++) {
		pthread_t a = start(computes, &flags[i]), b = start(raises, &flags[i]);

		join(a);
		join(b);
	}
}

static void *reads_one(void *arg)
{
	char c;

	CHECK_EQ(read(((int *)arg)[0], &c, 1), 1);
	STORE((int *)arg + 2, 1);
	return arg;
}

/* A thread that waits for its own descriptor while another computes until it has read. */
static void others_need_the_poller(void)
{
	int pipe_and_flag[3] = { 0 };
	pid_t writer;

	CHECK_SYS(pipe(pipe_and_flag));
	for (int i = 0; i < 20; i++) {
		pthread_t a, b;

		STORE(&pipe_and_flag[2], 0);
		a = start(reads_one, pipe_and_flag);
		writer = fork();
		if (writer == 0) {
			sleep_ns(MS);
			_exit(write(pipe_and_flag[1], "x", 1) != 1);
		}
		b = start(computes, &pipe_and_flag[2]);
		join(a);
		join(b);
		reap(writer);
	}
}

int main(int argc, char **argv)
{
	struct sigaction sa = { .sa_handler = on_signal };
	struct epoll_event e;
	pthread_t t, beside = 0;
	pid_t peer;
	int other[2], pipe_and_flag[3] = { 0 };

	sigaction(SIGUSR1, &sa, NULL);
	CHECK_SYS(pipe(ping));
	CHECK_SYS(pipe(pong));
	CHECK_SYS(pipe(late));
	CHECK_SYS(pipe(other));
	set = (int)CHECK_SYS(epoll_create1(0));
	peer = start_peer();
	join(start(raises, &nr_signals)); /* threads exist from here on */
	STORE(&nr_signals, 0);
	add(ping[0], EPOLLIN, 1);
	CHECK_SYS(pipe(pipe_and_flag));
	if (argc > 1)
		beside = start(reads_one, pipe_and_flag);
	serve(ROUNDS);
	ok("thousands of events");
	join(start(times_out_in_thread, NULL));
	times_out();
	ok("a time");

	t = start(loops_in_silence, NULL);
	wait_for_silence();
	for (int i = 1; i <= 50; i++) {
		CHECK_PT(pthread_kill(t, SIGUSR1));
		while (LOAD(&nr_signals) < i)
			sched_yield();
	}
	ok("signals");
	others_need_to_run();
	ok("other threads' work");
	others_need_the_poller();
	ok("other threads' descriptors");
	add(other[0], EPOLLIN, 2);
	CHECK_EQ(write(other[1], "x", 1), 1);
	join(t);
	ok("a descriptor that is added while it waits");
	CHECK_EQ(epoll_wait(set, &e, 1, -1), 1);
	CHECK_SYS(epoll_ctl(set, EPOLL_CTL_DEL, other[0], NULL));

	t = start(loops_in_silence, NULL);
	wait_for_silence();
	CHECK_PT(pthread_cancel(t));
	CHECK(join(t) == PTHREAD_CANCELED);
	ok("cancellation");
	CHECK_EQ(write(pipe_and_flag[1], "x", 1), 1);
	if (argc > 1)
		join(beside);
	CHECK_SYS(kill(peer, SIGKILL));
	CHECK_EQ(waitpid(peer, NULL, 0), peer);
	return finish();
}
