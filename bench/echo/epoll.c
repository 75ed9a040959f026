// SPDX-License-Identifier: Apache-2.0
/* epoll, level-triggered, every connection registered once: a classic event loop. */
#include <errno.h>
#include <sys/epoll.h>

#include "echo.h"

#define NR_EVENTS 512

static void add(int epoll_fd, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
		echo_die("epoll_ctl", errno);
}

void echo_serve_epoll(int listener)
{
	static struct epoll_event events[NR_EVENTS];
	int epoll_fd = epoll_create1(EPOLL_CLOEXEC);

	if (epoll_fd < 0)
		echo_die("epoll_create1", errno);
	add(epoll_fd, listener);
	for (;;) {
		int nr = epoll_wait(epoll_fd, events, NR_EVENTS, -1);

		if (nr < 0 && errno != EINTR)
			echo_die("epoll_wait", errno);
		for (int i = 0; i < nr; i++) {
			int fd = events[i].data.fd;

			if (fd != listener) {
				(void)echo_answer(fd); /* closing takes it out of the set */
				continue;
			}
			while ((fd = echo_accept(listener)) >= 0)
				add(epoll_fd, fd);
		}
	}
}
