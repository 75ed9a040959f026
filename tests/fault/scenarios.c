// SPDX-License-Identifier: Apache-2.0
/*
 * The programs of the fault tests: echo (sockets, pipes, polls, timers), file (files, locks, children) and shared (futexes of
 * several processes), every byte checked. A call may fail for lack of memory where its manual says so, and is repeated then; nothing else may.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/futex.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NR_CLIENTS 6
#define ROUNDS 6

static void fail(const char *what)
{
	dprintf(1, "%s: %s\n", what, strerror(errno));
	_exit(1);
}

#define MUST(cond)                                                                                 \
	do {                                                                                       \
		if (!(cond))                                                                       \
			fail(#cond);                                                               \
	} while (0)

static pthread_t start(void *(*fn)(void *), void *arg)
{
	pthread_t t;

	for (int i = 0; i < 1000; i++) {
		errno = pthread_create(&t, NULL, fn, arg);
		if (!errno)
			return t;
		MUST(errno == EAGAIN || errno == ENOMEM);
		usleep(1000);
	}
	fail("pthread_create");
	return t;
}

static void read_all(int fd, char *buf, size_t len)
{
	while (len) {
		ssize_t got = read(fd, buf, len);

		MUST(got > 0);
		buf += got;
		len -= (size_t)got;
	}
}

static void *serves(void *arg)
{
	int fd = (int)(intptr_t)arg;
	const int yes = 1;
	char buf[5000];
	ssize_t len;

	/* Else the last piece of an answer waits for the delayed acknowledgement of the one before it. */
	MUST(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)) == 0);
	while ((len = recv(fd, buf, sizeof(buf), 0)) > 0)
		MUST(send(fd, buf, (size_t)len, 0) == len);
	MUST(len == 0);
	close(fd);
	return NULL;
}

static void *accepts(void *arg)
{
	int listener = (int)(intptr_t)arg;
	pthread_t t[NR_CLIENTS];

	for (int i = 0; i < NR_CLIENTS; i++) {
		int fd = accept(listener, NULL, NULL);

		MUST(fd >= 0);
		t[i] = start(serves, (void *)(intptr_t)fd);
	}
	for (int i = 0; i < NR_CLIENTS; i++)
		pthread_join(t[i], NULL);
	return NULL;
}

static struct sockaddr_in addr;

static void *sends(void *arg)
{
	int fd = ((int *)arg)[0];
	size_t len = (size_t)((int *)arg)[1];
	char *text = malloc(len);

	for (size_t i = 0; i < len; i++)
		text[i] = (char)(i * 7 + i / 256);
	MUST(write(fd, text, len) == (ssize_t)len);
	free(text);
	return NULL;
}

static void wait_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int ret;

	do
		ret = poll(&p, 1, -1);
	while (ret == -1 && errno == ENOMEM);
	MUST(ret == 1);
}

static void *is_client(void *arg)
{
	int number = (int)(intptr_t)arg, fd = socket(AF_INET, SOCK_STREAM, 0);

	MUST(fd >= 0);
	MUST(connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0);
	for (int round = 0; round < ROUNDS; round++) {
		int what[2] = { fd, 1 << (round * 3 + number % 3) };
		char *buf = malloc((size_t)what[1]);
		pthread_t t = start(sends, what);

		wait_readable(fd);
		read_all(fd, buf, (size_t)what[1]);
		for (int i = 0; i < what[1]; i++)
			MUST(buf[i] == (char)(i * 7 + i / 256));
		pthread_join(t, NULL);
		free(buf);
		usleep((useconds_t)(number * 300));
	}
	close(fd);
	return NULL;
}

static int nr_pings = 200;
static int ping[2], pong[2];

static void *answers(void *arg)
{
	char c;

	while (read(ping[0], &c, 1) == 1)
		MUST(write(pong[1], &c, 1) == 1);
	return arg;
}

static void *closes_later(void *arg)
{
	usleep(2000);
	close((int)(intptr_t)arg);
	return NULL;
}

static void *waits_for_close(void *arg)
{
	char c;

	MUST(recv((int)(intptr_t)arg, &c, 1, 0) == 1 || errno == EBADF);
	return NULL;
}

static void echo(void)
{
	socklen_t len = sizeof(addr);
	int listener = socket(AF_INET, SOCK_STREAM, 0), pair[2];
	pthread_t t[NR_CLIENTS], server, answerer, waiter;
	char c = 'x';

	addr.sin_family = AF_INET;
	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	MUST(bind(listener, (struct sockaddr *)&addr, sizeof(addr)) == 0);
	MUST(listen(listener, 64) == 0);
	MUST(getsockname(listener, (struct sockaddr *)&addr, &len) == 0);
	server = start(accepts, (void *)(intptr_t)listener);
	for (intptr_t i = 0; i < NR_CLIENTS; i++)
		t[i] = start(is_client, (void *)i);
	MUST(pipe(ping) == 0 && pipe(pong) == 0);
	answerer = start(answers, NULL);
	for (int i = 0; i < nr_pings; i++) {
		MUST(write(ping[1], &c, 1) == 1);
		MUST(read(pong[0], &c, 1) == 1);
	}
	close(ping[1]);
	pthread_join(answerer, NULL);
	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	waiter = start(waits_for_close, (void *)(intptr_t)pair[0]);
	pthread_join(start(closes_later, (void *)(intptr_t)pair[0]), NULL);
	(void)send(pair[1], &c, 1, MSG_NOSIGNAL);
	pthread_join(waiter, NULL);
	for (int i = 0; i < NR_CLIENTS; i++)
		pthread_join(t[i], NULL);
	pthread_join(server, NULL);
}

