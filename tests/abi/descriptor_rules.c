// SPDX-License-Identifier: Apache-2.0
/*
 * Linux's promises about descriptors, their duplicates and the sets of epoll that they are in; and that no byte is
 * lost where a signal ends a wait at the moment when data come.
 */
#include "check.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#define NUMBERS 4000

static int set;

static void add(int fd, uint64_t data)
{
	struct epoll_event e = { .events = EPOLLIN, .data.u64 = data };

	CHECK_SYS(epoll_ctl(set, EPOLL_CTL_ADD, fd, &e));
}

static void *takes_event(void *arg)
{
	struct epoll_event e = { 0 };

	CHECK_EQ(epoll_wait(set, &e, 1, -1), 1);
	CHECK_EQ(e.data.u64, (uintptr_t)arg);
	return NULL;
}

static void check_no_event(void)
{
	struct epoll_event e;

	CHECK_EQ(epoll_wait(set, &e, 1, 0), 0);
}

/* A file that is always ready has no place in a set, and is read at once. */
static void *always_ready(void *arg)
{
	const char *const paths[] = { "/dev/null", "/proc/self/exe", "/" };
	struct epoll_event e = { .events = EPOLLIN };
	char c;

	for (int i = 0; i < 3; i++) {
		int fd = (int)CHECK_SYS(open(paths[i], O_RDONLY));

		CHECK_ERRNO(epoll_ctl(set, EPOLL_CTL_ADD, fd, &e), EPERM);
		if (i < 2)
			CHECK_EQ(read(fd, &c, 1), i);
		else
			CHECK_ERRNO(read(fd, &c, 1), EISDIR);
		close(fd);
	}
	CHECK_ERRNO(epoll_ctl(set, EPOLL_CTL_ADD, set, &e), EINVAL);
	return arg;
}

/* A set knows files by number and file: the number may be closed, or mean another one, while the file lives on. */
static void duplicates(void)
{
	int p[2], other[2], copy;
	char c;
	pthread_t t;

	CHECK_SYS(pipe(p));
	copy = (int)CHECK_SYS(dup(p[0]));
	add(p[0], 7);
	t = start(takes_event, (void *)7);
	let_others_block();
	close(p[0]);
	CHECK_EQ(write(p[1], "x", 1), 1);
	join(t);
	CHECK_ERRNO(epoll_ctl(set, EPOLL_CTL_DEL, p[0], NULL), EBADF);
	takes_event((void *)7); /* nobody has read it */

	CHECK_SYS(pipe(other));
	CHECK_SYS(dup2(other[0], p[0]));
	CHECK_ERRNO(epoll_ctl(set, EPOLL_CTL_DEL, p[0], NULL), ENOENT);
	add(p[0], 8);
	CHECK_EQ(read(copy, &c, 1), 1);
	check_no_event();
	CHECK_EQ(write(other[1], "y", 1), 1);
	takes_event((void *)8);
	CHECK_EQ(read(p[0], &c, 1), 1);

	CHECK_EQ(write(p[1], "x", 1), 1);
	takes_event((void *)7);
	close(copy); /* the last descriptor of that file */
	check_no_event();
	for (int i = 0; i < 2; i++) {
		close(other[i]);
		close(p[i]);
	}
	check_no_event();
}

static void *reads_one(void *arg)
{
	char c = 0;

	CHECK_EQ(read((int)(intptr_t)arg, &c, 1), 1);
	return (void *)(intptr_t)c;
}

