// SPDX-License-Identifier: Apache-2.0
/*
 * A change of a descriptor's flags or options holds at once, whoever tells it and through whichever number: O_NONBLOCK
 * and timeouts set between two reads. And no byte and no end of a stream is overlooked after a read
 * that got less than it asked for.
 */
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include "tcp.h"

#define NR_ROUNDS 3000

static int sock[2]; /* two ends of one TCP connection, made by tcp_pair() */

static void close_pair(void)
{
	close(sock[0]);
	close(sock[1]);
}

static void *says_later(void *arg)
{
	let_others_block();
	CHECK_EQ(send(sock[1], arg, strlen(arg), 0), strlen(arg));
	return NULL;
}

/* A read that has to wait, and gets less than it asked for. */
static void read_waiting(const char *text)
{
	pthread_t t = start(says_later, (void *)text);
	char buf[64];
	ssize_t len = read(sock[0], buf, sizeof(buf));

	CHECK_EQ(len, strlen(text));
	CHECK(len < 0 || !memcmp(buf, text, (size_t)len));
	join(t);
}

static void set_flags(int fd, int add, int remove)
{
	int flags = (int)CHECK_SYS(fcntl(fd, F_GETFL));

	CHECK_SYS(fcntl(fd, F_SETFL, (flags | add) & ~remove));
}

static void expect_nonblocking(void)
{
	char c;

	CHECK_ERRNO(read(sock[0], &c, 1), EAGAIN);
	CHECK_ERRNO(recv(sock[0], &c, 1, 0), EAGAIN);
}

static void set_timeout(int fd, int ms)
{
	struct timeval tv = { .tv_usec = ms * 1000 };

	CHECK_SYS(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)));
}

static void expect_timeout(int ms)
{
	int64_t before = now_ns();
	char c;

	CHECK_ERRNO(read(sock[0], &c, 1), EAGAIN);
	CHECK(now_ns() - before >= (ms - 1) * MS);
}

static void told_by_itself(void)
{
	int on = 1, off = 0;

	read_waiting("blocking at first");
	set_flags(sock[0], O_NONBLOCK, 0);
	expect_nonblocking();
	set_flags(sock[0], 0, O_NONBLOCK);
	read_waiting("blocking again");
	CHECK_SYS(ioctl(sock[0], FIONBIO, &on));
	expect_nonblocking();
	CHECK_SYS(ioctl(sock[0], FIONBIO, &off));
	read_waiting("and again");
	set_timeout(sock[0], 20);
	expect_timeout(20);
	set_timeout(sock[0], 40);
	expect_timeout(40);
	set_timeout(sock[0], 0);
	read_waiting("without a timeout");
	ok("flags and timeouts of a descriptor");
}

static void told_by_a_duplicate(void)
{
	int other;

	read_waiting("before there is another number");
	other = (int)CHECK_SYS(dup(sock[0]));
	read_waiting("with another number");
	set_flags(other, O_NONBLOCK, 0);
	expect_nonblocking();
	set_flags(other, 0, O_NONBLOCK);
	set_timeout(other, 20);
	expect_timeout(20);
	set_timeout(other, 0);
	close(other);
	read_waiting("alone again");
	ok("flags and timeouts of its duplicate");
}

static void told_by_a_child(void)
{
	pid_t pid;

	read_waiting("before the fork");
	pid = fork();
	if (pid == 0) {
		set_flags(sock[0], O_NONBLOCK, 0);
		_exit(LOAD(&abi_failures) != 0);
	}
	CHECK_SYS(pid);
	reap(pid);
	expect_nonblocking();
	set_flags(sock[0], 0, O_NONBLOCK);
	read_waiting("after it");
	ok("flags set by a child process");
}

/* Passed through a socket: a second number of the same file, which no call names together with it. */
static void told_by_a_copy_sent_away(void)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = { (char[]){ 'x' }, 1 };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = sizeof(control) };
	int pair[2], copy;

	read_waiting("before it is sent");
	CHECK_SYS(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	control.head = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(int)),
					 .cmsg_level = SOL_SOCKET,
					 .cmsg_type = SCM_RIGHTS };
	memcpy(CMSG_DATA(&control.head), &sock[0], sizeof(int));
	CHECK_EQ(sendmsg(pair[0], &m, 0), 1);
	CHECK_EQ(recvmsg(pair[1], &m, 0), 1);
	memcpy(&copy, CMSG_DATA(&control.head), sizeof(int));
	set_flags(copy, O_NONBLOCK, 0);
	expect_nonblocking();
	set_flags(copy, 0, O_NONBLOCK);
	close(copy);
	close(pair[0]);
	close(pair[1]);
	ok("flags of a copy that was sent away");
}

static void *answers(void *arg)
{
	char buf[64];
	ssize_t len;

	while ((len = recv(sock[1], buf, sizeof(buf), 0)) > 0)
		CHECK_EQ(send(sock[1], buf, (size_t)len, 0), len);
	return arg;
}

/* Every read gets less than it asked for; the answer may come before, during and after the next read. */
static void ping_pong(void)
{
	pthread_t t = start(answers, NULL);
	char buf[64];
	long good = 0;

	for (int i = 0; i < NR_ROUNDS; i++) {
		size_t want = 1 + (size_t)i % 5, got = 0;

		CHECK_EQ(send(sock[0], "abcde", want, 0), want);
		while (got < want) {
			/* In pieces of two: some reads get all that they asked for, some do not. */
			ssize_t len = i % 2 ? read(sock[0], buf, sizeof(buf))
					    : recv(sock[0], buf, 2, 0);

			if (len <= 0)
				break;
			got += (size_t)len;
		}
		good += got == want;
	}
	CHECK_EQ(good, NR_ROUNDS);
	CHECK_SYS(shutdown(sock[0], SHUT_WR));
	join(t);
	ok("short reads in turn");
}

