// SPDX-License-Identifier: Apache-2.0
/*
 * httpd: a small web server that gives every connection a thread of its own.
 *
 * Plain POSIX: one pthread_create() per connection, blocking accept(), read() and write(), a mutex
 * and a condition variable. It knows nothing of the runtime that carries its threads, so the same
 * binary runs natively and under `weft run`, and the difference between the two is the runtime
 * alone.
 *
 * http.c answers GET and HEAD: "/" is a page held in memory, "/stats" counts threads as JSON, and
 * everything else is a file below --root. Connections are kept alive, and pipelined requests are
 * answered in order.
 *
 * The threads: main() waits for SIGTERM or SIGINT; one thread accepts; every other thread owns one
 * connection.
 *
 * Invariant: a connection is on server.conns exactly as long as its descriptor is open, so whoever
 * holds server.lock may shut down any descriptor that it finds there.
 */
#include "http.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define GRACE_S 5         /* how long a stopping server waits for its connections */
#define ROOM_NS 100000000 /* out of descriptors or memory: look again after 0.1 s at the latest */

/* One connection. Belongs to its thread, but for the links, which are under server.lock. */
struct conn {
	struct conn *prev, *next;
	struct http http;
};

static size_t write_stats(char *out, size_t size, unsigned long nr_requests);

static struct {
	pthread_mutex_t lock;
	pthread_cond_t gone;           /* a connection ended, or the server stops */
	struct conn *conns;            /* under lock */
	unsigned live, peak;           /* under lock: connection threads now, and at most so far */
	unsigned long served, refused; /* under lock: threads started; connections that got none */
	struct http_site site;
	int listen_fd;
	pthread_attr_t attr;
} server = { .lock = PTHREAD_MUTEX_INITIALIZER,
	     .listen_fd = -1,
	     .site = { .root_fd = -1, .timeout_s = 30, .stats = write_stats } };

static void die(const char *what, int error)
{
	fprintf(stderr, "httpd: %s: %s\n", what, strerror(error));
	exit(1);
}

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
}

/* Wait for server.gone until `until_ns`; false when the time is up. Called with the lock held. */
static bool wait_gone(int64_t until_ns)
{
	struct timespec ts = { .tv_sec = until_ns / 1000000000, .tv_nsec = until_ns % 1000000000 };

	return pthread_cond_timedwait(&server.gone, &server.lock, &ts) == 0;
}

static size_t write_stats(char *out, size_t size, unsigned long nr_requests)
{
	int len;

	pthread_mutex_lock(&server.lock);
	len = snprintf(
		out, size,
		"{\"threads\": {\"live\": %u, \"peak\": %u, \"served\": %lu, \"refused\": %lu}, "
		"\"requests\": %lu}\n",
		server.live, server.peak, server.served, server.refused, nr_requests);
	pthread_mutex_unlock(&server.lock);
	return (size_t)len;
}

/* ---- Threads ---- */

static void add_conn(struct conn *c)
{
	pthread_mutex_lock(&server.lock);
	c->next = server.conns;
	if (c->next)
		c->next->prev = c;
	server.conns = c;
	if (++server.live > server.peak)
		server.peak = server.live;
	server.served++;
	pthread_mutex_unlock(&server.lock);
}

static void remove_conn(struct conn *c)
{
	pthread_mutex_lock(&server.lock);
	if (c->next)
		c->next->prev = c->prev;
	if (c->prev)
		c->prev->next = c->next;
	else
		server.conns = c->next;
	/*
	 * Under the lock: stop_connections() must not shut down a number that was given away
	 * again.
	 */
	close(c->http.fd);
	server.live--;
	pthread_cond_broadcast(&server.gone);
	pthread_mutex_unlock(&server.lock);
	free(c);
}

static void *connection_thread(void *arg)
{
	struct conn *c = arg;

	http_serve(&c->http);
	remove_conn(c);
	return NULL;
}

static void start_connection(int fd)
{
	struct timeval timeout = { .tv_sec = server.site.timeout_s };
	struct conn *c = malloc(sizeof(*c));
	pthread_t thread;
	int on = 1;

	if (!c) {
		close(fd);
		return;
	}
	c->prev = NULL;
	http_init(&c->http, &server.site, fd);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	add_conn(c);
	if (pthread_create(&thread, &server.attr, connection_thread, c) != 0) {
		http_turn_away(&c->http);
		pthread_mutex_lock(&server.lock);
		server.served--;
		server.refused++;
		pthread_mutex_unlock(&server.lock);
		remove_conn(c);
	}
}

static void *accept_thread(void *arg)
{
	(void)arg;
	for (;;) {
		int fd = accept(server.listen_fd, NULL, NULL);

		if (atomic_load(&server.site.is_stopping)) {
			if (fd >= 0)
				close(fd);
			return NULL;
		}
		if (fd >= 0) {
			start_connection(fd);
		} else if (errno != EINTR && errno != ECONNABORTED) {
			/*
			 * Out of descriptors or memory. The client waits in the backlog until
			 * somebody leaves.
			 */
			pthread_mutex_lock(&server.lock);
			wait_gone(now_ns() + ROOM_NS);
			pthread_mutex_unlock(&server.lock);
		}
	}
}

