// SPDX-License-Identifier: Apache-2.0
/* Connections of a load generator; see client.h. */
#include "client.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define PER_SOURCE 20000 /* connections per source address; Linux has 28,232 ports for each */

int64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	if (clock_gettime(clock, &ts) < 0)
		return -1;
	return ts.tv_sec * SEC + ts.tv_nsec;
}

int64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

void client_allow_files(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return;
	files.rlim_cur = files.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &files);
}

/* A source address of its own per PER_SOURCE connections: 127.0.0.1 has too few ports for all. */
static int bind_source(int fd, const struct sockaddr_in *server, unsigned index, unsigned nr)
{
	struct sockaddr_in source = { .sin_family = AF_INET };
	int on = 1;

	if (nr <= PER_SOURCE || ntohl(server->sin_addr.s_addr) >> 24 != 127)
		return 0;
	source.sin_addr.s_addr = htonl(INADDR_LOOPBACK + index / PER_SOURCE);
	/* Else the port is chosen here, from those free towards every peer. */
	(void)setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
	return bind(fd, (struct sockaddr *)&source, sizeof(source));
}

int client_connect(int epoll_fd, const struct sockaddr_in *server, unsigned index, unsigned nr,
		   void *data, const char **out_what)
{
	struct epoll_event ev = { .events = EPOLLOUT, .data.ptr = data };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1, error;

	*out_what = "socket";
	if (fd < 0)
		return -1;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (bind_source(fd, server, index, nr) < 0)
		*out_what = "bind";
	else if (connect(fd, (const struct sockaddr *)server, sizeof(*server)) < 0 &&
		 errno != EINPROGRESS)
		*out_what = "connect";
	else if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0)
		*out_what = "epoll_ctl";
	else
		return fd;
	error = errno;
	close(fd);
	errno = error;
	return -1;
}

int client_connected(int epoll_fd, int fd, void *data)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = data };
	socklen_t len = sizeof(int);
	int error = 0;

	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
		return errno;
	if (!error && epoll_ctl(epoll_fd, EPOLL_CTL_MOD, fd, &ev) < 0)
		return errno;
	return error;
}
