// SPDX-License-Identifier: Apache-2.0
// A small HTTP/1.1 server: a thread for each connection, of which there are so many at most; a scope bounds each request, and
// another one each answer. SIGTERM ends those that wait. It answers GET and HEAD of `/`, and of `/big`, which is 1 MiB.
//
// Usage: http [port [connections at a time [ms in which a request must be complete]]]
#define _GNU_SOURCE 1 /* memmem, strcasestr */
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>
#include <weft/weft.h>

#define LONGEST_REQUEST 8192

struct connection {
	int fd;
	size_t have; /* bytes in `in`: more than one request, if the client does not wait for answers */
	char in[LONGEST_REQUEST];
};

struct request {
	char method[16], path[256];
	bool keep;
	int wrong; /* the status that says so, or 0 */
};

static weft_time patience = 10 * WEFT_SEC;
static weft_group server = { .name = "http", .limit = 1000, .policy = WEFT_EACH };
static char big[1 << 20];

static void on_signal(int nr)
{
	(void)nr;
	weft_group_cancel(&server);
}

/*
 * Read until there is a whole head: up to and with the empty line.
 *
 * Returns: how long it is. 0: the client is done. -ETIMEDOUT, -ECANCELED, -E2BIG, or that the connection is broken.
 */
static ssize_t read_head(struct connection *c)
{
	char *end;
	ssize_t n;
	WEFT_SCOPE(s, weft_now() + patience);

	while (!(end = memmem(c->in, c->have, "\r\n\r\n", 4))) {
		if (c->have == sizeof(c->in))
			return -E2BIG;
		n = read(c->fd, c->in + c->have, sizeof(c->in) - c->have);
		if (n < 0)
			return -errno;
		if (n == 0)
			return c->have ? -EPIPE : 0;
		c->have += (size_t)n;
	}
	return end + 4 - c->in;
}

static void field(struct request *r, char *line)
{
	char *colon = strchr(line, ':'), *value;

	if (!colon || colon == line || strcspn(line, " \t") < (size_t)(colon - line)) {
		r->wrong = 400;
		return;
	}
	*colon = '\0';
	value = colon + 1 + strspn(colon + 1, " \t");
	if (strcasecmp(line, "Connection") == 0) {
		if (strcasestr(value, "close"))
			r->keep = false;
		else if (strcasestr(value, "keep-alive"))
			r->keep = true;
	} else if (strcasecmp(line, "Transfer-Encoding") == 0 ||
		   (strcasecmp(line, "Content-Length") == 0 && strcmp(value, "0") != 0)) {
		r->wrong = 413; /* where the next request begins is not known: no body is read */
	}
}

static struct request parse(char *head, size_t len)
{
	struct request r = { .wrong = 0 };
	char *line, *next;
	int minor, used = 0;

	if (memchr(head, '\0', len)) {
		r.wrong = 400;
		return r;
	}
	head[len - 2] = '\0'; /* the empty line */
	next = strstr(head, "\r\n");
	*next = '\0';
	if (sscanf(head, "%15[A-Z] %255[!-~] HTTP/1.%1d%n", r.method, r.path, &minor, &used) != 3 ||
	    head[used] != '\0') {
		r.wrong = 400;
		return r;
	}
	r.keep = minor > 0;
	for (line = next + 2; !r.wrong && (next = strstr(line, "\r\n")); line = next + 2) {
		*next = '\0';
		field(&r, line);
	}
	return r;
}

static int put(int fd, const char *bytes, size_t len)
{
	ssize_t n;

	for (; len; bytes += n, len -= (size_t)n) {
		n = write(fd, bytes, len);
		if (n < 0)
			return -errno;
	}
	return 0;
}

static const char *reason(int status)
{
	switch (status) {
	case 200:
		return "OK";
	case 404:
		return "Not Found";
	case 405:
		return "Method Not Allowed";
	case 408:
		return "Request Timeout";
	case 413:
		return "Content Too Large";
	case 431:
		return "Request Header Fields Too Large";
	default:
		return "Bad Request";
	}
}

