// SPDX-License-Identifier: Apache-2.0
/*
 * A thread that watches a directory, or leases a file, gets the signal without asking for it: main, as it was when the
 * program had no threads, and any other.
 */
#include <fcntl.h>
#include "check.h"

static char dir[] = "/tmp/weft-owner-XXXXXX";

static void *nothing(void *arg)
{
	return arg;
}

int main(void)
{
	char path[64];
	sigset_t set;
	int fd, lease, sig;

	join(start(nothing, NULL));
	sigemptyset(&set);
	sigaddset(&set, SIGIO);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	if (!mkdtemp(dir)) {
		perror(dir);
		return EXIT_SKIP;
	}
	snprintf(path, sizeof(path), "%s/file", dir);

	fd = CHECK_SYS(open(dir, O_RDONLY));
	CHECK_EQ(fcntl(fd, F_GETOWN), 0);
	if (fcntl(fd, F_NOTIFY, DN_CREATE) == 0) {
		CHECK_EQ(fcntl(fd, F_GETOWN), getpid());
		close(CHECK_SYS(open(path, O_CREAT | O_WRONLY, 0600)));
		CHECK_EQ(sigwait(&set, &sig), 0);
		CHECK_EQ(sig, SIGIO);
	}
	close(fd);
	ok("a directory");

	close(CHECK_SYS(open(path, O_CREAT | O_WRONLY, 0600)));
	lease = CHECK_SYS(open(path, O_RDONLY));
	if (fcntl(lease, F_SETLEASE, F_RDLCK) == 0) {
		CHECK_EQ(fcntl(lease, F_GETOWN), getpid());
		CHECK_ERRNO(open(path, O_WRONLY | O_NONBLOCK), EAGAIN);
		CHECK_EQ(sigwait(&set, &sig), 0);
		CHECK_EQ(sig, SIGIO);
		CHECK_SYS(fcntl(lease, F_SETLEASE, F_UNLCK));
	}
	close(lease);
	ok("a lease");

	/* an owner that was chosen stays */
	fd = CHECK_SYS(open(dir, O_RDONLY));
	CHECK_SYS(fcntl(fd, F_SETOWN, getppid()));
	(void)fcntl(fd, F_NOTIFY, DN_CREATE);
	CHECK_EQ(fcntl(fd, F_GETOWN), getppid());
	close(fd);
	ok("another owner");
	unlink(path);
	rmdir(dir);
	return finish();
}
