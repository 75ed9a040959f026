// SPDX-License-Identifier: Apache-2.0
/*
 * A thread per connection and calls that block: the simplest server that one can write. The same binary is
 * measured on NPTL and under weft; it knows of neither.
 */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include "echo.h"

#define STACK_BYTES (64 << 10) /* as servers with many threads choose it */

static void *serve_one(void *argument)
{
	int fd = (int)(intptr_t)argument;
	char buf[ECHO_BUFFER_BYTES];
	ssize_t n;

	while ((n = read(fd, buf, sizeof(buf))) > 0) {
		if (write(fd, buf, (size_t)n) != n)
			break;
	}
	close(fd);
	return NULL;
}

void echo_serve_threads(int listener)
{
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	for (;;) {
		int fd = accept(listener, NULL, NULL);
		int error;

		if (fd < 0 && (errno == ECONNABORTED || errno == EINTR))
			continue;
		if (fd < 0)
			echo_die("accept", errno);
		echo_set_nodelay(fd);
		error = pthread_create(&thread, &attr, serve_one, (void *)(intptr_t)fd);
		if (error)
			echo_die("pthread_create", error);
	}
}
