// SPDX-License-Identifier: Apache-2.0
/*
 * A server for one page: GET /metrics.
 *
 * Used by: metrics.c. Invariant: one client at a time, and none for longer than CLIENT_MS.
 */
#ifndef WF_LOOK_SERVE_H
#define WF_LOOK_SERVE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* "127.0.0.1:9464", "[::1]:9464"; without an address, 127.0.0.1. Listens; -1 and why in error. */
int wf_serve_listen(const char *place, char *error, size_t bytes);
/* "http://127.0.0.1:9464/metrics" */
void wf_serve_name(int listener, char *out, size_t bytes);

/*
 * Answers each request with what page() makes: text that malloc() gave, or NULL, which ends the server.
 * is_openmetrics: the client takes that, and not only the older text. Returns then, or
 * when the process pid has ended.
 */
void wf_serve_run(int listener, pid_t pid,
		  char *(*page)(void *arg, bool is_openmetrics, size_t *out_bytes), void *arg);

#endif