/* A thread that waits by one descriptor is woken though the other is closed, and the other way round. */
static void waits_by_duplicates(void)
{
	for (int i = 0; i < 2; i++) {
		int s[2], copy;
		pthread_t t;

		CHECK_SYS(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
		copy = (int)CHECK_SYS(dup(s[0]));
		t = start(reads_one, (void *)(intptr_t)(i ? s[0] : copy));
		let_others_block();
		close(i ? copy : s[0]);
		CHECK_EQ(write(s[1], "a", 1), 1);
		CHECK_EQ((intptr_t)join(t), 'a');
		CHECK_EQ(write(s[1], "b", 1), 1);
		CHECK_EQ((intptr_t)join(start(reads_one, (void *)(intptr_t)(i ? s[0] : copy))),
			 'b');
		close(i ? s[0] : copy);
		close(s[1]);
	}
}

/* Another number for the same file: what a process would get whom we sent it to. */
static int sent_around(int fd)
{
	union {
		char room[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { { 0 } };
	char byte = 0;
	struct iovec iov = { &byte, 1 };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = control.room,
			    .msg_controllen = sizeof(control.room) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	int way[2], copy = -1;

	CHECK_SYS(socketpair(AF_UNIX, SOCK_STREAM, 0, way));
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	CHECK_EQ(sendmsg(way[0], &m, 0), 1);
	CHECK_EQ(recvmsg(way[1], &m, 0), 1);
	c = CMSG_FIRSTHDR(&m);
	CHECK(c != NULL);
	if (c)
		memcpy(&copy, CMSG_DATA(c), sizeof(copy));
	close(way[0]);
	close(way[1]);
	return copy;
}

static void *writes_later(void *arg)
{
	let_others_block();
	CHECK_EQ(write((int)(intptr_t)arg, "l", 1), 1);
	return NULL;
}

/* Flags belong to the file: what is told to one descriptor holds for all, those made later included. */
static void *flags_by_duplicates(void *arg)
{
	enum {
		NONE,
		INHERITED,
		SENT,
		DUP,
		DUP2,
		DUP3,
		FCNTL,
		FCNTL_CLOEXEC,
		NR_WAYS
	};
	char c;

	for (int way = 0; way < NR_WAYS; way++) {
		int s[2], copy = 200 + way, on = 1, off = 0;
		pthread_t t;
		pid_t pid;

		CHECK_SYS(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
		/* known to wait */
		CHECK_EQ(write(s[1], "a", 1), 1);
		CHECK_EQ(read(s[0], &c, 1), 1);
		switch (way) {
		case NONE:
			copy = s[0];
			break;
		case INHERITED:
			copy = s[0];
			pid = fork();
			if (pid == 0)
				_exit(fcntl(s[0], F_SETFL, O_NONBLOCK) ? 1 : 0);
			CHECK_SYS(pid);
			reap(pid);
			CHECK_ERRNO(read(s[0], &c, 1), EAGAIN);
			break;
		case SENT:
			copy = sent_around(s[0]);
			break;
		case DUP:
			copy = (int)CHECK_SYS(dup(s[0]));
			break;
		case DUP2:
			CHECK_SYS(dup2(s[0], copy));
			break;
		case DUP3:
			CHECK_SYS(dup3(s[0], copy, O_CLOEXEC));
			break;
		case FCNTL:
			copy = (int)CHECK_SYS(fcntl(s[0], F_DUPFD, 100));
			break;
		case FCNTL_CLOEXEC:
			copy = (int)CHECK_SYS(fcntl(s[0], F_DUPFD_CLOEXEC, 100));
			break;
		}
		CHECK_SYS(fcntl(copy, F_SETFL, O_NONBLOCK));
		CHECK_ERRNO(read(s[0], &c, 1), EAGAIN);
		CHECK_ERRNO(read(copy, &c, 1), EAGAIN);
		CHECK_SYS(ioctl(s[0], FIONBIO, &off));
		t = start(writes_later, (void *)(intptr_t)s[1]);
		CHECK_EQ(read(s[0], &c, 1), 1); /* it waits again */
		join(t);
		CHECK_EQ(write(s[1], "b", 1), 1);
		CHECK_EQ(read(copy, &c, 1), 1);
		CHECK_SYS(ioctl(s[0], FIONBIO, &on));
		CHECK_ERRNO(read(s[0], &c, 1), EAGAIN);
		CHECK_ERRNO(read(copy, &c, 1), EAGAIN);
		if (copy != s[0])
			close(copy);
		CHECK_SYS(fcntl(s[0], F_SETFL, 0));
		CHECK_EQ(write(s[1], "c", 1), 1);
		CHECK_EQ(read(s[0], &c, 1), 1);
		CHECK_SYS(ioctl(s[0], FIONBIO, &on));
		CHECK_ERRNO(read(s[0], &c, 1), EAGAIN);
		close(s[0]);
		close(s[1]);
	}
	return arg;
}

static int is_over, nr_signals;

static void on_signal(int sig)
{
	(void)sig;
	ADD(&nr_signals, 1);
}

/* The numbers come in order and whole, whatever ended the calls in between. */
static void *takes_numbers(void *arg)
{
	int fd = (int)(intptr_t)arg;
	uint32_t number = 0;
	size_t len = 0;

	for (uint32_t want = 0; want < NUMBERS;) {
		ssize_t n = read(fd, (char *)&number + len, sizeof(number) - len);

		if (n == -1) {
			CHECK_EQ(errno, EINTR);
			continue;
		}
		CHECK(n > 0);
		len += (size_t)n;
		if (len < sizeof(number))
			continue;
		CHECK_EQ(number, want);
		want++;
		len = 0;
	}
	STORE(&is_over, 1);
	return NULL;
}

static void *gives_numbers(void *arg)
{
	int fd = (int)(intptr_t)arg;

	for (uint32_t number = 0; number < NUMBERS; number++) {
		CHECK_EQ(write(fd, &number, 2), 2);
		if (number % 3 == 0)
			sched_yield();
		CHECK_EQ(write(fd, (char *)&number + 2, 2), 2);
		if (number % 5 == 0)
			sched_yield();
	}
	return NULL;
}

static void signals_and_data(int from, int to)
{
	struct sigaction sa = { .sa_handler = on_signal };
	pthread_t reader, writer;

	CHECK_SYS(sigaction(SIGUSR1, &sa, NULL));
	STORE(&is_over, 0);
	reader = start(takes_numbers, (void *)(intptr_t)from);
	CHECK_PT(pthread_kill(reader, SIGUSR1)); /* one at least, however late the next is */
	writer = start(gives_numbers, (void *)(intptr_t)to);
	while (!LOAD(&is_over)) {
		CHECK_PT(pthread_kill(reader, SIGUSR1));
		sched_yield();
	}
	join(reader);
	join(writer);
	CHECK(LOAD(&nr_signals) > 0);
	close(from);
	close(to);
}

int main(void)
{
	int fds[2];

	set = (int)CHECK_SYS(epoll_create1(0));
	join(start(always_ready, NULL));
	ok("what is always ready");
	duplicates();
	ok("a set and the duplicates of a file in it");
	waits_by_duplicates();
	ok("a wait by one of two duplicates");
	join(start(flags_by_duplicates, NULL));
	ok("flags told to a duplicate");
	CHECK_SYS(pipe(fds));
	signals_and_data(fds[0], fds[1]);
	CHECK_SYS(socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
	signals_and_data(fds[0], fds[1]);
	ok("signals and data at the same time");
	return finish();
}
