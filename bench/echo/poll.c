// SPDX-License-Identifier: Apache-2.0
/* poll(): the kernel looks at every connection, each time. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "echo.h"

void echo_serve_poll(int listener)
{
	struct pollfd *fds = malloc(ECHO_FILES_MAX * sizeof(*fds));
	nfds_t nr = 1;

	if (!fds)
		echo_die("memory", ENOMEM);
	fds[0] = (struct pollfd){ .fd = listener, .events = POLLIN };
	for (;;) {
		int left = poll(fds, nr, -1);

		if (left < 0 && errno != EINTR)
			echo_die("poll", errno);
		/* From the end: one that is over is replaced by the last, which has been looked at. */
		for (nfds_t i = nr - 1; left > 0 && i > 0; i--) {
			if (!fds[i].revents)
				continue;
			left--;
			if (!echo_answer(fds[i].fd))
				fds[i] = fds[--nr];
		}
		if (left > 0) {
			int fd;

			while (nr < ECHO_FILES_MAX && (fd = echo_accept(listener)) >= 0)
				fds[nr++] = (struct pollfd){ .fd = fd, .events = POLLIN };
		}
	}
}
