// SPDX-License-Identifier: Apache-2.0
/*
 * Requests and answers: everything about HTTP/1.1 that the server needs, and nothing about
 * threads.
 *
 * Called by the thread of a connection (httpd.c). All calls block: they read and write the socket
 * as if the connection were the only one in the world.
 *
 * Invariant: between two requests, `in` begins with the first byte that no request has used yet.
 * This is all there is to pipelining. When the end of a request is in doubt, the connection ends
 * with it.
 */
#include "http.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const char page[] =
	"<!doctype html>\n"
	"<html><head><title>one thread per connection</title></head>\n"
	"<body>\n"
	"<h1>It works.</h1>\n"
	"<p>A thread of its own read your request with read() and sent this page with\n"
	"write(). It now waits for your next request. See <a href=\"/stats\">/stats</a> for\n"
	"how many such threads there are.</p>\n"
	"</body></html>\n";

_Static_assert(sizeof(page) + 512 < HTTP_OUT_MAX, "the page and its head go out in one write");

struct request {
	char *path; /* decoded, without the query; begins with a slash */
	bool is_head;
	bool keep_alive;
};

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
}

/* ---- Answers ---- */

static bool send_all(int fd, const char *data, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, data, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		data += n;
		len -= (size_t)n;
	}
	return true;
}

static const char *reason(int status)
{
	static const struct {
		int status;
		const char *text;
	} reasons[] = {
		{ 200, "OK" },
		{ 400, "Bad Request" },
		{ 404, "Not Found" },
		{ 405, "Method Not Allowed" },
		{ 408, "Request Timeout" },
		{ 413, "Content Too Large" },
		{ 431, "Request Header Fields Too Large" },
		{ 503, "Service Unavailable" },
		{ 505, "HTTP Version Not Supported" },
	};

	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		if (reasons[i].status == status)
			return reasons[i].text;
	}
	return "Unknown";
}

/* Format a response head into `out`, which holds at least 512 bytes. Returns its length. */
static size_t make_head(char *out, int status, const char *type, long long body_bytes,
			bool keep_alive)
{
	char date[40];
	struct tm tm;
	time_t now = time(NULL);

	strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&now, &tm));
	return (size_t)snprintf(out, 512,
				"HTTP/1.1 %d %s\r\nDate: %s\r\nContent-Type: %s\r\n"
				"Content-Length: %lld\r\n%sConnection: %s\r\n\r\n",
				status, reason(status), date, type, body_bytes,
				status == 405 ? "Allow: GET, HEAD\r\n" : "",
				keep_alive ? "keep-alive" : "close");
}

/* Send a body that is in memory and fits behind its head in c->out. */
static bool reply(struct http *c, const struct request *r, int status, const char *type,
		  const char *body, size_t len)
{
	size_t n = make_head(c->out, status, type, (long long)len, r->keep_alive);

	if (!r->is_head) {
		memcpy(c->out + n, body, len);
		n += len;
	}
	return send_all(c->fd, c->out, n);
}

static bool reply_status(struct http *c, const struct request *r, int status)
{
	char body[64];
	int len = snprintf(body, sizeof(body), "%d %s\n", status, reason(status));

	return reply(c, r, status, "text/plain", body, (size_t)len);
}

static bool reply_stats(struct http *c, const struct request *r)
{
	char body[256];
	size_t len = c->site->stats(body, sizeof(body), atomic_load(&c->site->requests));

	return reply(c, r, 200, "application/json", body, len);
}

static const char *type_of(const char *path)
{
	static const char *const types[][2] = {
		{ ".html", "text/html" },     { ".css", "text/css" },
		{ ".js", "text/javascript" }, { ".json", "application/json" },
		{ ".txt", "text/plain" },     { ".svg", "image/svg+xml" },
		{ ".png", "image/png" },      { ".jpg", "image/jpeg" },
	};
	const char *dot = strrchr(path, '.');

	for (size_t i = 0; dot && i < sizeof(types) / sizeof(types[0]); i++) {
		if (strcasecmp(dot, types[i][0]) == 0)
			return types[i][1];
	}
	return "application/octet-stream";
}

/*
 * Copy `left` bytes of `file` behind the `used` bytes already in `buf`; the first write carries
 * both.
 */
