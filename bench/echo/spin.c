// SPDX-License-Identifier: Apache-2.0
/*
 * Non-blocking polling: ask every connection in turn whether something has come, for ever. Quick to answer a
 * few connections, and never without a whole processor.
 */
#include <errno.h>
#include <stdlib.h>

#include "echo.h"

void echo_serve_spin(int listener)
{
	int *fds = malloc(ECHO_FILES_MAX * sizeof(*fds)); /* touched only as far as it is used */
	int nr = 0;

	if (!fds)
		echo_die("memory", ENOMEM);
	for (;;) {
		int fd = echo_accept(listener);

		if (fd >= 0 && nr < ECHO_FILES_MAX)
			fds[nr++] = fd;
		for (int i = 0; i < nr; i++) {
			if (!echo_answer(fds[i]))
				fds[i--] = fds[--nr];
		}
	}
}
