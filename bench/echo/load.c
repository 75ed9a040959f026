// SPDX-License-Identifier: Apache-2.0
/*
 * echo-load: keeps N connections to an echo server busy and says how well they were served.
 *
 * Run by `weft bench io-models`. Closed loop: every connection has one message outstanding and sends the next when
 * the echo is complete. One kernel thread, one epoll set. Every byte that comes back is compared.
 *
 *   RAMP     connect, some at a time; each connection gets one answer
 *   IDLE     "ready" has been said on stdout; nothing is outstanding, until a line with a number of seconds comes on
 *            stdin. The end of stdin ends the program.
 *   RUN      all of them run for so many seconds
 *   DRAIN    nothing is sent any more; then one line of results (below), and back to IDLE
 *
 * The server is quiet whenever a line is written, so what its reader then reads about the server is exact.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "client.h"
#include "histogram.h"

#define RAMP_MAX 128 /* connections being made at once: far below any listen backlog */
#define RAMP_NS (60 * SEC)
#define DRAIN_NS (30 * SEC)
#define SIZE_MAX_BYTES 4096
#define PHASES 1024 /* messages differ in where in the pattern they begin */

/*
 *   CONNECTING -> BUSY    connected, and the first message is sent
 *   BUSY       -> READY   the echo is complete, and the phase wants no more
 *   READY      -> BUSY    RUN begins
 *   any        -> DEAD    refused, closed, or a wrong byte
 */
enum state {
	UNUSED,
	CONNECTING,
	BUSY,
	READY,
	DEAD
};

struct conn {
	int fd;
	enum state state;
	unsigned got; /* bytes of the echo so far */
	unsigned turn;
	unsigned nr_answers; /* since RUN began */
	int64_t sent_ns;
};

static struct {
	struct sockaddr_in server;
	unsigned nr, bytes;
} opt = { .nr = 50, .bytes = 64 };

static struct conn *conns;
static int epoll_fd;
static bool is_running; /* what is answered sends the next */
static unsigned nr_pending, nr_busy;
static struct histogram latency;
static uint64_t nr_errors;
static char first_error[128] = "-";
static unsigned char pattern[SIZE_MAX_BYTES + PHASES];

static void die(const char *what)
{
	fprintf(stderr, "echo-load: %s: %s\n", what, strerror(errno));
	exit(2);
}

/* End a connection that went wrong. `error` is an errno value, or 0 when `what` says it all. */
static void fail(struct conn *c, const char *what, int error)
{
	if (nr_errors++ == 0)
		snprintf(first_error, sizeof(first_error), "%s%s%s", what, error ? ": " : "",
			 error ? strerror(error) : "");
	nr_pending -= c->state == CONNECTING;
	nr_busy -= c->state == BUSY;
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	c->state = DEAD;
}

static const unsigned char *message(const struct conn *c)
{
	return pattern + ((unsigned)(c - conns) * 7 + c->turn * 13) % PHASES;
}

static void send_message(struct conn *c, int64_t at_ns)
{
	ssize_t n;

	c->state = BUSY;
	c->got = 0;
	c->turn++;
	c->sent_ns = at_ns;
	nr_busy++;
	/* The echo before is complete, so the socket's buffer is empty and takes it whole. */
	n = send(c->fd, message(c), opt.bytes, MSG_NOSIGNAL);
	if (n != (ssize_t)opt.bytes)
		fail(c, "send", n < 0 ? errno : 0);
}

static void receive(struct conn *c)
{
	static unsigned char buf[2 * SIZE_MAX_BYTES];
	ssize_t n = recv(c->fd, buf, sizeof(buf), 0);
	int64_t at_ns;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		fail(c, n < 0 ? "recv" : "connection closed by the server", n < 0 ? errno : 0);
		return;
	}
	if (c->state != BUSY || (size_t)n > opt.bytes - c->got ||
	    memcmp(buf, message(c) + c->got, (size_t)n) != 0) {
		fail(c, "the echo is not what was sent", 0);
		return;
	}
	c->got += (unsigned)n;
	if (c->got < opt.bytes)
		return;
	at_ns = now_ns();
	histogram_add(&latency, at_ns - c->sent_ns);
	c->nr_answers++;
	c->state = READY;
	nr_busy--;
	if (is_running)
		send_message(c, at_ns);
}

static void connected(struct conn *c)
{
	int error = client_connected(epoll_fd, c->fd, c);

	if (error) {
		fail(c, "connect", error);
		return;
	}
	nr_pending--;
	send_message(c, now_ns());
}

