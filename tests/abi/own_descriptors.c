// SPDX-License-Identifier: Apache-2.0
/*
 * Threads with a table of descriptors of their own, which they share with those that they make: the same number means another
 * file there, and neither side disturbs the other's waits or sees what the other's files were told. A thread that is alone keeps the
 * table that it has.
 */
#include "check.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>

#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE 2
#endif

static int common[2];       /* sockets, in the table of the process; [0] is read there */
static int own_writer;      /* in the thread's own table */
static sem_t may_feed, fed; /* the writer of the own table */
static sem_t may_go, is_done;
static int stop;

/* Made by the thread with a table of its own, so it has the same. */
static void *feeds(void *arg)
{
	for (;;) {
		sem_wait(&may_feed);
		if (LOAD(&stop))
			return arg;
		let_others_block();
		CHECK_EQ(write(own_writer, "o", 1), 1);
		sem_post(&fed);
	}
}

/* The writer writes when we wait for it. */
static void ask_for_food(void)
{
	sem_post(&may_feed);
}

static void take_own(int fd)
{
	char c = 0;

	CHECK_EQ(read(fd, &c, 1), 1);
	CHECK_EQ(c, 'o');
	sem_wait(&fed);
}

static void wait_in_every_way(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct epoll_event e = { .events = EPOLLIN };
	int set = (int)CHECK_SYS(epoll_create1(0));
	fd_set readable;

	CHECK_EQ(poll(&p, 1, 0), 0);
	ask_for_food();
	take_own(fd);
	ask_for_food();
	CHECK_EQ(poll(&p, 1, -1), 1);
	CHECK_EQ(p.revents, POLLIN);
	take_own(fd);
	CHECK_EQ(poll(&p, 1, 20), 0);

	FD_ZERO(&readable);
	FD_SET(fd, &readable);
	ask_for_food();
	CHECK_EQ(select(fd + 1, &readable, NULL, NULL, NULL), 1);
	take_own(fd);

	CHECK_SYS(epoll_ctl(set, EPOLL_CTL_ADD, fd, &e));
	ask_for_food();
	CHECK_EQ(epoll_wait(set, &e, 1, -1), 1);
	take_own(fd);
	CHECK_EQ(epoll_wait(set, &e, 1, 20), 0);
	CHECK_SYS(close(set));
}

static pthread_t interrupted;
static int is_through;

static void on_signal(int sig)
{
	(void)sig;
}

static void *interrupts(void *arg)
{
	while (!LOAD(&is_through)) {
		pthread_kill(interrupted, SIGUSR1);
		sleep_ns(MS);
	}
	return arg;
}

static void wait_for_signals(int fd)
{
	struct sigaction action = { .sa_handler = on_signal };
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct epoll_event e = { .events = EPOLLIN };
	int set = (int)CHECK_SYS(epoll_create1(0));
	fd_set readable;
	pthread_t other;
	char c;

	FD_ZERO(&readable);
	FD_SET(fd, &readable);
	CHECK_SYS(sigaction(SIGUSR1, &action, NULL));
	CHECK_SYS(epoll_ctl(set, EPOLL_CTL_ADD, fd, &e));
	interrupted = pthread_self();
	other = start(interrupts, NULL);
	CHECK_ERRNO(poll(&p, 1, -1), EINTR);
	CHECK_ERRNO(select(fd + 1, &readable, NULL, NULL, NULL), EINTR);
	CHECK_ERRNO(epoll_wait(set, &e, 1, -1), EINTR);
	CHECK_ERRNO(read(fd, &c, 1), EINTR);
	STORE(&is_through, 1);
	join(other);
	STORE(&is_through, 0);
	CHECK_SYS(close(set));
}

static void *connects(void *arg)
{
	struct sockaddr *to = arg;
	int fd = (int)CHECK_SYS(socket(AF_INET, SOCK_STREAM, 0));
	char c = 0;

	let_others_block();
	CHECK_SYS(connect(fd, to, sizeof(struct sockaddr_in)));
	CHECK_EQ(recv(fd, &c, 1, 0), 1);
	CHECK_EQ(c, 'o');
	CHECK_SYS(close(fd));
	return arg;
}

static void serve(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t bytes = sizeof(at);
	int listener = (int)CHECK_SYS(socket(AF_INET, SOCK_STREAM, 0)), fd;
	pthread_t client;

	CHECK_SYS(bind(listener, (struct sockaddr *)&at, bytes));
	CHECK_SYS(listen(listener, 1));
	CHECK_SYS(getsockname(listener, (struct sockaddr *)&at, &bytes));
	client = start(connects, &at);
	fd = (int)CHECK_SYS(accept(listener, NULL, NULL));
	let_others_block();
	CHECK_EQ(send(fd, "o", 1, 0), 1);
	join(client);
	CHECK_SYS(close(fd));
	CHECK_SYS(close(listener));
}

