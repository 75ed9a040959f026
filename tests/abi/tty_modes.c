// SPDX-License-Identifier: Apache-2.0
/*
 * Reading from a terminal waits as its mode says: for a line, for so many bytes, for so long, or not at all.
 */
#include "check.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <termios.h>

static int master, slave;

static void set_mode(int nr_bytes, int tenths)
{
	struct termios mode;

	CHECK_SYS(tcgetattr(slave, &mode));
	cfmakeraw(&mode);
	mode.c_cc[VMIN] = (cc_t)nr_bytes;
	mode.c_cc[VTIME] = (cc_t)tenths;
	CHECK_SYS(tcsetattr(slave, TCSANOW, &mode));
}

static void *types(void *text)
{
	for (const char *c = text; *c; c++) {
		let_others_block();
		CHECK_EQ(write(master, c, 1), 1);
	}
	return NULL;
}

static void reads(const char *what, const char *typed, const char *want)
{
	char buf[32] = "";
	pthread_t t = start(types, (void *)(uintptr_t)typed);
	ssize_t n = CHECK_SYS(read(slave, buf, sizeof(buf) - 1));

	join(t);
	CHECK_EQ(n, strlen(want));
	CHECK_STR(buf, want);
	tcflush(slave, TCIFLUSH);
	ok(what);
}

int main(void)
{
	char buf[8];
	struct iovec v = { buf, sizeof(buf) };

	master = (int)CHECK_SYS(posix_openpt(O_RDWR | O_NOCTTY));
	CHECK_SYS(grantpt(master));
	CHECK_SYS(unlockpt(master));
	slave = (int)CHECK_SYS(open(ptsname(master), O_RDWR | O_NOCTTY));
	reads("a line", "ab\ncd\n", "ab\n");
	set_mode(1, 0);
	reads("one byte", "a", "a");
	set_mode(3, 0);
	reads("three bytes", "abc", "abc");
	set_mode(0, 0);
	reads("whatever there is: nothing", "", "");
	CHECK_EQ(readv(slave, &v, 1), 0);
	ok("the same, into a vector");
	set_mode(0, 1);
	reads("for a tenth of a second", "", "");
	set_mode(0, 255);
	reads("for long, but one byte is enough", "a", "a");
	set_mode(5, 1);
	reads("until there is a pause", "a", "a");
	tcflush(master, TCIFLUSH); /* the echo of the line */
	close(slave);
	CHECK_ERRNO(read(master, buf, sizeof(buf)), EIO);
	ok("the other end is gone");
	return finish();
}
