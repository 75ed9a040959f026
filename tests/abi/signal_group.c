// SPDX-License-Identifier: Apache-2.0
/* A signal to the own process group, or through a pidfd of the own process, is delivered before the call returns. */
#include "check.h"

static volatile int nr_handled;

static void handler(int sig)
{
	(void)sig;
	nr_handled++;
}

static void *nothing(void *arg)
{
	return arg;
}

int main(void)
{
	struct sigaction act = { .sa_handler = handler };
	int fd;

	join(start(nothing, NULL));
	setpgid(0, 0);
	sigaction(SIGUSR1, &act, NULL);
	for (int i = 0; i < 500; i++) {
		nr_handled = 0;
		CHECK_SYS(kill(0, SIGUSR1));
		CHECK_EQ(nr_handled, 1);
		CHECK_SYS(killpg(getpgrp(), SIGUSR1));
		CHECK_EQ(nr_handled, 2);
		CHECK_SYS(kill(-getpgrp(), SIGUSR1));
		CHECK_EQ(nr_handled, 3);
	}
	ok("kill(0), killpg(), kill(-pgrp)");
	fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	for (int i = 0; fd >= 0 && i < 100; i++) {
		nr_handled = 0;
		CHECK_SYS(syscall(SYS_pidfd_send_signal, fd, SIGUSR1, NULL, 0));
		CHECK_EQ(nr_handled, 1);
	}
	ok("pidfd_send_signal()");
	return finish();
}
