// SPDX-License-Identifier: Apache-2.0
/*
 * Calls that do not wait never end with EINTR, however many signals arrive whose handler has no SA_RESTART.
 */
#include "check.h"
#include "disturb.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define ROUNDS 3000

static void files(void)
{
	int fd = (int)CHECK_SYS(open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
	struct stat st;
	char c;

	CHECK_SYS(fstat(fd, &st));
	CHECK_EQ(read(fd, &c, 1), 1);
	CHECK_EQ(pread(fd, &c, 1, 1), 1);
	CHECK_SYS(lseek(fd, 0, SEEK_SET));
	CHECK_SYS(fcntl(fd, F_GETFL));
	CHECK_SYS(close((int)CHECK_SYS(dup(fd))));
	CHECK_SYS(close((int)CHECK_SYS(fcntl(fd, F_DUPFD_CLOEXEC, 3))));
	CHECK_SYS(close(fd));
}

static void pipes(void)
{
	int p[2], nr = 0;
	char c = 'x';

	CHECK_SYS(pipe(p));
	CHECK_EQ(write(p[1], &c, 1), 1);
	CHECK_SYS(ioctl(p[0], FIONREAD, &nr));
	CHECK_EQ(nr, 1);
	CHECK_EQ(read(p[0], &c, 1), 1);
	CHECK_SYS(dup2(p[0], p[1]));
	CHECK_SYS(close(p[0]));
	CHECK_SYS(close(p[1]));
}

static void sockets(void)
{
	int s[2], fd, on = 1;

	CHECK_SYS(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
	CHECK_SYS(setsockopt(s[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)));
	CHECK_EQ(send(s[0], "y", 1, 0), 1);
	CHECK_SYS(shutdown(s[0], SHUT_RDWR));
	CHECK_SYS(close(s[0]));
	CHECK_SYS(close(s[1]));
	fd = (int)CHECK_SYS(eventfd(1, 0));
	CHECK_SYS(close(fd));
}

int main(void)
{
	pthread_t t = begin_disturbing();

	for (int i = 0; i < ROUNDS; i++) {
		files();
		pipes();
		sockets();
	}
	STORE(&is_over, 1);
	join(t);
	ok("no call is interrupted");
	return finish();
}
