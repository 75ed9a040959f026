// SPDX-License-Identifier: Apache-2.0
/* Reading, writing, sending, receiving, and the calls that make descriptors: good and bad arguments. */
#include "show.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

static void *calls(void *arg)
{
	int fds[2], sv[2];
	char b[64];
	struct iovec v[2] = { { b, 8 }, { b, 8 } };
	SHOW(pipe2(fds, 0));
	SHOW(socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
	SHOW(CALL(read, -1, b, 1));
	SHOW(CALL(read, 1000, b, 1));
	SHOW(CALL(read, fds[0], b, 0));
	SHOW(CALL(read, fds[1], b, 1));
	SHOW(CALL(write, fds[0], b, 1));
	SHOW(CALL(write, fds[1], b, 0));
	SHOW(CALL(write, fds[1], BAD, 1));
	SHOW(CALL(write, fds[1], KERNEL, 1));
	SHOW(CALL(write, fds[1], "abcdefgh", 8));
	SHOW(CALL(read, fds[0], BAD, 1));
	SHOW(CALL(read, fds[0], KERNEL, 1));
	SHOW(CALL(read, fds[0], NOT_CANONICAL, 1));
	SHOW(CALL(read, fds[0], b, -1));
	SHOW(CALL(write, fds[1], "abcdefgh", 8));
	SHOW(CALL(readv, fds[0], v, 0));
	SHOW(CALL(readv, fds[0], v, -1));
	SHOW(CALL(readv, fds[0], v, 2000));
	SHOW(CALL(readv, fds[0], BAD, 1));
	v[1].iov_len = -1;
	SHOW(CALL(readv, fds[0], v, 2));
	SHOW(CALL(writev, fds[1], v, 2));
	v[1].iov_len = 8;
	SHOW(CALL(writev, fds[1], v, 2));
	SHOW(CALL(writev, fds[1], BAD, 2));
	SHOW(CALL(writev, fds[1], v, -1));
	SHOW(CALL(writev, fds[1], v, 1025));
	SHOW(CALL(writev, fds[1], v, 0));
	v[1].iov_base = BAD;
	SHOW(CALL(writev, fds[1], v, 2));
	SHOW(CALL(readv, fds[0], v, 2));
	SHOW(CALL(readv, 1000, v, 2));
	SHOW(CALL(read, fds[0], b, 64));

	SHOW(CALL(preadv, fds[0], v, 1, 0, 0));
	SHOW(CALL(pread64, fds[0], b, 1, 0));
	SHOW(CALL(pwrite64, fds[1], b, 1, 0));
	SHOW(CALL(pwritev, fds[1], v, 1, 0, 0));
	SHOW(CALL(preadv2, fds[0], v, 1, 0, 0, 0));
	SHOW(CALL(preadv2, fds[0], v, 1, -1, -1, 0xffff));
	SHOW(CALL(recvfrom, sv[0], b, 1, MSG_DONTWAIT, NULL, NULL));
	SHOW(CALL(recvfrom, sv[0], BAD, 1, MSG_DONTWAIT, NULL, NULL));
	SHOW(CALL(recvfrom, 1000, b, 1, 0, NULL, NULL));
	SHOW(CALL(recvfrom, fds[0], b, 1, 0, NULL, NULL));
	SHOW(CALL(sendto, sv[1], "xyz", 3, 0, NULL, 0));
	SHOW(CALL(recvfrom, sv[0], BAD, 3, 0, NULL, NULL));
	SHOW(CALL(recvfrom, sv[0], b, 3, 0, BAD, BAD));
	SHOW(CALL(recvfrom, sv[0], b, 3, MSG_DONTWAIT, b, BAD));
	SHOW(CALL(sendto, sv[1], BAD, 3, 0, NULL, 0));
	SHOW(CALL(sendto, sv[1], b, 3, 0, BAD, 16));
	SHOW(CALL(sendto, sv[1], b, 3, 0, b, -1));
	SHOW(CALL(sendto, 1000, b, 3, 0, NULL, 0));
	SHOW(CALL(sendto, fds[1], b, 3, 0, NULL, 0));
	SHOW(CALL(sendto, sv[1], b, 3, MSG_OOB, NULL, 0));
	SHOW(CALL(recvfrom, sv[0], b, 64, MSG_DONTWAIT | MSG_PEEK, NULL, NULL));
	SHOW(CALL(recvfrom, sv[0], b, 2, MSG_PEEK, NULL, NULL));
	SHOW(CALL(recvfrom, sv[0], b, 64, MSG_TRUNC, NULL, NULL));
	SHOW(CALL(recvfrom, sv[0], b, 4, MSG_ERRQUEUE | MSG_DONTWAIT, NULL, NULL));
	SHOW(CALL(recvfrom, sv[0], b, 4, MSG_OOB | MSG_DONTWAIT, NULL, NULL));
	struct msghdr m = { 0 };
	SHOW(CALL(recvmsg, sv[0], BAD, 0));
	SHOW(CALL(recvmsg, sv[0], &m, MSG_DONTWAIT));
	SHOW(CALL(sendmsg, sv[1], BAD, 0));
	SHOW(CALL(sendmsg, sv[1], &m, 0));
	m.msg_iov = BAD;
	m.msg_iovlen = 1;
	SHOW(CALL(sendmsg, sv[1], &m, 0));
	SHOW(CALL(recvmsg, sv[0], &m, MSG_DONTWAIT));
	m.msg_iovlen = 100000;
	SHOW(CALL(sendmsg, sv[1], &m, 0));
	m.msg_iovlen = 0;
	m.msg_control = BAD;
	m.msg_controllen = 64;
	SHOW(CALL(sendmsg, sv[1], &m, 0));
	SHOW(CALL(recvmsg, 1000, &m, 0));
	SHOW(CALL(recvmmsg, sv[0], BAD, 1, MSG_DONTWAIT, NULL));
	SHOW(CALL(recvmmsg, sv[0], &m, 0, MSG_DONTWAIT, NULL));
	SHOW(CALL(sendmmsg, sv[0], BAD, 1, 0));
	SHOW(CALL(sendmmsg, sv[0], BAD, 0, 0));
	SHOW(CALL(sendmmsg, 1000, BAD, 1, 0));
	SHOW(CALL(recvmmsg, 1000, BAD, 1, 0, NULL));
	SHOW(CALL(recvmmsg, sv[0], BAD, 1, MSG_DONTWAIT, BAD));
	SHOW(CALL(recvmmsg, sv[0], b, 1, 0, &(struct timespec){ 0, 1000000000 }));
	struct sockaddr_un un = { .sun_family = AF_UNIX, .sun_path = "/nonexistent/x" };
	int s = socket(AF_UNIX, SOCK_STREAM, 0);
	SHOW(CALL(connect, s, &un, sizeof(un)));
	SHOW(CALL(connect, s, BAD, 16));
	SHOW(CALL(connect, s, &un, -1));
	SHOW(CALL(connect, 1000, &un, sizeof(un)));
	SHOW(CALL(connect, fds[0], &un, sizeof(un)));
	SHOW(CALL(accept, s, NULL, NULL));
	SHOW(CALL(accept, 1000, NULL, NULL));
	SHOW(CALL(accept, fds[0], NULL, NULL));
	SHOW(CALL(accept4, s, NULL, NULL, 77));
	SHOW(CALL(accept4, sv[0], NULL, NULL, 0));
	SHOW(CALL(read, s, b, 1));
	SHOW(CALL(write, s, b, 0));
	SHOW(CALL(recvfrom, s, b, 1, 0, NULL, NULL));
	SHOW(CALL(socket, 77, 1, 0));
	SHOW(CALL(socket, AF_UNIX, 77, 0));
	SHOW(CALL(socketpair, AF_UNIX, SOCK_STREAM, 0, BAD));
	SHOW(CALL(pipe, BAD));
	SHOW(CALL(pipe2, fds, 77));
	SHOW(CALL(setsockopt, s, SOL_SOCKET, SO_RCVTIMEO, BAD, 16));
	SHOW(CALL(setsockopt, s, SOL_SOCKET, SO_RCVTIMEO, b, 3));
	SHOW(CALL(setsockopt, 1000, SOL_SOCKET, SO_RCVTIMEO, b, 16));
	SHOW(CALL(setsockopt, fds[0], SOL_SOCKET, SO_RCVTIMEO, b, 16));
	SHOW(CALL(dup, -1));
	SHOW(CALL(dup2, 1000, 1001));
	SHOW(CALL(dup2, fds[0], -1));
	SHOW(CALL(dup2, fds[0], 1 << 30));
	SHOW(CALL(dup2, fds[0], fds[0]));
	SHOW(CALL(dup3, fds[0], fds[0], 0));
	SHOW(CALL(dup3, fds[0], fds[1], 77));
	SHOW(CALL(close, -1));
	SHOW(CALL(close, 1000));
	SHOW(CALL(close_range, 5, 4, 0));
	SHOW(CALL(close_range, 1000, 1001, 77));
	SHOW(CALL(close_range, 1000, 2000, 0));
	SHOW(CALL(close_range, 1000, 2000, 4));
	SHOW(CALL(fcntl, 1000, F_GETFL));
	SHOW(CALL(fcntl, fds[0], 77777));
	SHOW(CALL(fcntl, fds[0], F_SETFL, O_NONBLOCK));
	SHOW(CALL(read, fds[0], b, 64));
	SHOW(CALL(read, fds[0], b, 64));
	SHOW(CALL(fcntl, fds[0], F_DUPFD, -1));
	SHOW(CALL(fcntl, fds[0], F_DUPFD, 1 << 30));
	SHOW(CALL(fcntl, fds[0], F_SETLKW, BAD));
	SHOW(CALL(fcntl, fds[0], F_SETOWN, other_tid));
	SHOW(CALL(fcntl, fds[0], F_SETOWN, getpid()));
	int own[2] = { 0, my_tid() };
	SHOW(CALL(fcntl, fds[0], F_SETOWN_EX, own));
	own[1] = other_tid;
	SHOW(CALL(fcntl, fds[0], F_SETOWN_EX, own));
	own[1] = dead_tid;
	SHOW(CALL(fcntl, fds[0], F_SETOWN_EX, own));
	own[1] = 0;
	SHOW(CALL(fcntl, fds[0], F_GETOWN_EX, own));
	SHOW(CALL(flock, 1000, LOCK_EX));
	SHOW(CALL(flock, fds[0], 77));
	SHOW(CALL(ioctl, 1000, FIONBIO, b));
	SHOW(CALL(ioctl, fds[0], FIONBIO, BAD));
	SHOW(CALL(ioctl, fds[0], 0x12345678, b));
	int n = 0;
	SHOW(CALL(ioctl, fds[0], FIONBIO, &n));
	SHOW(CALL(ioctl, fds[0], FIONREAD, &n));
	signal(SIGPIPE, SIG_IGN);
	close(fds[0]);
	SHOW(CALL(write, fds[1], "a", 1));
	SHOW(CALL(writev, fds[1], (struct iovec[]){ { b, 1 } }, 1));
	close(sv[0]);
	SHOW(CALL(sendto, sv[1], b, 1, 0, NULL, 0));
	SHOW(CALL(read, sv[1], b, 1));
	SHOW(CALL(sendto, sv[1], b, 1, MSG_NOSIGNAL, NULL, 0));
	SHOW(CALL(recvfrom, sv[1], b, 1, MSG_WAITALL, NULL, NULL));
	SHOW(CALL(openat, AT_FDCWD, BAD, 0));
	SHOW(CALL(openat, AT_FDCWD, NULL, 0));
	SHOW(CALL(open, KERNEL, 0));
	SHOW(CALL(openat, 1000, "x", 0));
	SHOW(CALL(openat, AT_FDCWD, "/nonexistent", 0));
	SHOW(CALL(open, "/proc/self/task/1/comm", 0));
	SHOW(CALL(open, "/proc/self/task/99999999999/comm", 0));
	SHOW(CALL(open, "/proc/self/task/x/comm", 0));
	char path[64];
	snprintf(path, 64, "/proc/self/task/%d/comm", dead_tid);
	SHOW(CALL(open, path, 0));
	fflush(stdout);
	_exit(finish());
	return arg;
}

int main(void)
{
	return show_in_thread(calls);
}
