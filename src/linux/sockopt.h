// SPDX-License-Identifier: Apache-2.0
/* The kernel's answers about a socket. */
#ifndef WF_LINUX_SOCKOPT_H
#define WF_LINUX_SOCKOPT_H

#include "sys/syscall.h"

#define SOL_SOCKET 1
#define SO_TYPE 3
#define SO_RCVLOWAT 18
#define SO_DOMAIN 39
#define SOCK_STREAM 1

/* -1: it is no socket, or has no such option. */
WF_INLINE int lx_sockopt(int fd, int option)
{
	int value = 0, len = sizeof(value);

	return sys5(__NR_getsockopt, fd, SOL_SOCKET, option, &value, &len) == 0 ? value : -1;
}

WF_INLINE bool lx_sockopt_is_stream(int fd)
{
	return lx_sockopt(fd, SO_TYPE) == SOCK_STREAM;
}

#endif
