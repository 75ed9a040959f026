// SPDX-License-Identifier: Apache-2.0
/*
 * One HTTP/1.1 connection, served by blocking calls of the thread that owns it. See http.c.
 */
#ifndef HTTPD_HTTP_H
#define HTTPD_HTTP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#define HTTP_HEAD_MAX 8192 /* longest request head; what exceeds it is answered with 431 */
#define HTTP_OUT_MAX 2048  /* an answer from memory, head and body together */

/* Shared by all connections. Constant once the first one is served, but for the atomics. */
struct http_site {
	int root_fd;   /* directory whose files are served, or -1 */
	int timeout_s; /* what a client gets for a request; also the socket's own time limit */
	/* Write the body of /stats, at most `size` bytes with the zero. Returns its length. */
	size_t (*stats)(char *out, size_t size, unsigned long nr_requests);
	atomic_ulong requests;
	atomic_bool is_stopping; /* answer what has been asked, then close */
};

/*
 * `out` stands before `in`: a small request and its answer share pages, the rest of `in` stays
 * untouched.
 */
struct http {
	struct http_site *site;
	int fd;
	/* Bytes in `in`: the request being read, and whatever is pipelined behind it. */
	size_t len;
	char out[HTTP_OUT_MAX];
	char in[HTTP_HEAD_MAX + 1]; /* one more for the terminating zero */
};

/* The descriptor stays the caller's; it has SO_RCVTIMEO and SO_SNDTIMEO set to site->timeout_s. */
void http_init(struct http *c, struct http_site *site, int fd);

/* Answer requests until the client leaves, the time is up or something is wrong. */
void http_serve(struct http *c);

/* Say that there is no room (503). Does not wait for a request. */
void http_turn_away(struct http *c);

#endif
