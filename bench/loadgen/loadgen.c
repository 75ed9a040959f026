// SPDX-License-Identifier: Apache-2.0
/*
 * loadgen: keeps N HTTP/1.1 connections busy and says how well they were served.
 *
 * Closed loop: every connection has exactly one request outstanding and sends the next one when
 * the answer is complete. One kernel thread, one epoll set. tools/demo and the server benchmarks
 * run it; it always runs natively, so that only the server changes between two measurements.
 *
 * Every answer is checked: status, length, and each byte of the body. One that is wrong counts as
 * an error and ends its connection; connections are not replaced, so that a failing server looks
 * bad.
 *
 *   RAMP     connect, a few at a time; each connection gets one answer, then waits for the rest
 *   WARMUP   all of them run, nothing is counted
 *   MEASURE  all of them run; answers that arrive are counted
 *   DRAIN    nothing is sent any more; late answers count as latencies, missing ones as errors
 *
 * Result: one line of JSON on stdout. With --progress, stderr gets a line per phase. The exit
 * status is 0 only if every connection was established and no answer was wrong or missing.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "client.h"
#include "histogram.h"

#define RAMP_MAX 128         /* connections being made at once: far below any listen backlog */
#define HEAD_MAX 2048        /* longest response head */
#define EXPECT_MAX (1 << 20) /* longest body */
#define DRAIN_NS (5 * SEC)   /* how late an answer may come after the last request was sent */

enum phase {
	RAMP,
	WARMUP,
	MEASURE,
	DRAIN
};

/*
 *   CONNECTING -> BUSY    the socket is connected and the first request is sent
 *   BUSY       -> IDLE    the answer is complete, and this is RAMP or DRAIN
 *   IDLE       -> BUSY    RAMP is over
 *   any        -> DEAD    refused, closed, or answered wrongly
 */
enum state {
	UNUSED,
	CONNECTING,
	BUSY,
	IDLE,
	DEAD
};

struct conn {
	int fd;
	enum state state;
	bool is_established; /* has had a good answer */
	bool is_in_body;
	unsigned nr_measured; /* good answers during MEASURE */
	size_t have;          /* bytes of the head, or of the body, so far */
	int64_t sent_ns;
	char head[HEAD_MAX + 1];
};

static struct {
	struct sockaddr_in server;
	const char *path;
	unsigned nr;
	double warmup_s, duration_s, connect_s, timeout_s;
	int pid; /* whose CPU time to report; 0: nobody's */
	bool wants_progress;
} opt = { .path = "/", .nr = 100, .warmup_s = 1, .duration_s = 5, .connect_s = 20 };

static enum phase phase;
static struct conn *conns;
static int epoll_fd;
static char request[1024];
static size_t request_bytes;
static char expect[EXPECT_MAX]; /* the right body, from --expect or else the first answer */
static size_t expect_bytes;
static bool has_expect, is_learning;
static struct histogram latency;
static unsigned nr_busy, nr_pending, nr_established;
static uint64_t nr_requests; /* answered during MEASURE */
static uint64_t nr_errors;
static char first_error[160];

static void die(const char *what)
{
	fprintf(stderr, "loadgen: %s: %s\n", what, strerror(errno));
	exit(2);
}

/* CPU time that the server's process has used, or -1. */
static int64_t server_cpu_ns(void)
{
	clockid_t clock;

	return opt.pid > 0 && clock_getcpuclockid(opt.pid, &clock) == 0 ? clock_ns(clock) : -1;
}

/* End a connection that went wrong. `error` is an errno value, or 0 when `what` says it all. */
static void fail(struct conn *c, const char *what, int error)
{
	nr_errors++;
	if (!first_error[0])
		snprintf(first_error, sizeof(first_error), "%s%s%s", what, error ? ": " : "",
			 error ? strerror(error) : "");
	if (c->state == BUSY)
		nr_busy--;
	if (!c->is_established)
		nr_pending--;
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	c->state = DEAD;
}