#define FILE_BYTES (200 << 10)

static char dir[] = "/tmp/weft-fault-XXXXXX";

static void *uses_file(void *arg)
{
	static char *const command[] = { "true", NULL };
	extern char **environ;
	int number = (int)(intptr_t)arg, fd, lock, status;
	char path[64], *text = malloc(FILE_BYTES), *back = malloc(FILE_BYTES);
	pid_t pid;

	snprintf(path, sizeof(path), "%s/lock", dir);
	lock = open(path, O_RDWR | O_CREAT, 0600);
	snprintf(path, sizeof(path), "%s/%d", dir, number);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	MUST(fd >= 0 && lock >= 0);
	for (int i = 0; i < FILE_BYTES; i++)
		text[i] = (char)(i * 3 + number + i / 256);
	for (int at = 0; at < FILE_BYTES; at += 8192)
		MUST(write(fd, text + at, 8192) == 8192);
	MUST(fdatasync(fd) == 0);
	MUST(flock(lock, LOCK_EX) == 0);
	for (int at = 0; at < FILE_BYTES; at += 4096)
		MUST(pread(fd, back + at, 4096, at) == 4096);
	MUST(flock(lock, LOCK_UN) == 0);
	MUST(memcmp(text, back, FILE_BYTES) == 0);
	memset(back, 0, FILE_BYTES);
	MUST(lseek(fd, 0, SEEK_SET) == 0);
	read_all(fd, back, FILE_BYTES);
	MUST(memcmp(text, back, FILE_BYTES) == 0);
	MUST(read(fd, back, 1) == 0);
	errno = posix_spawnp(&pid, "true", NULL, NULL, command, environ);
	MUST(!errno);
	MUST(waitpid(pid, &status, 0) == pid && status == 0);
	close(fd);
	close(lock);
	MUST(unlink(path) == 0);
	free(text);
	free(back);
	return NULL;
}

static void file(void)
{
	pthread_t t[NR_CLIENTS];
	char path[64];

	MUST(mkdtemp(dir) != NULL);
	for (intptr_t i = 0; i < NR_CLIENTS; i++)
		t[i] = start(uses_file, (void *)i);
	for (int i = 0; i < NR_CLIENTS; i++)
		pthread_join(t[i], NULL);
	snprintf(path, sizeof(path), "%s/lock", dir);
	MUST(unlink(path) == 0 && rmdir(dir) == 0);
}

static uint32_t *words; /* shared with other processes */

static void *waits_for_others(void *arg)
{
	uint32_t *own = &words[(intptr_t)arg];
	const struct timespec brief = { 0, 1000000 };
	int status;
	pid_t pid = fork();

	MUST(pid >= 0);
	if (!pid) {
		while (!__atomic_load_n(own, __ATOMIC_ACQUIRE))
			(void)syscall(SYS_futex, own, FUTEX_WAIT, 0, NULL, NULL, 0);
		__atomic_store_n(own, 2, __ATOMIC_RELEASE);
		(void)syscall(SYS_futex, own, FUTEX_WAKE, 1, NULL, NULL, 0);
		_exit(7);
	}
	(void)syscall(SYS_futex, own, FUTEX_WAIT, 0, &brief, NULL, 0);
	__atomic_store_n(own, 1, __ATOMIC_RELEASE);
	(void)syscall(SYS_futex, own, FUTEX_WAKE, 1, NULL, NULL, 0);
	while (__atomic_load_n(own, __ATOMIC_ACQUIRE) == 1)
		(void)syscall(SYS_futex, own, FUTEX_WAIT, 1, NULL, NULL, 0);
	MUST(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 7);
	return NULL;
}

static void shared(void)
{
	pthread_t t[NR_CLIENTS];

	words = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (intptr_t i = 0; i < NR_CLIENTS; i++)
		t[i] = start(waits_for_others, (void *)i);
	for (int i = 0; i < NR_CLIENTS; i++)
		pthread_join(t[i], NULL);
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	if (argc > 2) /* a shortage lasts, which makes each take milliseconds */
		nr_pings = 20;
	if (!strcmp(argv[1], "echo"))
		echo();
	else if (!strcmp(argv[1], "shared"))
		shared();
	else
		file();
	return 0;
}