static bool send_file(int fd, int file, char *buf, size_t size, size_t used, off_t left)
{
	while (left > 0) {
		size_t want = left < (off_t)(size - used) ? (size_t)left : size - used;
		ssize_t n = read(file, buf + used, want);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <=
		    0) /* it shrank while we sent it: the client must see the response break off */
			return false;
		left -= n;
		if (!send_all(fd, buf, used + (size_t)n))
			return false;
		used = 0;
	}
	return used == 0 || send_all(fd, buf, used);
}

static bool has_dot_dot(const char *path)
{
	for (const char *p = strstr(path, "/.."); p; p = strstr(p + 1, "/..")) {
		if (p[3] == '/' || p[3] == '\0')
			return true;
	}
	return false;
}

/*
 * Send a regular file below the root. Symbolic links are followed: who may write there is
 * trusted.
 */
static bool reply_file(struct http *c, const struct request *r)
{
	const char *name = r->path + strspn(r->path, "/");
	char buf[16384];
	struct stat st;
	size_t used;
	bool is_sent;
	int file;

	if (c->site->root_fd < 0 || has_dot_dot(r->path))
		return reply_status(c, r, 404);
	/* O_NONBLOCK: opening a FIFO that somebody left there must not wait for a writer. */
	file = openat(c->site->root_fd, name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (file < 0)
		return reply_status(c, r, errno == EMFILE || errno == ENFILE ? 503 : 404);
	if (fstat(file, &st) < 0 || !S_ISREG(st.st_mode)) {
		close(file);
		return reply_status(c, r, 404);
	}
	used = make_head(buf, 200, type_of(name), (long long)st.st_size, r->keep_alive);
	is_sent = send_file(c->fd, file, buf, sizeof(buf), used, r->is_head ? 0 : st.st_size);
	close(file);
	return is_sent;
}

/* ---- Requests ---- */

/*
 * Read until the buffer begins with a whole request head. Returns its length, 0 when the
 * connection is to be closed without a word, or a negative HTTP status.
 */
static int read_head(struct http *c)
{
	int64_t give_up_ns = 0;

	for (;;) {
		size_t blank = strspn(c->in,
				      /* Some clients send an empty line after a request. */
				      "\r\n");
		char *end;
		ssize_t n;

		if (blank > 0)
			memmove(c->in, c->in + blank, (c->len -= blank) + 1);
		end = strstr(c->in, "\r\n\r\n");
		if (end)
			return (int)(end + 4 - c->in);
		if (strlen(c->in) != c->len) /* a zero byte */
			return -400;
		if (c->len == HTTP_HEAD_MAX)
			return -431;
		/*
		 * SO_RCVTIMEO starts anew with every byte; a request as a whole gets the same
		 * time once.
		 */
		if (c->len > 0 && give_up_ns == 0)
			give_up_ns = now_ns() + c->site->timeout_s * INT64_C(1000000000);
		else if (c->len > 0 && now_ns() > give_up_ns)
			return -408;

		n = read(c->fd, c->in + c->len, HTTP_HEAD_MAX - c->len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN && c->len > 0)
			return -408;
		if (n <= 0)
			return 0;
		c->len += (size_t)n;
		c->in[c->len] = '\0';
	}
}

/* Undo %XX in place; false for what is no path. */
static bool decode_path(char *path)
{
	char *to = path;

	path[strcspn(path, "?#")] = '\0';
	for (const char *from = path; *from; from++) {
		char hex[3] = { 0 };

		if (*from != '%') {
			*to++ = *from;
			continue;
		}
		if (!isxdigit((unsigned char)from[1]) || !isxdigit((unsigned char)from[2]))
			return false;
		memcpy(hex, from + 1, 2);
		*to = (char)strtol(hex, NULL, 16);
		if (*to++ == '\0')
			return false;
		from += 2;
	}
	*to = '\0';
	return path[0] == '/';
}

/*
 * The headers that decide where this request ends and what becomes of the connection. Returns 0
 * or a status.
 */
static int parse_headers(char *line, struct request *r, bool *has_host)
{
	for (char *next; *line; line = next) {
		char *value = strchr(line, ':');

		next = strstr(line, "\r\n");
		*next = '\0';
		next += 2;
		if (!value || value == line || value > next || strpbrk(line, "\r\n"))
			return 400;
		/*
		 * No blank may stand in a name: not as a continuation line, not before the
		 * colon.
		 */
		if (strcspn(line, " \t") < (size_t)(value - line))
			return 400;
		*value++ = '\0';
		value += strspn(value, " \t");
		if (strcasecmp(line, "Host") == 0)
			*has_host = true;
		else if (strcasecmp(line, "Connection") == 0 && strncasecmp(value, "close", 5) == 0)
			r->keep_alive = false;
		else if (strcasecmp(line, "Connection") == 0 &&
			 strncasecmp(value, "keep-alive", 10) == 0)
			r->keep_alive = true;
		else if (strcasecmp(line, "Transfer-Encoding") == 0)
			return 413;
		else if (strcasecmp(line, "Content-Length") == 0 && strcmp(value, "0") != 0)
			return 413;
	}
	return 0;
}

/* Take a request head apart in place. Returns 0 or the HTTP status that refuses it. */
static int parse(char *head, size_t len, struct request *r)
{
	char *line_end = strstr(head, "\r\n");
	char *target = strchr(head, ' ');
	char *version = target ? strchr(target + 1, ' ') : NULL;
	bool has_host = false;
	int status;

	*line_end = '\0';
	head[len - 2] = '\0'; /* the empty line: the end of the headers, still ours to overwrite */
	if (!target || !version || version > line_end || strpbrk(head, "\r\n"))
		return 400;
	*target++ = '\0';
	*version++ = '\0';
	if (strncmp(version, "HTTP/", 5) != 0)
		return 400;
	if (strcmp(version, "HTTP/1.1") != 0 && strcmp(version, "HTTP/1.0") != 0)
		return 505;
	r->keep_alive = version[7] == '1';
	r->is_head = strcmp(head, "HEAD") == 0;
	if (!r->is_head && strcmp(head, "GET") != 0)
		return 405;
	status = parse_headers(line_end + 2, r, &has_host);
	if (status)
		return status;
	if (!has_host && version[7] == '1')
		return 400;
	if (strncasecmp(target, "http://", 7) == 0) {
		target = strchr(target + 7, '/');
		if (!target)
			return 400;
	}
	r->path = target;
	return decode_path(target) ? 0 : 400;
}

/* Refuse a request. Where it ends is no longer certain, so the connection ends with it. */
static void refuse(struct http *c, struct request *r, int status)
{
	struct timeval linger = { .tv_sec = 1 };

	r->keep_alive = false;
	if (!reply_status(c, r, status))
		return;
	/*
	 * Closing with unread input would send a reset, and the reset may overtake the answer:
	 * read some of it first.
	 */
	shutdown(c->fd, SHUT_WR);
	setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &linger, sizeof(linger));
	for (int i = 0; i < 16 && read(c->fd, c->in, HTTP_HEAD_MAX) > 0; i++)
		;
}

