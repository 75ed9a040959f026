// SPDX-License-Identifier: Apache-2.0
/*
 * A TCP connection over loopback, as socketpair() would make one.
 *
 * Included by: programs that need both ends of one, however it came about.
 */
#ifndef WEFT_TESTS_ABI_TCP_H
#define WEFT_TESTS_ABI_TCP_H

#include "check.h"

#include <netinet/in.h>
#include <sys/socket.h>

/* Listens at a port of its own; the address is stored at *addr. */
static inline int tcp_listen(struct sockaddr_in *addr)
{
	socklen_t len = sizeof(*addr);
	int fd = (int)CHECK_SYS(socket(AF_INET, SOCK_STREAM, 0));

	*addr = (struct sockaddr_in){ .sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	CHECK_SYS(bind(fd, (struct sockaddr *)addr, sizeof(*addr)));
	CHECK_SYS(listen(fd, 8));
	CHECK_SYS(getsockname(fd, (struct sockaddr *)addr, &len));
	return fd;
}

/* fds[0] is the end that was accepted. */
static inline void tcp_pair(int fds[2])
{
	struct sockaddr_in addr;
	int listener = tcp_listen(&addr);

	fds[1] = (int)CHECK_SYS(socket(AF_INET, SOCK_STREAM, 0));
	CHECK_SYS(connect(fds[1], (struct sockaddr *)&addr, sizeof(addr)));
	fds[0] = (int)CHECK_SYS(accept(listener, NULL, NULL));
	close(listener);
}

#endif
