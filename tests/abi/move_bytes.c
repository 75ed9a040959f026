// SPDX-License-Identifier: Apache-2.0
/*
 * splice, tee, vmsplice and sendfile between threads: they wait on either side, lose nothing, and refuse what they cannot do
 * before they wait.
 */
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include "check.h"

#define TOTAL (3 << 20)

static int first[2], second[2], sock[2], file;

static unsigned char byte_at(size_t i)
{
	return (unsigned char)(i ^ i >> 8 ^ i >> 16);
}

static void *writes(void *arg)
{
	static unsigned char buf[5000];
	int fd = (int)(intptr_t)arg;

	for (size_t at = 0; at < TOTAL;) {
		size_t len = at + sizeof(buf) < TOTAL ? sizeof(buf) : TOTAL - at;

		for (size_t i = 0; i < len; i++)
			buf[i] = byte_at(at + i);
		CHECK_EQ(write(fd, buf, len), len);
		at += len;
		if (at / 1000000 != (at - len) / 1000000)
			let_others_block();
	}
	close(fd);
	return NULL;
}

static void *reads(void *arg)
{
	static unsigned char buf[7000];
	int fd = (int)(intptr_t)arg;
	size_t sum = 0, wrong = 0;
	ssize_t len;

	while ((len = read(fd, buf, sizeof(buf))) > 0) {
		for (ssize_t i = 0; i < len; i++)
			wrong += buf[i] != byte_at(sum + (size_t)i);
		sum += (size_t)len;
		if (sum / 1000000 != (sum - (size_t)len) / 1000000)
			let_others_block();
	}
	CHECK_EQ(len, 0);
	CHECK_EQ(wrong, 0);
	return (void *)sum;
}

static void *splices(void *arg)
{
	ssize_t len;

	(void)arg;
	while ((len = splice(first[0], NULL, second[1], NULL, 1 << 20, 0)) > 0)
		;
	CHECK_EQ(len, 0);
	close(second[1]);
	return NULL;
}

static void *splices_to_socket(void *arg)
{
	ssize_t len;

	(void)arg;
	while ((len = splice(first[0], NULL, sock[1], NULL, 1 << 20, SPLICE_F_MORE)) > 0)
		;
	CHECK_EQ(len, 0);
	CHECK_SYS(shutdown(sock[1], SHUT_WR));
	return NULL;
}

static void *splices_from_socket(void *arg)
{
	ssize_t len;

	(void)arg;
	while ((len = splice(sock[0], NULL, second[1], NULL, 1 << 20, 0)) > 0)
		;
	CHECK_EQ(len, 0);
	close(second[1]);
	return NULL;
}

static void *tees(void *arg)
{
	ssize_t len;
	char buf[65536];

	(void)arg;
	while ((len = tee(first[0], second[1], 60000, 0)) > 0)
		for (ssize_t left = len; left > 0;) {
			ssize_t got = read(first[0], buf, (size_t)left);

			CHECK(got > 0);
			left -= got > 0 ? got : left;
		}
	CHECK_EQ(len, 0);
	close(second[1]);
	return NULL;
}

static void *vmsplices(void *arg)
{
	static unsigned char all[TOTAL];
	struct iovec vec = { all, TOTAL };

	(void)arg;
	for (size_t i = 0; i < TOTAL; i++)
		all[i] = byte_at(i);
	while (vec.iov_len) {
		ssize_t len = vmsplice(first[1], &vec, 1, 0);

		if (len <= 0) {
			CHECK_SYS(-1);
			break;
		}
		vec.iov_base = (char *)vec.iov_base + len;
		vec.iov_len -= (size_t)len;
	}
	close(first[1]);
	return NULL;
}

static void *sends_file(void *arg)
{
	off_t at = 0;
	size_t half = TOTAL / 2;

	(void)arg;
	CHECK_EQ(sendfile(sock[1], file, &at, half), half);
	CHECK_EQ(at, half);
	CHECK_EQ(lseek(file, 0, SEEK_CUR), 0);
	CHECK_EQ(lseek(file, (off_t)half, SEEK_SET), half);
	/* More than there is: until the end of the file. */
	CHECK_EQ(sendfile(sock[1], file, NULL, TOTAL), TOTAL - half);
	CHECK_EQ(lseek(file, 0, SEEK_CUR), TOTAL);
	CHECK_EQ(sendfile(sock[1], file, NULL, TOTAL), 0);
	CHECK_SYS(shutdown(sock[1], SHUT_WR));
	return NULL;
}

/* Runs both at once and checks what reads() got. */
static void run(void *(*source)(void *), int source_fd, void *(*mover)(void *), int reader_fd)
{
	pthread_t r = start(reads, (void *)(intptr_t)reader_fd), m, s;

	if (mover)
		m = start(mover, NULL);
	if (source)
		s = start(source, (void *)(intptr_t)source_fd);
	if (source)
		join(s);
	if (mover)
		join(m);
	CHECK_EQ((intptr_t)join(r), TOTAL);
}

static void on_signal(int sig)
{
	(void)sig;
}

static void *waits_in_splice(void *arg)
{
	CHECK_ERRNO(splice(first[0], NULL, second[1], NULL, 100, 0), EINTR);
	STORE((int *)arg, 1);
	return NULL;
}