/*
 * Let every connection finish the request that it is working on. Returns how many did not within
 * the grace time.
 */
static unsigned stop_connections(void)
{
	int64_t until_ns = now_ns() + GRACE_S * INT64_C(1000000000);
	unsigned left;

	pthread_mutex_lock(&server.lock);
	for (struct conn *c = server.conns; c; c = c->next)
		shutdown(c->http.fd,
			 SHUT_RD); /* whoever waits for a request reads the end of the stream */
	while (server.live > 0 && wait_gone(until_ns))
		;
	left = server.live;
	pthread_mutex_unlock(&server.lock);
	return left;
}

/* ---- Start and stop ---- */

/* Returns the port, which the kernel picks when `port` is 0. */
static unsigned open_listener(const char *address, unsigned long port)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	socklen_t len = sizeof(sin);
	int on = 1;

	if (inet_pton(AF_INET, address, &sin.sin_addr) != 1)
		die(address, EINVAL);
	server.listen_fd = socket(AF_INET, SOCK_STREAM, 0);
	if (server.listen_fd < 0)
		die("socket", errno);
	setsockopt(server.listen_fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(server.listen_fd, (struct sockaddr *)&sin, sizeof(sin)) < 0)
		die("bind", errno);
	if (listen(server.listen_fd, 4096) < 0)
		die("listen", errno);
	if (getsockname(server.listen_fd, (struct sockaddr *)&sin, &len) < 0)
		die("getsockname", errno);
	return ntohs(sin.sin_port);
}

static void prepare(size_t stack_bytes, sigset_t *stop_signals)
{
	struct rlimit files;
	pthread_condattr_t clock;
	int error;

	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	signal(SIGPIPE, SIG_IGN);
	/*
	 * Blocked here and inherited by every thread, so that only sigwait() in main() ever
	 * takes them.
	 */
	sigemptyset(stop_signals);
	sigaddset(stop_signals, SIGTERM);
	sigaddset(stop_signals, SIGINT);
	pthread_sigmask(SIG_BLOCK, stop_signals, NULL);

	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&server.gone, &clock);
	pthread_condattr_destroy(&clock);

	pthread_attr_init(&server.attr);
	pthread_attr_setdetachstate(&server.attr, PTHREAD_CREATE_DETACHED);
	error = pthread_attr_setstacksize(&server.attr, stack_bytes);
	if (error)
		die("--stack", error);
}

static unsigned long number(const char *text, unsigned long min, unsigned long max)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (!isdigit((unsigned char)*text) || *end || value < min || value > max) {
		fprintf(stderr, "httpd: %s: want a number from %lu to %lu\n", text, min, max);
		exit(2);
	}
	return value;
}

static void usage(FILE *to)
{
	fputs("usage: httpd [--port N] [--bind IPV4] [--root DIR] [--stack BYTES] [--timeout "
	      "SECONDS]\n"
	      "  --port     0, the default, picks a free one; the address is printed when the "
	      "server is ready\n"
	      "  --bind     address to listen on (127.0.0.1)\n"
	      "  --root     also serve the files below this directory\n"
	      "  --stack    stack of a connection's thread (131072)\n"
	      "  --timeout  close a connection after so many idle seconds (30)\n",
	      to);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "port", required_argument, NULL, 'p' },
		{ "bind", required_argument, NULL, 'b' },
		{ "root", required_argument, NULL, 'r' },
		{ "stack", required_argument, NULL, 's' },
		{ "timeout", required_argument, NULL, 't' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	const char *address = "127.0.0.1";
	unsigned long port = 0, stack_bytes = 131072;
	sigset_t stop_signals;
	pthread_t acceptor;
	unsigned bound_port, left;
	int option, got, error;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'p':
			port = number(optarg, 0, 65535);
			break;
		case 'b':
			address = optarg;
			break;
		case 's':
			stack_bytes = number(optarg, 32768, 1UL << 30);
			break;
		case 't':
			server.site.timeout_s = (int)number(optarg, 1, 86400);
			break;
		case 'r':
			server.site.root_fd = open(optarg, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
			if (server.site.root_fd < 0)
				die(optarg, errno);
			break;
		default:
			usage(option == 'h' ? stdout : stderr);
			return option == 'h' ? 0 : 2;
		}
	}
	if (optind < argc) {
		usage(stderr);
		return 2;
	}

	prepare(stack_bytes, &stop_signals);
	bound_port = open_listener(address, port);
	error = pthread_create(&acceptor, NULL, accept_thread, NULL);
	if (error)
		die("cannot start the accepting thread", error);
	printf("listening on %s:%u\n", address, bound_port);
	fflush(stdout);

	sigwait(&stop_signals, &got);

	atomic_store(&server.site.is_stopping, true);
	shutdown(server.listen_fd, SHUT_RDWR); /* ends the accept() that waits */
	pthread_join(acceptor, NULL);
	close(server.listen_fd);
	left = stop_connections();
	if (left > 0)
		fprintf(stderr, "httpd: %u connections did not finish within %d s\n", left,
			GRACE_S);
	return left > 0;
}