/* The socket has another owner, who only holds it. */
static void shared_in_turn(void)
{
	int end[2];
	pid_t pid;
	char c;

	CHECK_SYS(pipe(end));
	tcp_pair(sock);
	pid = (pid_t)CHECK_SYS(fork());
	if (pid == 0) {
		close(end[1]);
		_exit(read(end[0], &c, 1) != 0);
	}
	ping_pong();
	close(end[0]);
	close(end[1]);
	reap(pid);
	close_pair();
}

/* Each owner gets what is sent while the other one has no call on it. */
static void shared_by_readers(void)
{
	int order[2], done[2];
	char c = 0, buf[64];
	pid_t pid;

	CHECK_SYS(pipe(order));
	CHECK_SYS(pipe(done));
	tcp_pair(sock);
	read_waiting("known to the poller");
	pid = (pid_t)CHECK_SYS(fork());
	if (pid == 0) {
		close(order[1]);
		while (read(order[0], &c, 1) == 1) {
			CHECK_EQ(read(sock[0], buf, sizeof(buf)), 5);
			CHECK_EQ(write(done[1], &c, 1), 1);
		}
		_exit(LOAD(&abi_failures) != 0);
	}
	for (int i = 0; i < 20; i++) {
		read_waiting("mine");
		CHECK_EQ(send(sock[1], "yours", 5, 0), 5);
		CHECK_EQ(write(order[1], &c, 1), 1);
		CHECK_EQ(read(done[0], &c, 1), 1);
	}
	read_waiting("mine at last");
	close(order[1]);
	reap(pid);
	for (int i = 0; i < 2; i++)
		close(done[i]);
	close(order[0]);
	close_pair();
	ok("data for one owner or the other");
}

static void end_with_the_data(void)
{
	char buf[64];

	for (int i = 0; i < 50; i++) {
		tcp_pair(sock);
		read_waiting("known to the poller");
		CHECK_EQ(send(sock[1], "end", 3, 0), 3);
		if (i % 2)
			CHECK_SYS(shutdown(sock[1], SHUT_WR));
		else
			close(sock[1]);
		CHECK_EQ(read(sock[0], buf, sizeof(buf)), 3);
		CHECK_EQ(read(sock[0], buf, sizeof(buf)), 0);
		CHECK_EQ(recv(sock[0], buf, sizeof(buf), 0), 0);
		close(sock[0]);
		if (i % 2)
			close(sock[1]);
	}
	ok("the end of a stream that came with the data");
}

/* A read stops before urgent data, though there is more behind it. */
static void urgent_data(void)
{
	char buf[64];

	tcp_pair(sock);
	read_waiting("known to the poller");
	CHECK_EQ(send(sock[1], "ab", 2, 0), 2);
	CHECK_EQ(send(sock[1], "!", 1, MSG_OOB), 1);
	CHECK_EQ(send(sock[1], "cd", 2, 0), 2);
	let_others_block(); /* until all of it is there */
	CHECK_EQ(read(sock[0], buf, sizeof(buf)), 2);
	CHECK_EQ(read(sock[0], buf, sizeof(buf)), 2);
	CHECK(!memcmp(buf, "cd", 2));
	close_pair();
	ok("data behind urgent data");
}

/* Peeking takes nothing away. */
static void peeking(void)
{
	char buf[64];

	tcp_pair(sock);
	read_waiting("known to the poller");
	CHECK_EQ(send(sock[1], "peek", 4, 0), 4);
	CHECK_EQ(recv(sock[0], buf, sizeof(buf), MSG_PEEK), 4);
	CHECK_EQ(recv(sock[0], buf, sizeof(buf), MSG_PEEK), 4);
	CHECK_EQ(recv(sock[0], buf, sizeof(buf), 0), 4);
	close_pair();
	ok("short reads that only peek");
}

/* Facts of a socket do not hold for the pipe that got its number. */
static void reused_number(void)
{
	char buf[64];
	int fds[2], old, below;

	tcp_pair(sock);
	old = sock[1];
	CHECK_EQ(write(sock[0], "x", 1), 1);
	CHECK_EQ(read(old, buf, sizeof(buf)), 1);
	below = (int)CHECK_SYS(dup(0)); /* the number that the listening socket had */
	close_pair();
	CHECK_SYS(pipe(fds));
	CHECK_EQ(fds[0], old);
	CHECK_EQ(write(fds[1], "pipe", 4), 4);
	CHECK_EQ(read(fds[0], buf, sizeof(buf)), 4);
	set_flags(fds[0], O_NONBLOCK, 0);
	CHECK_ERRNO(read(fds[0], buf, 1), EAGAIN);
	close(fds[0]);
	close(fds[1]);
	close(below);
	ok("a number that was a socket and is a pipe");
}

static void *all(void *arg)
{
	tcp_pair(sock);
	told_by_itself();
	told_by_a_child();
	told_by_a_copy_sent_away();
	told_by_a_duplicate();
	close_pair();
	tcp_pair(sock);
	ping_pong();
	close_pair();
	shared_in_turn();
	shared_by_readers();
	end_with_the_data();
	urgent_data();
	peeking();
	reused_number();
	return arg;
}

int main(void)
{
	join(start(all, NULL));
	return finish();
}