static void send_request(struct conn *c, int64_t at_ns)
{
	ssize_t n;

	c->state = BUSY;
	c->is_in_body = false;
	c->have = 0;
	c->sent_ns = at_ns;
	nr_busy++;
	n = send(c->fd, request, request_bytes, MSG_NOSIGNAL);
	/* The previous answer is complete, so the socket buffer is empty and takes it whole. */
	if (n != (ssize_t)request_bytes)
		fail(c, "send", n < 0 ? errno : 0);
}

static void answer_complete(struct conn *c)
{
	int64_t at_ns = now_ns();

	nr_busy--;
	c->state = IDLE;
	if (is_learning) {
		is_learning = false;
		has_expect = true;
	}
	if (!c->is_established) {
		c->is_established = true;
		nr_established++;
		nr_pending--;
	}
	if (phase == MEASURE) {
		nr_requests++;
		c->nr_measured++;
	}
	/* With those that came late: leaving them out would hide the worst. */
	if (phase == MEASURE || phase == DRAIN)
		histogram_add(&latency, at_ns - c->sent_ns);
	if (phase == WARMUP || phase == MEASURE)
		send_request(c, at_ns);
}

/* Check a complete head. Returns what is wrong with it, or NULL. */
static const char *check_head(const char *head)
{
	const char *line = strstr(head, "\r\n");
	long length = -1;

	if (strncmp(head, "HTTP/1.1 200 ", 13) != 0)
		return "status is not 200";
	for (; line; line = strstr(line + 2, "\r\n")) {
		if (strncasecmp(line + 2, "Content-Length:", 15) == 0)
			length = strtol(line + 17, NULL, 10);
	}
	if (length < 0)
		return "no Content-Length";
	if (!has_expect && !is_learning) {
		if (length > EXPECT_MAX)
			return "body is longer than 1 MiB";
		is_learning = true;
		expect_bytes = (size_t)length;
		return NULL;
	}
	return (size_t)length == expect_bytes ? NULL : "body has the wrong length";
}

/* Take bytes of a head. Returns how many, or 0 after a failure. */
static size_t take_head(struct conn *c, const char *data, size_t len)
{
	size_t old = c->have;
	size_t n = len < HEAD_MAX - old ? len : HEAD_MAX - old;
	const char *wrong;
	char *end;

	memcpy(c->head + old, data, n);
	c->head[old + n] = '\0';
	end = strstr(c->head + (old < 3 ? 0 : old - 3), "\r\n\r\n");
	if (!end && old + n == HEAD_MAX) {
		fail(c, "response head is too long", 0);
		return 0;
	}
	if (!end) {
		c->have += n;
		return n;
	}
	*end = '\0';
	wrong = check_head(c->head);
	if (wrong) {
		fail(c, wrong, 0);
		return 0;
	}
	c->is_in_body = true;
	c->have = 0;
	return (size_t)(end + 4 - c->head) - old;
}

/* Take bytes of a body. Returns how many, or 0 after a failure. */
static size_t take_body(struct conn *c, const char *data, size_t len)
{
	size_t n = len < expect_bytes - c->have ? len : expect_bytes - c->have;

	if (is_learning) {
		memcpy(expect + c->have, data, n);
	} else if (memcmp(expect + c->have, data, n) != 0) {
		fail(c, "body differs", 0);
		return 0;
	}
	c->have += n;
	return n;
}

static void receive(struct conn *c)
{
	static char buf[65536];
	ssize_t got = recv(c->fd, buf, sizeof(buf), 0);
	size_t len, used = 0;

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got <= 0) {
		fail(c, got < 0 ? "recv" : "connection closed by the server", got < 0 ? errno : 0);
		return;
	}
	len = (size_t)got;
	if (c->state != BUSY) {
		fail(c, "an answer to no request", 0);
		return;
	}
	while (used < len && !c->is_in_body) {
		size_t n = take_head(c, buf + used, len - used);

		if (n == 0)
			return;
		used += n;
	}
	if (used < len && c->have < expect_bytes) {
		size_t n = take_body(c, buf + used, len - used);

		if (n == 0)
			return;
		used += n;
	}
	if (!c->is_in_body || c->have < expect_bytes)
		return;
	if (used < len)
		fail(c, "more bytes than Content-Length says", 0);
	else
		answer_complete(c);
}

