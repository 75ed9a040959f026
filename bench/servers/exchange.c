// SPDX-License-Identifier: Apache-2.0
/*
 * exchange: N clients that send the same bytes over and over, and wait for the answer each time.
 *
 * The load for servers that bench/loadgen cannot ask: those that do not speak HTTP, close the connection
 * after every answer, or send a stream. Closed loop, one kernel thread, one epoll set, always native.
 *
 *   --answer N     the answer has N bytes; the connection is used again          (memcached)
 *   --reconnect    the answer ends with the connection; a new one each time      (tinyproxy)
 *   --stream       one request; what comes back counts by the byte               (icecast2)
 *
 * Connections are made a few at a time, and nothing is counted before each has had its first answer. Result: one
 * line of JSON on stdout. The exit status is 0 only if no connection failed.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "histogram.h"

#define SEC INT64_C(1000000000)

/*
 *   NONE -> CONNECTING -> BUSY    connected, the request is sent
 *   BUSY -> BUSY                  the answer is complete: counted, the next request is sent
 *   BUSY -> NONE                  the same with --reconnect, or the connection failed
 */
enum state {
	NONE,
	CONNECTING,
	BUSY
};

struct client {
	int fd;
	enum state state;
	bool has_answer; /* at least one so far */
	size_t received;
	int64_t sent_at; /* with --reconnect: when we began to connect */
};

static struct {
	int port, nr_clients, nr_at_once;
	double duration_s, warmup_s;
	const char *request;
	size_t request_bytes, answer_bytes;
	bool does_reconnect, is_stream;
} opt = { .nr_clients = 10, .nr_at_once = 64, .duration_s = 3, .warmup_s = 0.5 };

static struct client *clients;
static struct histogram times;
static int epoll_fd, nr_connecting, nr_ready;
static uint64_t nr_answers, nr_bytes, nr_errors;
static bool is_counting;

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * SEC + ts.tv_nsec;
}

static void die(const char *what)
{
	perror(what);
	exit(2);
}

static void drop(struct client *c, bool is_error)
{
	close(c->fd);
	nr_connecting -= c->state == CONNECTING;
	c->state = NONE;
	if (!is_error)
		return;
	nr_errors++;
	if (nr_errors > (uint64_t)opt.nr_clients * 3) {
		fprintf(stderr, "exchange: too many errors\n");
		exit(1);
	}
}

static void begin(struct client *c)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)opt.port) };
	struct epoll_event ev = { .events = EPOLLOUT, .data.ptr = c };
	int one = 1;

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (c->fd < 0)
		die("socket");
	setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	c->state = CONNECTING;
	nr_connecting++;
	c->sent_at = now_ns();
	if (connect(c->fd, (struct sockaddr *)&to, sizeof(to)) < 0 && errno != EINPROGRESS) {
		drop(c, true);
		return;
	}
	if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, c->fd, &ev) < 0)
		die("epoll_ctl");
}

static void send_request(struct client *c)
{
	/* Requests are small and the answer to the one before is here: it fits into the buffer. */
	c->received = 0;
	if (!opt.does_reconnect)
		c->sent_at = now_ns();
	if (send(c->fd, opt.request, opt.request_bytes, MSG_NOSIGNAL) != (ssize_t)opt.request_bytes)
		drop(c, true);
}

static void on_connected(struct client *c)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = c };
	int error = 0;
	socklen_t len = sizeof(error);

	getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &len);
	if (error) {
		drop(c, true);
		return;
	}
	nr_connecting--;
	c->state = BUSY;
	epoll_ctl(epoll_fd, EPOLL_CTL_MOD, c->fd, &ev);
	send_request(c);
}

static void on_answer(struct client *c)
{
	if (!c->has_answer)
		nr_ready++;
	c->has_answer = true;
	if (is_counting) {
		histogram_add(&times, now_ns() - c->sent_at);
		nr_answers++;
	}
}

static void on_data(struct client *c)
{
	static char buf[1 << 16];
	ssize_t n = recv(c->fd, buf, sizeof(buf), 0);

	if (n < 0) {
		if (errno != EAGAIN)
			drop(c, true);
		return;
	}
	if (n == 0) {
		bool is_whole = opt.does_reconnect && c->received >= opt.answer_bytes;

		if (is_whole)
			on_answer(c);
		drop(c, !is_whole);
		return;
	}
	c->received += (size_t)n;
	if (is_counting)
		nr_bytes += (size_t)n;
	if (opt.is_stream) {
		if (!c->has_answer)
			nr_ready++;
		c->has_answer = true;
	} else if (!opt.does_reconnect && c->received >= opt.answer_bytes) {
		on_answer(c);
		send_request(c);
	}
}

