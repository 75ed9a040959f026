// SPDX-License-Identifier: Apache-2.0
/*
 * Pipes, the reading side: a blocked read is woken by a write, ends at EOF, and moves every byte.
 */
#include <fcntl.h>
#include "check.h"

#define ROUNDS 5000

static int to[2], from[2];

static void *reads_one(void *arg)
{
	char c = 0;

	(void)arg;
	CHECK_EQ(read(to[0], &c, 1), 1);
	return (void *)(intptr_t)c;
}

static void *reads_to_end(void *arg)
{
	char buf[1000];
	long sum = 0;
	ssize_t len;

	(void)arg;
	while ((len = read(to[0], buf, sizeof(buf))) > 0)
		sum += len;
	CHECK_EQ(len, 0);
	return (void *)sum;
}

static void *echoes(void *arg)
{
	int value;

	(void)arg;
	while (read(to[0], &value, sizeof(value)) == sizeof(value)) {
		value++;
		CHECK_EQ(write(from[1], &value, sizeof(value)), sizeof(value));
	}
	return NULL;
}

int main(void)
{
	static char block[3000];
	pthread_t t, many[20];
	int sum = 0;

	CHECK_SYS(pipe(to));
	CHECK_SYS(pipe(from));
	t = start(reads_one, NULL);
	let_others_block();
	CHECK_EQ(write(to[1], "x", 1), 1);
	CHECK_EQ((intptr_t)join(t), 'x');
	ok("a write wakes a blocked read");

	for (int i = 0; i < 20; i++)
		many[i] = start(reads_one, NULL);
	for (int i = 0; i < 20; i++)
		CHECK_EQ(write(to[1], &(char){ (char)i }, 1), 1);
	for (int i = 0; i < 20; i++)
		sum += (int)(intptr_t)join(many[i]);
	CHECK_EQ(sum, 190);
	ok("20 readers of one pipe get one byte each");

	t = start(echoes, NULL);
	for (int i = 0; i < ROUNDS; i++) {
		int value = i;

		CHECK_EQ(write(to[1], &value, sizeof(value)), sizeof(value));
		CHECK_EQ(read(from[0], &value, sizeof(value)), sizeof(value));
		CHECK_EQ(value, i + 1);
	}
	close(to[1]);
	join(t);
	ok("5000 round trips, then EOF ends the thread");

	close(to[0]);
	CHECK_SYS(pipe(to));
	t = start(reads_to_end, NULL);
	for (int i = 0; i < 200; i++)
		CHECK_EQ(write(to[1], block, sizeof(block)), sizeof(block));
	close(to[1]);
	CHECK_EQ((intptr_t)join(t), 200 * 3000);
	ok("600000 bytes through a pipe");

	CHECK_EQ(read(to[0], block, 1), 0);
	CHECK_ERRNO(read(to[1], block, 1), EBADF);
	CHECK_SYS(fcntl(from[0], F_SETFL, O_NONBLOCK));
	CHECK_ERRNO(read(from[0], block, 1), EAGAIN);
	ok("EOF again, EBADF, EAGAIN");
	return finish();
}
