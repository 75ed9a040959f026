// SPDX-License-Identifier: Apache-2.0
/* Another process, which answers every byte on every one of its sockets with the same byte. */
#ifndef WEFT_TESTS_ABI_ANSWERS_H
#define WEFT_TESTS_ABI_ANSWERS_H

#include "check.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

struct answers {
	int nr, *fds; /* ours */
	pid_t pid;
};

/* Until the last of them is closed. */
static inline void answer(struct pollfd *fds, int nr)
{
	int nr_open = nr;

	while (nr_open && poll(fds, (nfds_t)nr, -1) > 0) {
		for (int i = 0; i < nr; i++) {
			char c;

			if (!fds[i].revents)
				continue;
			if (read(fds[i].fd, &c, 1) != 1) {
				fds[i].fd = -1;
				nr_open--;
			} else if (write(fds[i].fd, &c, 1) != 1) {
				_exit(1);
			}
		}
	}
	_exit(nr_open);
}

static inline struct answers answers_begin(int nr)
{
	struct answers a = { .nr = nr, .fds = calloc((size_t)nr, sizeof(*a.fds)) };
	struct pollfd *theirs = calloc((size_t)nr, sizeof(*theirs));

	CHECK(a.fds && theirs);
	for (int i = 0; i < nr; i++) {
		int ends[2];

		CHECK_SYS(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
		a.fds[i] = ends[0];
		theirs[i] = (struct pollfd){ .fd = ends[1], .events = POLLIN };
	}
	a.pid = fork();
	if (a.pid == 0) {
		for (int i = 0; i < nr; i++)
			close(a.fds[i]);
		answer(theirs, nr);
	}
	CHECK(a.pid > 0);
	for (int i = 0; i < nr; i++)
		close(theirs[i].fd);
	free(theirs);
	return a;
}

static inline void answers_end(const struct answers *a)
{
	int status = -1;

	for (int i = 0; i < a->nr; i++)
		close(a->fds[i]);
	CHECK_EQ(waitpid(a->pid, &status, 0), a->pid);
	CHECK_EQ(status, 0);
	free(a->fds);
	ok("the other process ends");
}

#endif