static void keep_busy(void)
{
	static int next;

	/* all of them in turn, so that none is forgotten */
	for (int i = 0; i < opt.nr_clients && nr_connecting < opt.nr_at_once; i++) {
		struct client *c = &clients[next];

		next = (next + 1) % opt.nr_clients;
		if (c->state == NONE)
			begin(c);
	}
}

static void run(void)
{
	int64_t give_up = now_ns() + 30 * SEC, count_from = 0, until = 0;
	struct epoll_event events[256];

	for (;;) {
		int64_t now = now_ns();
		int n;

		if (!count_from && nr_ready == opt.nr_clients)
			count_from = now + (int64_t)(opt.warmup_s * 1e9);
		if (!count_from && now > give_up) {
			fprintf(stderr, "exchange: %d of %d clients were served\n", nr_ready,
				opt.nr_clients);
			exit(1);
		}
		if (count_from && !is_counting && now >= count_from) {
			is_counting = true;
			until = now + (int64_t)(opt.duration_s * 1e9);
			fprintf(stderr, "measure\n");
		}
		if (until && now >= until)
			return;
		keep_busy();
		n = epoll_wait(epoll_fd, events, 256, 10);
		for (int i = 0; i < n; i++) {
			struct client *c = events[i].data.ptr;

			if (c->state == CONNECTING)
				on_connected(c);
			else if (c->state == BUSY)
				on_data(c);
		}
	}
}

/* \r and \n in an argument */
static char *unescape(char *text)
{
	char *to = text;

	for (const char *p = text; *p; p++) {
		if (*p == '\\' && (p[1] == 'r' || p[1] == 'n'))
			*to++ = *++p == 'r' ? '\r' : '\n';
		else
			*to++ = *p;
	}
	*to = 0;
	return text;
}

static void parse(int argc, char **argv)
{
	static const struct option names[] = {
		{ "port", 1, 0, 'p' },      { "clients", 1, 0, 'c' },
		{ "duration", 1, 0, 'd' },  { "warmup", 1, 0, 'w' },
		{ "request", 1, 0, 'r' },   { "answer", 1, 0, 'a' },
		{ "reconnect", 0, 0, 'R' }, { "stream", 0, 0, 's' },
		{ "at-once", 1, 0, 'o' },   { 0 },
	};
	int o;

	while ((o = getopt_long(argc, argv, "", names, NULL)) != -1) {
		switch (o) {
		case 'p':
			opt.port = atoi(optarg);
			break;
		case 'c':
			opt.nr_clients = atoi(optarg);
			break;
		case 'd':
			opt.duration_s = atof(optarg);
			break;
		case 'w':
			opt.warmup_s = atof(optarg);
			break;
		case 'r':
			opt.request = unescape(optarg);
			opt.request_bytes = strlen(opt.request);
			break;
		case 'a':
			opt.answer_bytes = (size_t)atol(optarg);
			break;
		case 'R':
			opt.does_reconnect = true;
			break;
		case 's':
			opt.is_stream = true;
			break;
		case 'o':
			opt.nr_at_once = atoi(optarg);
			break;
		default:
			exit(2);
		}
	}
	if (!opt.port || !opt.request || opt.nr_clients < 1) {
		fprintf(stderr, "usage: exchange --port N --request TEXT [--answer BYTES]\n"
				"                [--clients N] [--duration S] [--warmup S]\n"
				"                [--reconnect | --stream] [--at-once N]\n");
		exit(2);
	}
}

int main(int argc, char **argv)
{
	parse(argc, argv);
	clients = calloc((size_t)opt.nr_clients, sizeof(*clients));
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (!clients || epoll_fd < 0)
		die("start");
	run();
	printf("{\"requests\": %llu, \"bytes\": %llu, \"seconds\": %.3f, \"p50_us\": %.1f, "
	       "\"p99_us\": %.1f, \"errors\": %llu}\n",
	       (unsigned long long)nr_answers, (unsigned long long)nr_bytes, opt.duration_s,
	       (double)histogram_quantile(&times, 0.5) / 1e3,
	       (double)histogram_quantile(&times, 0.99) / 1e3, (unsigned long long)nr_errors);
	return nr_errors ? 1 : 0;
}
