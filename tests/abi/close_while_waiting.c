// SPDX-License-Identifier: Apache-2.0
/*
 * A descriptor that is closed, or made to mean another file, while a thread waits on it: the thread goes on
 * with the file that it had. The other side sees the end only when the thread is done, and what gets the
 * number next is none of the thread's business.
 */
#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>
#include "check.h"

/* In each the thread may be late and find a closed number: there are more until it was in time once. */
#define ROUNDS 8

static int mine[2], other[2];
static char got_text[16];

static void *receives(void *arg)
{
	ssize_t len = recv(mine[0], got_text, sizeof(got_text), 0);

	(void)arg;
	return (void *)(intptr_t)(len < 0 ? -errno : len);
}

static void *reads(void *arg)
{
	ssize_t len = read(mine[0], got_text, sizeof(got_text));

	(void)arg;
	return (void *)(intptr_t)(len < 0 ? -errno : len);
}

static void *sends(void *arg)
{
	static char block[1 << 20];
	ssize_t len = send(mine[0], block, sizeof(block), MSG_NOSIGNAL);

	(void)arg;
	return (void *)(intptr_t)(len < 0 ? -errno : len);
}

static void *accepts(void *arg)
{
	int fd = accept(mine[0], NULL, NULL);

	(void)arg;
	return (void *)(intptr_t)(fd < 0 ? -errno : fd);
}

/* Gets the closed number, with something to read: a thread that comes too late finds it, and must not wait on it. */
static void make_other(void)
{
	CHECK_SYS(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, other));
	CHECK_EQ(send(other[0], "wrong", 5, 0), 5);
	CHECK_EQ(send(other[1], "wrong", 5, 0), 5);
}

/* The closed number is the next that is handed out. */
static void close_and_reuse(int number)
{
	int end = other[0];

	close(number);
	other[0] = (int)CHECK_SYS(dup(end));
	CHECK_EQ(other[0], number);
	close(end);
}

static void check_other(bool is_late)
{
	char buf[8];

	if (!is_late) {
		CHECK_EQ(recv(other[0], buf, sizeof(buf), 0), 5);
		CHECK_EQ(recv(other[1], buf, sizeof(buf), 0), 5);
	}
	close(other[0]);
	close(other[1]);
}

enum how {
	CLOSES,
	DUPS_OVER,
	SHUTS_DOWN,
};

static int wait_and_close(void *(*waits)(void *), enum how how, int is_pipe)
{
	char c;
	intptr_t ret;
	bool is_late;

	if (is_pipe)
		CHECK_SYS(pipe(mine));
	else
		CHECK_SYS(socketpair(AF_UNIX, SOCK_STREAM, 0, mine));
	if (how != DUPS_OVER)
		make_other();
	pthread_t t = start(waits, NULL);

	let_others_block();
	if (how == SHUTS_DOWN)
		CHECK_SYS(shutdown(mine[0], SHUT_RDWR));
	if (how == DUPS_OVER) {
		int null = (int)CHECK_SYS(dup(2));

		CHECK_SYS(dup2(null, mine[0]));
		close(null);
	} else {
		close_and_reuse(mine[0]);
	}
	if (how != SHUTS_DOWN && !is_pipe) {
		ssize_t len = recv(mine[1], &c, 1, MSG_DONTWAIT);

		if (len == -1) {
			CHECK_EQ(errno, EAGAIN);
			CHECK_EQ(send(mine[1], "right", 5, 0), 5);
		} else {
			CHECK_EQ(len, 0); /* the thread came too late */
		}
	}
	if (is_pipe && write(mine[1], "right", 5) != 5)
		CHECK_EQ(errno, EPIPE);
	ret = (intptr_t)join(t);
	is_late = ret == -EBADF || (how == DUPS_OVER && ret == -ENOTSOCK) ||
		  (ret == 5 && !memcmp(got_text, "wrong", 5));
	if (how == DUPS_OVER)
		close(mine[0]);
	else
		check_other(is_late);
	if (!is_pipe && how != SHUTS_DOWN)
		CHECK_EQ(recv(mine[1], &c, 1, 0), 0); /* now the last reference is gone */
	close(mine[1]);
	if (is_late)
		return 0;
	CHECK_EQ(ret, how == SHUTS_DOWN ? 0 : 5);
	if (how != SHUTS_DOWN)
		CHECK(!memcmp(got_text, "right", 5));
	return 1;
}

static void rounds(const char *what, void *(*waits)(void *), enum how how, int is_pipe)
{
	int good = 0;

	for (int i = 0; i < ROUNDS || !good; i++)
		good += wait_and_close(waits, how, is_pipe);
	ok(what);
}

static void rounds_of_write(void)
{
	static char buf[1 << 20];
	int good = 0;

	for (int i = 0; i < ROUNDS || !good; i++) {
		size_t sum = 0;
		ssize_t len;

		CHECK_SYS(socketpair(AF_UNIX, SOCK_STREAM, 0, mine));
		make_other();
		pthread_t t = start(sends, NULL);

		let_others_block();
		close_and_reuse(mine[0]);
		while ((len = recv(mine[1], buf, sizeof(buf), 0)) > 0)
			sum += (size_t)len;
		CHECK_EQ(len, 0);
		intptr_t ret = (intptr_t)join(t);
		CHECK(!sum || ret == (intptr_t)sum);
		good += ret == (1 << 20);
		check_other(!sum);
		close(mine[1]);
	}
	ok("send");
}

static void rounds_of_accept(void)
{
	int good = 0;

	for (int i = 0; i < ROUNDS || !good; i++) {
		struct sockaddr_in addr = { .sin_family = AF_INET,
					    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

		mine[0] = (int)CHECK_SYS(socket(AF_INET, SOCK_STREAM, 0));
		CHECK_SYS(bind(mine[0], (struct sockaddr *)&addr, sizeof(addr)));
		CHECK_SYS(listen(mine[0], 1));
		pthread_t t = start(accepts, NULL);
		let_others_block();
		CHECK_SYS(shutdown(mine[0], SHUT_RDWR));
		close(mine[0]);
		intptr_t ret = (intptr_t)join(t);
		CHECK(ret == -EINVAL || ret == -EBADF);
		good += ret == -EINVAL;
	}
	ok("accept");
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN); /* a late thread has left no reader */
	rounds("recv, then close", receives, CLOSES, 0);
	rounds("read, then close", reads, CLOSES, 0);
	rounds("read of a pipe, then close", reads, CLOSES, 1);
	rounds("recv, then dup2", receives, DUPS_OVER, 0);
	rounds("recv, then shutdown and close", receives, SHUTS_DOWN, 0);
	rounds_of_write();
	rounds_of_accept();
	return finish();
}