/* Read one request and answer it. Returns whether the connection goes on. */
static bool serve_one(struct http *c)
{
	struct request r = { 0 };
	int len = read_head(c);
	int status;
	bool is_sent;

	if (len == 0)
		return false;
	status = len < 0 ? -len : parse(c->in, (size_t)len, &r);
	if (status) {
		refuse(c, &r, status);
		return false;
	}
	atomic_fetch_add_explicit(&c->site->requests, 1, memory_order_relaxed);
	if (atomic_load_explicit(&c->site->is_stopping, memory_order_relaxed))
		r.keep_alive = false;
	if (strcmp(r.path, "/") == 0)
		is_sent = reply(c, &r, 200, "text/html", page, sizeof(page) - 1);
	else if (strcmp(r.path, "/stats") == 0)
		is_sent = reply_stats(c, &r);
	else
		is_sent = reply_file(c, &r);
	c->len -= (size_t)len;
	memmove(c->in, c->in + len, c->len + 1);
	return is_sent && r.keep_alive;
}

void http_init(struct http *c, struct http_site *site, int fd)
{
	c->site = site;
	c->fd = fd;
	c->len = 0;
	c->in[0] = '\0';
}

void http_serve(struct http *c)
{
	while (serve_one(c))
		;
}

void http_turn_away(struct http *c)
{
	struct request r = { 0 };

	(void)reply_status(c, &r, 503);
}