static void connected(struct conn *c)
{
	int error = client_connected(epoll_fd, c->fd, c);

	if (error)
		fail(c, "connect", error);
	else
		send_request(c, now_ns());
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

static void enter(enum phase next)
{
	static const char *const names[] = { "ramp", "warmup", "measure", "drain" };

	phase = next;
	if (opt.wants_progress)
		fprintf(stderr, "%s %u\n", names[next], nr_established);
}

static void ramp(int64_t until_ns)
{
	unsigned started = 0;

	enter(RAMP);
	while ((started < opt.nr || nr_pending > 0) && now_ns() < until_ns) {
		/*
		 * The first answer teaches what is right, so it comes before all the others are
		 * asked for.
		 */
		unsigned window = has_expect ? RAMP_MAX : 1;

		while (started < opt.nr && nr_pending < window)
			start_connect(&conns[started++]);
		if (nr_pending > 0)
			run_events(until_ns);
	}
	for (unsigned i = 0; i < opt.nr; i++) {
		if (conns[i].state == UNUSED)
			nr_pending++;
		if (!conns[i].is_established && conns[i].state != DEAD)
			fail(&conns[i], "no first answer in time", 0);
	}
}

static void run_until(int64_t until_ns)
{
	while (now_ns() < until_ns && nr_busy > 0)
		run_events(until_ns);
}

static void report(double seconds, int64_t cpu_ns)
{
	unsigned nr_starved = 0;

	for (unsigned i = 0; i < opt.nr; i++)
		nr_starved += conns[i].is_established && conns[i].nr_measured == 0;
	printf("{\"connections\": %u, \"established\": %u, \"failed\": %u, \"requests\": %lu, ",
	       opt.nr, nr_established, opt.nr - nr_established, (unsigned long)nr_requests);
	printf("\"seconds\": %.4f, \"rps\": %.1f, \"p50_us\": %.1f, \"p90_us\": %.1f, ", seconds,
	       seconds > 0 ? (double)nr_requests / seconds : 0.0,
	       (double)histogram_quantile(&latency, 0.5) / 1e3,
	       (double)histogram_quantile(&latency, 0.9) / 1e3);
	printf("\"p99_us\": %.1f, \"p999_us\": %.1f, \"max_us\": %.1f, \"starved\": %u, ",
	       (double)histogram_quantile(&latency, 0.99) / 1e3,
	       (double)histogram_quantile(&latency, 0.999) / 1e3, (double)latency.max_ns / 1e3,
	       nr_starved);
	if (cpu_ns >= 0)
		printf("\"server_cpu_s\": %.6f, ", (double)cpu_ns / 1e9);
	printf("\"body_bytes\": %zu, \"errors\": %lu, \"first_error\": \"%s\"}\n", expect_bytes,
	       (unsigned long)nr_errors, first_error);
}

static void measure(void)
{
	int64_t start_ns, end_ns, cpu_start, cpu_end;

	ramp(now_ns() + (int64_t)(opt.connect_s * 1e9));

	enter(WARMUP);
	for (unsigned i = 0; i < opt.nr; i++) {
		if (conns[i].state == IDLE)
			send_request(&conns[i], now_ns());
	}
	run_until(now_ns() + (int64_t)(opt.warmup_s * 1e9));

	enter(MEASURE);
	cpu_start = server_cpu_ns();
	start_ns = now_ns();
	run_until(start_ns + (int64_t)(opt.duration_s * 1e9));
	end_ns = now_ns();
	cpu_end = server_cpu_ns();

	enter(DRAIN);
	run_until(now_ns() + DRAIN_NS);
	for (unsigned i = 0; i < opt.nr; i++) {
		if (conns[i].state == BUSY)
			fail(&conns[i], "no answer in time", 0);
	}
	report((double)(end_ns - start_ns) / 1e9,
	       cpu_start >= 0 && cpu_end >= 0 ? cpu_end - cpu_start : -1);
}

static void read_expect(const char *name)
{
	FILE *file = fopen(name, "rb");

	if (!file)
		die(name);
	expect_bytes = fread(expect, 1, sizeof(expect), file);
	if (ferror(file) || !feof(file)) {
		fprintf(stderr, "loadgen: %s: cannot be read, or is longer than 1 MiB\n", name);
		exit(2);
	}
	fclose(file);
	has_expect = true;
}

static double number(const char *text, double min, double max)
{
	char *end;
	double value = strtod(text, &end);

	if (!isdigit((unsigned char)*text) || *end || !(value >= min && value <= max)) {
		fprintf(stderr, "loadgen: %s: want a number from %g to %g\n", text, min, max);
		exit(2);
	}
	return value;
}

static void usage(FILE *to)
{
	fputs("usage: loadgen --port N [--host IPV4] [--path /PATH] [--connections N]\n"
	      "               [--duration S] [--warmup S] [--connect-timeout S] [--timeout S]\n"
	      "               [--expect FILE] [--pid PID] [--progress]\n"
	      "  --expect           the right body; without it, the first answer's\n"
	      "  --pid              report the CPU seconds that this process used while we "
	      "measured\n"
	      "  --connect-timeout  for all connections together (20)\n"
	      "  --timeout          give up on everything, without a result, after so many "
	      "seconds\n"
	      "  --progress         tell each phase, and the connections established, on stderr\n",
	      to);
}

static void parse_options(int argc, char **argv)
{
	static const struct option options[] = {
		{ "host", required_argument, NULL, 'H' },
		{ "port", required_argument, NULL, 'p' },
		{ "path", required_argument, NULL, 'P' },
		{ "connections", required_argument, NULL, 'c' },
		{ "duration", required_argument, NULL, 'd' },
		{ "warmup", required_argument, NULL, 'w' },
		{ "timeout", required_argument, NULL, 't' },
		{ "connect-timeout", required_argument, NULL, 'C' },
		{ "expect", required_argument, NULL, 'e' },
		{ "pid", required_argument, NULL, 'i' },
		{ "progress", no_argument, NULL, 'v' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	const char *host = "127.0.0.1";
	unsigned port = 0;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'H':
			host = optarg;
			break;
		case 'p':
			port = (unsigned)number(optarg, 1, 65535);
			break;
		case 'P':
			opt.path = optarg;
			break;
		case 'c':
			opt.nr = (unsigned)number(optarg, 1, 1000000);
			break;
		case 'd':
			opt.duration_s = number(optarg, 0.01, 86400);
			break;
		case 'w':
			opt.warmup_s = number(optarg, 0, 3600);
			break;
		case 'C':
			opt.connect_s = number(optarg, 0.1, 3600);
			break;
		case 't':
			opt.timeout_s = number(optarg, 1, 100000);
			break;
		case 'e':
			read_expect(optarg);
			break;
		case 'i':
			opt.pid = (int)number(optarg, 1, 1 << 30);
			break;
		case 'v':
			opt.wants_progress = true;
			break;
		default:
			usage(option == 'h' ? stdout : stderr);
			exit(option == 'h' ? 0 : 2);
		}
	}
	opt.server.sin_family = AF_INET;
	opt.server.sin_port = htons((uint16_t)port);
	if (optind < argc || port == 0 || inet_pton(AF_INET, host, &opt.server.sin_addr) != 1) {
		usage(stderr);
		exit(2);
	}
	request_bytes = (size_t)snprintf(request, sizeof(request),
					 "GET %s HTTP/1.1\r\nHost: %s:%u\r\n\r\n", opt.path, host,
					 port);
	if (request_bytes >= sizeof(request)) {
		fputs("loadgen: --path is too long\n", stderr);
		exit(2);
	}
}

int main(int argc, char **argv)
{
	parse_options(argc, argv);
	client_allow_files();
	if (opt.timeout_s <= 0)
		opt.timeout_s = opt.connect_s + opt.warmup_s + opt.duration_s + 30;
	alarm((unsigned)opt.timeout_s + 1); /* the default action: die, whatever we are doing */
	conns = calloc(opt.nr, sizeof(*conns));
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (!conns || epoll_fd < 0)
		die("cannot start");
	for (unsigned i = 0; i < opt.nr; i++)
		conns[i].fd = -1;

	measure();
	return nr_errors == 0 && nr_established == opt.nr ? 0 : 1;
}