/* In the same time again: a client that does not read is let go. The shield: what has begun is finished, on SIGTERM, too. */
static int answer(int fd, const struct request *r, int status)
{
	const char *body = reason(status);
	size_t len = strlen(body);
	char head[256];
	weft_scope s;
	int n, ret;

	if (status == 200) {
		body = r->path[1] ? big : "hello\n";
		len = r->path[1] ? sizeof(big) : 6;
	}
	n = snprintf(head, sizeof(head),
		     "HTTP/1.1 %d %s\r\nContent-Length: %zu\r\n%sConnection: %s\r\n\r\n", status,
		     reason(status), len, status == 405 ? "Allow: GET, HEAD\r\n" : "",
		     r->keep ? "keep-alive" : "close");
	weft_scope_shield(&s, weft_now() + patience, "answer");
	ret = put(fd, head, (size_t)n);
	if (ret == 0 && strcmp(r->method, "HEAD") != 0)
		ret = put(fd, body, len);
	(void)weft_scope_close(&s);
	return ret;
}

/* Returns: whether there may be another one. */
static bool one_request(struct connection *c)
{
	struct request r = { .keep = false };
	ssize_t len = read_head(c);
	int status = 200;

	if (len == -E2BIG || (len == -ETIMEDOUT && c->have))
		(void)answer(c->fd, &r, len == -E2BIG ? 431 : 408);
	if (len <= 0)
		return false;
	r = parse(c->in, (size_t)len);
	c->have -= (size_t)len;
	memmove(c->in, c->in + len, c->have);
	if (r.wrong) {
		status = r.wrong;
		r.keep = false;
	} else if (strcmp(r.method, "GET") != 0 && strcmp(r.method, "HEAD") != 0) {
		status = 405;
	} else if (strcmp(r.path, "/") != 0 && strcmp(r.path, "/big") != 0) {
		status = 404;
	}
	if (weft_scope_check() < 0)
		r.keep = false; /* the server ends */
	return answer(c->fd, &r, status) == 0 && r.keep;
}

static int serve(void *arg)
{
	struct connection c = { .fd = (int)(intptr_t)arg };

	while (one_request(&c))
		;
	close(c.fd);
	return 0;
}

static int accept_all(void *arg)
{
	int listener = *(int *)arg, fd, ret = 0;

	while (ret != -ECANCELED) {
		fd = accept(listener, NULL, NULL);
		if (fd >= 0) {
			ret = weft_group_go(&server, serve, (void *)(intptr_t)fd);
			if (ret < 0)
				close(fd);
		} else {
			/* No descriptors: some may be given back soon. Or the server ends, and this says so. */
			ret = weft_sleep_until(weft_now() + 50 * WEFT_MS);
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t len = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM, 0), yes = 1;

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	at.sin_port = htons((uint16_t)(argc > 1 ? atoi(argv[1]) : 7009));
	if (argc > 2 && atoi(argv[2]) > 0)
		server.limit = (unsigned)atoi(argv[2]);
	server.limit += 1; /* the one that accepts */
	if (argc > 3)
		patience = atol(argv[3]) * WEFT_MS;
	memset(big, '.', sizeof(big));
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (bind(listener, (struct sockaddr *)&at, len) < 0 || listen(listener, 128) < 0 ||
	    getsockname(listener, (struct sockaddr *)&at, &len) < 0) {
		perror("http");
		return 1;
	}
	signal(SIGPIPE, SIG_IGN);
	if (weft_group_go(&server, accept_all, &listener) < 0)
		return 1;
	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	printf("port %d\n", ntohs(at.sin_port));
	fflush(stdout);
	weft_group_wait(&server);
	close(listener);
	puts("ended");
	return 0;
}
