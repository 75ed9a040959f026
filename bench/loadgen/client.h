// SPDX-License-Identifier: Apache-2.0
/* Needed by every load generator with many connections and one epoll set. */
#ifndef BENCH_CLIENT_H
#define BENCH_CLIENT_H

#include <netinet/in.h>
#include <stdint.h>
#include <time.h>

#define SEC INT64_C(1000000000)

/* -1 when there is no such clock. */
int64_t clock_ns(clockid_t clock);
int64_t now_ns(void);

/* As many descriptors as we may have. */
void client_allow_files(void);

/*
 * Begin to make connection `index` of `nr`, and have it in the set with `data` when it is made or refused. Returns the
 * descriptor, or -1 with errno; *out_what says which call failed.
 */
int client_connect(int epoll_fd, const struct sockaddr_in *server, unsigned index, unsigned nr,
		   void *data, const char **out_what);

/* It is made or refused: from now on the set tells what comes in. Returns 0 or an errno value. */
int client_connected(int epoll_fd, int fd, void *data);

#endif