/* Nothing is in the pipe, but the kernel looks at both descriptors before it waits. */
static void refused_before_it_waits(void)
{
	int empty[2], other[2], dir = open("/", O_RDONLY), full = open("/dev/null", O_WRONLY);
	int log = open("/dev/null", O_WRONLY | O_APPEND), event = eventfd(0, 0);
	struct iovec iov = { &empty, sizeof(empty) };
	loff_t at = 0;

	CHECK_SYS(pipe(empty));
	CHECK_SYS(pipe(other));
	CHECK_ERRNO(splice(empty[0], NULL, other[0], NULL, 1, 0), EBADF);
	CHECK_ERRNO(splice(empty[1], NULL, other[1], NULL, 1, 0), EBADF);
	CHECK_ERRNO(splice(empty[0], NULL, empty[1], NULL, 1, 0), EINVAL);
	CHECK_ERRNO(splice(empty[0], &at, full, NULL, 1, 0), ESPIPE);
	CHECK_ERRNO(splice(empty[0], NULL, log, NULL, 1, 0), EINVAL);
	CHECK_ERRNO(splice(empty[0], NULL, dir, NULL, 1, 0), EBADF);
	CHECK_ERRNO(splice(empty[0], NULL, event, NULL, 1, 0), EINVAL);
	CHECK_ERRNO(splice(empty[0], NULL, -1, NULL, 1, 0), EBADF);
	CHECK_ERRNO(splice(event, NULL, full, NULL, 1, 0), EINVAL);
	CHECK_ERRNO(tee(empty[0], full, 1, 0), EINVAL);
	CHECK_ERRNO(tee(empty[0], empty[1], 1, 0), EINVAL);
	CHECK_ERRNO(tee(empty[0], other[0], 1, 0), EBADF);
	CHECK_ERRNO(vmsplice(event, &iov, 1, 0), EBADF);
	for (int i = 0; i < 2; i++) {
		close(empty[i]);
		close(other[i]);
	}
	close(dir);
	close(full);
	close(log);
	close(event);
}

int main(void)
{
	char path[] = "/tmp/weft-abi-XXXXXX";
	struct sigaction sa = { .sa_handler = on_signal };
	int is_over = 0;

	CHECK_SYS(pipe(first));
	CHECK_SYS(pipe(second));
	run(writes, first[1], splices, second[0]);
	close(first[0]);
	close(second[0]);
	ok("splice from pipe to pipe");

	CHECK_SYS(pipe(first));
	CHECK_SYS(socketpair(AF_UNIX, SOCK_STREAM, 0, sock));
	run(writes, first[1], splices_to_socket, sock[0]);
	close(first[0]);
	close(sock[0]);
	close(sock[1]);
	ok("splice from pipe to socket");

	CHECK_SYS(pipe(second));
	CHECK_SYS(socketpair(AF_UNIX, SOCK_STREAM, 0, sock));
	run(writes, sock[1], splices_from_socket, second[0]);
	close(second[0]);
	close(sock[0]);
	ok("splice from socket to pipe");

	CHECK_SYS(pipe(first));
	CHECK_SYS(pipe(second));
	run(writes, first[1], tees, second[0]);
	close(first[0]);
	close(second[0]);
	ok("tee");

	CHECK_SYS(pipe(first));
	run(NULL, -1, vmsplices, first[0]);
	close(first[0]);
	ok("vmsplice");

	file = (int)CHECK_SYS(mkstemp(path));
	unlink(path);
	int copy = dup(file);
	join(start(writes, (void *)(intptr_t)copy));
	CHECK_EQ(lseek(file, 0, SEEK_SET), 0);
	CHECK_SYS(socketpair(AF_UNIX, SOCK_STREAM, 0, sock));
	run(NULL, -1, sends_file, sock[0]);
	close(sock[0]);
	close(sock[1]);
	ok("sendfile");

	CHECK_SYS(pipe(first));
	CHECK_SYS(pipe(second));
	CHECK_ERRNO(splice(first[0], NULL, second[1], NULL, 100, SPLICE_F_NONBLOCK), EAGAIN);
	CHECK_SYS(fcntl(first[0], F_SETFL, O_NONBLOCK));
	CHECK_ERRNO(splice(first[0], NULL, second[1], NULL, 100, 0), EAGAIN);
	CHECK_SYS(fcntl(first[0], F_SETFL, 0));
	close(second[0]);
	CHECK_EQ(write(first[1], "abc", 3), 3);
	signal(SIGPIPE, SIG_IGN);
	CHECK_ERRNO(splice(first[0], NULL, second[1], NULL, 3, 0), EPIPE);
	ok("EAGAIN, EPIPE");

	refused_before_it_waits();
	ok("what is refused is refused at once");

	CHECK_SYS(sigaction(SIGUSR1, &sa, NULL));
	char buf[4];
	CHECK_EQ(read(first[0], buf, 4), 3);
	close(second[1]);
	CHECK_SYS(pipe(second));
	pthread_t t = start(waits_in_splice, &is_over);
	while (!LOAD(&is_over)) {
		let_others_block();
		pthread_kill(t, SIGUSR1);
	}
	join(t);
	ok("EINTR");
	return finish();
}