/* Its own number common[0] is closed, and then a pipe's. */
static void *has_its_own(void *arg)
{
	pthread_t writer;
	int ends[2];

	sem_wait(&may_go);
	if (arg)
		CHECK_SYS(syscall(SYS_close_range, common[0], common[0], CLOSE_RANGE_UNSHARE));
	else
		CHECK_SYS(unshare(CLONE_FILES));
	if (!arg)
		CHECK_SYS(close(common[0]));
	CHECK_SYS(pipe(ends));
	if (ends[0] != common[0]) {
		CHECK_EQ(dup2(ends[0], common[0]), common[0]);
		close(ends[0]);
	}
	own_writer = ends[1];
	CHECK_EQ(fcntl(common[0], F_GETFL) & O_NONBLOCK, 0);
	writer = start(feeds, NULL);
	sem_post(&is_done);
	for (int i = 0; i < 3; i++)
		wait_in_every_way(common[0]);
	wait_for_signals(common[0]);
	serve();
	/* of this file only */
	CHECK_SYS(fcntl(common[0], F_SETFL, O_NONBLOCK));
	CHECK_ERRNO(read(common[0], &stop, 1), EAGAIN);
	STORE(&stop, 1);
	sem_post(&may_feed);
	join(writer);
	CHECK_SYS(close(common[0]));
	CHECK_SYS(close(own_writer));
	sem_post(&is_done);
	return arg;
}

static void *reads_common(void *arg)
{
	int *nr = arg;
	char c = 0;

	while (read(common[0], &c, 1) == 1) {
		CHECK_EQ(c, 'c');
		ADD(nr, 1);
	}
	return arg;
}

static void polls_common(void)
{
	struct pollfd p = { .fd = common[0], .events = POLLIN };

	CHECK_EQ(poll(&p, 1, 5), 0);
}

/* A thread waits on the process's file all the time. */
static void beside_a_reader(int by_close_range)
{
	pthread_t own, reader;
	int nr = 0;

	CHECK_SYS(socketpair(AF_UNIX, SOCK_STREAM, 0, common));
	reader = start(reads_common, &nr);
	CHECK_EQ(write(common[1], "c", 1), 1);
	own = start(has_its_own, by_close_range ? &stop : NULL);
	let_others_block();
	sem_post(&may_go);
	sem_wait(&is_done);
	for (int i = 2; i < 20; i++) {
		CHECK_EQ(write(common[1], "c", 1), 1);
		while (LOAD(&nr) < i)
			sched_yield();
		polls_common();
	}
	sem_wait(&is_done);
	join(own);
	CHECK_EQ(write(common[1], "c", 1), 1);
	while (LOAD(&nr) < 20)
		sched_yield();
	CHECK_SYS(shutdown(common[1], SHUT_WR));
	join(reader);
	close(common[0]);
	close(common[1]);
	STORE(&stop, 0);
}

/* The other hears what it tells a file that both have. */
static void *tells_file(void *arg)
{
	CHECK_SYS(unshare(CLONE_FILES));
	CHECK_SYS(fcntl(common[0], F_SETFL, O_NONBLOCK));
	return arg;
}

static void one_file(void)
{
	char c;

	CHECK_SYS(socketpair(AF_UNIX, SOCK_STREAM, 0, common));
	CHECK_EQ(write(common[1], "c", 1), 1);
	CHECK_EQ(read(common[0], &c, 1), 1);
	CHECK_EQ(recv(common[0], &c, 1, MSG_DONTWAIT), -1);
	join(start(tells_file, NULL));
	CHECK_ERRNO(read(common[0], &c, 1), EAGAIN);
	close(common[0]);
	close(common[1]);
}

/* Nobody else has the other end then, and the stream ends. */
static void alone(void)
{
	int ends[2];
	char c;

	CHECK_SYS(pipe(ends));
	CHECK_SYS(unshare(CLONE_FILES));
	CHECK_SYS(close(ends[1]));
	CHECK_EQ(read(ends[0], &c, 1), 0);
	CHECK_SYS(close(ends[0]));
	CHECK_SYS(pipe(ends));
	CHECK_SYS(syscall(SYS_close_range, ends[1], ends[1], CLOSE_RANGE_UNSHARE));
	CHECK_EQ(read(ends[0], &c, 1), 0);
	CHECK_SYS(close(ends[0]));
}

int main(void)
{
	sem_init(&may_feed, 0, 0);
	sem_init(&fed, 0, 0);
	sem_init(&may_go, 0, 0);
	sem_init(&is_done, 0, 0);
	beside_a_reader(0);
	ok("a table of its own by unshare");
	beside_a_reader(1);
	ok("by close_range");
	one_file();
	ok("what a file is told");
	alone();
	ok("alone");
	return finish();
}
