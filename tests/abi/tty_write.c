// SPDX-License-Identifier: Apache-2.0
/*
 * A terminal that takes less than a write has: the call ends when all is written, however long that takes.
 */
#include "check.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <termios.h>

#define BIG 100000

static int master, terminal;

/* In small parts, and late: the writer blocks in the kernel, again and again. */
static void *reads_all(void *arg)
{
	static unsigned char buf[777];
	unsigned char want = 0;
	long sum = 0;

	while (sum < 2 * BIG) {
		ssize_t len = read(master, buf, sizeof(buf));

		CHECK_SYS(len);
		for (ssize_t i = 0; i < len; i++)
			if (buf[i] != want++)
				return (void *)-1;
		sum += len;
		sleep_ns(MS / 5);
	}
	return arg;
}

static void *writes_all(void *arg)
{
	static unsigned char big[BIG];
	struct iovec parts[] = { { big, BIG / 2 },
				 { big + BIG / 2, 1 },
				 { big + BIG / 2 + 1, BIG / 2 - 1 } };

	for (int i = 0; i < BIG; i++)
		big[i] = (unsigned char)i;
	CHECK_EQ(write(terminal, big, BIG), BIG);
	for (int i = 0; i < BIG; i++)
		big[i] = (unsigned char)(BIG + i);
	CHECK_EQ(writev(terminal, parts, 3), BIG);
	return arg;
}

int main(void)
{
	struct termios raw;
	pthread_t reader, writer;

	master = (int)CHECK_SYS(posix_openpt(O_RDWR | O_NOCTTY));
	CHECK_SYS(grantpt(master));
	CHECK_SYS(unlockpt(master));
	terminal = (int)CHECK_SYS(open(ptsname(master), O_RDWR | O_NOCTTY));
	CHECK_SYS(tcgetattr(terminal, &raw));
	cfmakeraw(&raw);
	CHECK_SYS(tcsetattr(terminal, TCSANOW, &raw));
	reader = start(reads_all, NULL);
	writer = start(writes_all, NULL);
	join(writer);
	CHECK_EQ((intptr_t)join(reader), 0);
	ok("all in one write, and in one writev");
	close(terminal);
	close(master);
	return finish();
}
