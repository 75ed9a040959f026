// SPDX-License-Identifier: Apache-2.0
/* HTTP/1.1, as little as Prometheus needs; see serve.h. */
#include "look/serve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CLIENT_MS 2000
#define REQUEST_BYTES 8192
#define BACKLOG 16

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static bool parse_port(const char *text, uint16_t *out)
{
	char *end;
	long value;

	if (*text < '0' || *text > '9')
		return false;
	value = strtol(text, &end, 10);
	*out = htons((uint16_t)value);
	return !*end && value <= 65535;
}

static bool parse(const char *place, union address *out, socklen_t *out_len)
{
	const char *colon = strrchr(place, ':'), *from = place;
	char host[64] = "127.0.0.1";
	size_t len = colon ? (size_t)(colon - place) : 0;

	*out = (union address){ .v4.sin_family = AF_INET };
	*out_len = sizeof(out->v4);
	if (len > 1 && place[0] == '[' && place[len - 1] == ']') {
		out->v6 = (struct sockaddr_in6){ .sin6_family = AF_INET6 };
		*out_len = sizeof(out->v6);
		from++;
		len -= 2;
	}
	if (len >= sizeof(host))
		return false;
	if (len)
		snprintf(host, sizeof(host), "%.*s", (int)len, from);
	if (!parse_port(colon ? colon + 1 : place,
			out->any.sa_family == AF_INET6 ? &out->v6.sin6_port : &out->v4.sin_port))
		return false;
	return inet_pton(out->any.sa_family, host,
			 out->any.sa_family == AF_INET6 ? (void *)&out->v6.sin6_addr
							: (void *)&out->v4.sin_addr) == 1;
}

int wf_serve_listen(const char *place, char *error, size_t bytes)
{
	union address a;
	socklen_t len;
	int fd, one = 1;

	if (!parse(place, &a, &len)) {
		snprintf(error, bytes,
			 "--listen takes ADDRESS:PORT in numbers, as 127.0.0.1:9464, not '%s'",
			 place);
		return -1;
	}
	fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) == 0 &&
	    bind(fd, &a.any, len) == 0 && listen(fd, BACKLOG) == 0)
		return fd;
	snprintf(error, bytes, "cannot listen on %s: %s", place, strerror(errno));
	if (fd >= 0)
		close(fd);
	return -1;
}

void wf_serve_name(int listener, char *out, size_t bytes)
{
	union address a = { .v4.sin_family = AF_INET };
	socklen_t len = sizeof(a);
	char host[INET6_ADDRSTRLEN] = "?";

	(void)getsockname(listener, &a.any, &len);
	if (a.any.sa_family == AF_INET6) {
		(void)inet_ntop(AF_INET6, &a.v6.sin6_addr, host, sizeof(host));
		snprintf(out, bytes, "http://[%s]:%u/metrics", host, ntohs(a.v6.sin6_port));
	} else {
		(void)inet_ntop(AF_INET, &a.v4.sin_addr, host, sizeof(host));
		snprintf(out, bytes, "http://%s:%u/metrics", host, ntohs(a.v4.sin_port));
	}
}

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static bool wait_for(int fd, short events, int64_t until)
{
	struct pollfd p = { .fd = fd, .events = events };
	int64_t left = until - now_ms();

	return left > 0 && poll(&p, 1, (int)left) == 1;
}

/* Up to the empty line behind the headers. False: too slow, too long, or gone. */
static bool read_request(int fd, char out[REQUEST_BYTES], int64_t until)
{
	size_t len = 0;

	while (len + 1 < REQUEST_BYTES && wait_for(fd, POLLIN, until)) {
		ssize_t n = recv(fd, out + len, REQUEST_BYTES - 1 - len, MSG_DONTWAIT);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (n <= 0)
			return false;
		len += (size_t)n;
		out[len] = '\0';
		if (strstr(out, "\r\n\r\n") || strstr(out, "\n\n"))
			return true;
	}
	return false;
}

static void send_all(int fd, const char *text, size_t bytes, int64_t until)
{
	while (bytes && wait_for(fd, POLLOUT, until)) {
		ssize_t n = send(fd, text, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (n <= 0)
			return;
		text += n;
		bytes -= (size_t)n;
	}
}

static void answer(int fd, const char *status, const char *type, const char *text, size_t bytes,
		   int64_t until)
{
	char head[256], rest[256];
	int len = snprintf(head, sizeof(head),
			   "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
			   "Connection: close\r\n\r\n",
			   status, type, bytes);

	send_all(fd, head, (size_t)len, until);
	send_all(fd, text, bytes, until);
	/* The kernel makes a reset of the close where something was not read yet; the answer might be lost. */
	(void)shutdown(fd, SHUT_WR);
	while (wait_for(fd, POLLIN, until) && recv(fd, rest, sizeof(rest), MSG_DONTWAIT) > 0)
		;
}

static void refuse(int fd, const char *status, int64_t until)
{
	char text[64];
	int len = snprintf(text, sizeof(text), "%s\n", status);

	answer(fd, status, "text/plain", text, (size_t)len, until);
}

/* Does a header of the request say so? */
static bool accepts_openmetrics(const char *request)
{
	const char *accept = strcasestr(request, "\naccept:");
	const char *found = accept ? strstr(accept, "application/openmetrics-text") : NULL;

	return found && found < accept + 1 + strcspn(accept + 1, "\n");
}

/* False: there is no page any more. */
static bool serve(int fd, char *(*page)(void *arg, bool is_openmetrics, size_t *out_bytes),
		  void *arg)
{
	int64_t until = now_ms() + CLIENT_MS;
	char request[REQUEST_BYTES], *text;
	bool is_openmetrics;
	size_t bytes, len;

	if (!read_request(fd, request, until))
		return true;
	if (strncmp(request, "GET ", 4) != 0) {
		refuse(fd, "405 Method Not Allowed", until);
		return true;
	}
	len = strcspn(request + 4, " ?\r\n");
	if (len != strlen("/metrics") || strncmp(request + 4, "/metrics", len) != 0) {
		refuse(fd, "404 Not Found", until);
		return true;
	}
	is_openmetrics = accepts_openmetrics(request);
	text = page(arg, is_openmetrics, &bytes);
	if (!text) {
		refuse(fd, "503 Service Unavailable", until);
		return false;
	}
	answer(fd, "200 OK",
	       is_openmetrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
			      : "text/plain; version=0.0.4; charset=utf-8",
	       text, bytes, now_ms() + CLIENT_MS);
	free(text);
	return true;
}

void wf_serve_run(int listener, pid_t pid,
		  char *(*page)(void *arg, bool is_openmetrics, size_t *out_bytes), void *arg)
{
	struct pollfd p[] = {
		{ .fd = listener, .events = POLLIN },
		{ .fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN },
	};
	bool goes_on = true;

	while (goes_on) {
		int fd;

		if (poll(p, 2, -1) < 0 && errno != EINTR)
			break;
		if (p[1].revents)
			break;
		fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0)
			continue;
		goes_on = serve(fd, page, arg);
		close(fd);
	}
	if (p[1].fd >= 0)
		close(p[1].fd);
}
