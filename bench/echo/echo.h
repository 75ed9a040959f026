// SPDX-License-Identifier: Apache-2.0
/*
 * Shared by the echo servers of this folder. Each model is one file with one function, which serves
 * the listening socket until the process is killed.
 */
#ifndef BENCH_ECHO_H
#define BENCH_ECHO_H

#include <stdbool.h>
#include <stddef.h>

#define ECHO_BUFFER_BYTES 4096 /* what one call takes */
#define ECHO_FILES_MAX (1 << 20)
#define ECHO_EXIT_FAILED 1
#define ECHO_EXIT_UNAVAILABLE 3 /* this machine has no such model; nothing is wrong */

void echo_serve_threads(int listener);
void echo_serve_spin(int listener);
void echo_serve_poll(int listener);
void echo_serve_epoll(int listener);
void echo_prepare_uring(void);
void echo_serve_uring(int listener);

/* "echo-server: WHAT: strerror(error)" on stderr, and the end. */
_Noreturn void echo_die(const char *what, int error);

/* A new connection of a listener that does not block, itself non-blocking; -1 when there is none. */
int echo_accept(int listener);

/* Small answers leave at once. */
void echo_set_nodelay(int fd);

/*
 * One non-blocking turn: take what has come and send it back. False when the connection is over, and closed.
 * One request is outstanding on a connection, so the socket's buffer has room for the answer.
 */
bool echo_answer(int fd);

#endif
