// SPDX-License-Identifier: Apache-2.0
/*
 * echo-server MODEL: returns the bytes that come in on each TCP connection, by one of several I/O models.
 *
 * Run by `weft bench io-models`. Listens on a free port of 127.0.0.1, writes its number as one line to
 * stdout, and serves until it is killed. One line on stderr says what went wrong.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "echo.h"

#define BACKLOG 4096

static const struct {
	const char *name;
	void (*prepare)(void); /* before we say that we are there; may be NULL */
	void (*serve)(int listener);
	bool blocks; /* wants a listening socket that blocks */
} models[] = {
	{ "threads", NULL, echo_serve_threads, true },
	{ "spin", NULL, echo_serve_spin, false },
	{ "poll", NULL, echo_serve_poll, false },
	{ "epoll", NULL, echo_serve_epoll, false },
	{ "io_uring", echo_prepare_uring, echo_serve_uring, true },
};

void echo_die(const char *what, int error)
{
	fprintf(stderr, "echo-server: %s: %s\n", what, strerror(error));
	exit(ECHO_EXIT_FAILED);
}

int echo_accept(int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd >= 0)
		echo_set_nodelay(fd);
	else if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR)
		echo_die("accept", errno);
	return fd;
}

void echo_set_nodelay(int fd)
{
	int on = 1;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

bool echo_answer(int fd)
{
	char buf[ECHO_BUFFER_BYTES];
	ssize_t n = recv(fd, buf, sizeof(buf), 0);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (n > 0 && send(fd, buf, (size_t)n, MSG_NOSIGNAL) == n)
		return true;
	close(fd);
	return false;
}

static int listen_somewhere(bool blocks)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t len = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | (blocks ? 0 : SOCK_NONBLOCK), 0);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0)
		echo_die("socket", errno);
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, BACKLOG) < 0 ||
	    getsockname(fd, (struct sockaddr *)&address, &len) < 0)
		echo_die("listen", errno);
	printf("%u\n", ntohs(address.sin_port));
	if (fflush(stdout) != 0)
		echo_die("stdout", errno);
	return fd;
}

int main(int argc, char **argv)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &files);
	}
	(void)signal(SIGPIPE, SIG_IGN);
	for (size_t i = 0; argc == 2 && i < sizeof(models) / sizeof(models[0]); i++) {
		if (strcmp(argv[1], models[i].name) != 0)
			continue;
		if (models[i].prepare)
			models[i].prepare();
		models[i].serve(listen_somewhere(models[i].blocks));
	}
	fprintf(stderr, "usage: echo-server threads|spin|poll|epoll|io_uring\n");
	return 2;
}