static void start_connect(struct conn *c)
{
	const char *what;

	nr_pending++;
	c->state = CONNECTING;
	c->fd = client_connect(epoll_fd, &opt.server, (unsigned)(c - conns), opt.nr, c, &what);
	if (c->fd < 0)
		fail(c, what, errno);
}

/* Wait until `until_ns` at most and handle what has happened. */
static void run_events(int64_t until_ns)
{
	struct epoll_event events[256];
	int64_t left_ns = until_ns - now_ns();
	int n = epoll_wait(epoll_fd, events, 256, left_ns > 0 ? (int)(left_ns / 1000000) + 1 : 0);

	for (int i = 0; i < n; i++) {
		struct conn *c = events[i].data.ptr;

		if (c->state == CONNECTING)
			connected(c);
		else if (c->state != DEAD)
			receive(c);
	}
	if (n < 0 && errno != EINTR)
		die("epoll_wait");
}

static void drain(void)
{
	int64_t until_ns = now_ns() + DRAIN_NS;

	is_running = false;
	while (nr_busy > 0 && now_ns() < until_ns)
		run_events(until_ns);
	for (unsigned i = 0; nr_busy > 0 && i < opt.nr; i++) {
		if (conns[i].state == BUSY)
			fail(&conns[i], "no answer for 30 seconds", 0);
	}
}

static void ramp(void)
{
	int64_t until_ns = now_ns() + RAMP_NS;
	unsigned started = 0;

	while ((started < opt.nr || nr_pending + nr_busy > 0) && now_ns() < until_ns) {
		while (started < opt.nr && nr_pending + nr_busy < RAMP_MAX)
			start_connect(&conns[started++]);
		if (nr_pending + nr_busy > 0)
			run_events(until_ns);
	}
	for (unsigned i = 0; i < opt.nr; i++) {
		if (conns[i].state != READY && conns[i].state != DEAD)
			fail(&conns[i], "not connected and answered in time", 0);
	}
}

static void run(double seconds)
{
	int64_t cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID), begin_ns = now_ns();
	int64_t end_ns = begin_ns + (int64_t)(seconds * 1e9);
	uint64_t nr_in_time;
	unsigned nr_starved = 0;

	latency = (struct histogram){ 0 };
	is_running = true;
	for (unsigned i = 0; i < opt.nr; i++) {
		conns[i].nr_answers = 0;
		if (conns[i].state == READY)
			send_message(&conns[i], now_ns());
	}
	while (now_ns() < end_ns && nr_busy > 0)
		run_events(end_ns);
	end_ns = now_ns();
	cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns;
	nr_in_time = latency.nr;
	for (unsigned i = 0; i < opt.nr; i++)
		nr_starved += conns[i].nr_answers == 0;
	drain();
	printf("result ns=%lld cpu_ns=%lld in_time=%llu answers=%llu p50=%llu p99=%llu p999=%llu "
	       "max=%llu starved=%u errors=%llu first=%s\n",
	       (long long)(end_ns - begin_ns), (long long)cpu_ns, (unsigned long long)nr_in_time,
	       (unsigned long long)latency.nr,
	       (unsigned long long)histogram_quantile(&latency, 0.5),
	       (unsigned long long)histogram_quantile(&latency, 0.99),
	       (unsigned long long)histogram_quantile(&latency, 0.999),
	       (unsigned long long)latency.max_ns, nr_starved, (unsigned long long)nr_errors,
	       first_error);
}

static unsigned number(const char *text, unsigned max)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (*end || end == text || value < 1 || value > max) {
		fprintf(stderr, "echo-load: %s: want a number from 1 to %u\n", text, max);
		exit(2);
	}
	return (unsigned)value;
}

int main(int argc, char **argv)
{
	char line[64];

	if (argc != 4) {
		fputs("usage: echo-load PORT CONNECTIONS BYTES\n", stderr);
		return 2;
	}
	opt.server.sin_family = AF_INET;
	opt.server.sin_port = htons((uint16_t)number(argv[1], 65535));
	opt.server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	opt.nr = number(argv[2], 1000000);
	opt.bytes = number(argv[3], SIZE_MAX_BYTES);
	client_allow_files();
	for (size_t i = 0; i < sizeof(pattern); i++)
		pattern[i] = (unsigned char)(i * 2654435761U >> 13);
	conns = calloc(opt.nr, sizeof(*conns));
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (!conns || epoll_fd < 0)
		die("cannot start");
	for (unsigned i = 0; i < opt.nr; i++)
		conns[i].fd = -1;

	ramp();
	printf("ready errors=%llu first=%s\n", (unsigned long long)nr_errors, first_error);
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		run(strtod(line, NULL));
		fflush(stdout);
	}
	return 0;
}
