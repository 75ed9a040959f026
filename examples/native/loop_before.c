// SPDX-License-Identifier: Apache-2.0
// A service as an epoll loop: a client sends words, one in a line, and is told how often all clients together have sent each.
// "bye" ends it, and so does a time without a whole line, or without reading. loop_after.c is the same as blocking code.
//
// Usage: loop_before [port [ms of silence]]
#define _GNU_SOURCE 1 /* accept4 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define LONGEST 64
#define MOST_WORDS 1000

/* Where a client is in its conversation: what blocking code has on its stack. */
struct client {
	int fd;
	size_t have; /* bytes in `in` */
	char in[LONGEST];
	size_t out_have, out_sent;
	char out[LONGEST + 32]; /* one answer; the next line waits until it has been sent */
	int64_t until;
	struct client *next, **at; /* in the list, where the first one's time is over first */
};

static int64_t silence = 10000;
static struct client *clients, **end = &clients;
/* The addresses of two of them stand for what they are in the epoll set. */
static int loop, listener, signals;
static bool is_full; /* no descriptor was left: the listener is not asked until a client goes */
static struct {
	char text[LONGEST];
	long count;
} words[MOST_WORDS];

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Returns: how often; 0: it is one too many. */
static long count(const char *word)
{
	int i = 0;

	while (i < MOST_WORDS && words[i].count && strcmp(words[i].text, word) != 0)
		i++;
	if (i == MOST_WORDS)
		return 0;
	strcpy(words[i].text, word);
	return ++words[i].count;
}

static void take_out(struct client *c)
{
	*c->at = c->next;
	if (c->next)
		c->next->at = c->at;
	else
		end = c->at;
}

static void put_last(struct client *c)
{
	c->until = now() + silence;
	c->next = NULL;
	c->at = end;
	*end = c;
	end = &c->next;
}

static void ask_listener(bool yes)
{
	struct epoll_event e = { .events = yes ? EPOLLIN : 0, .data.ptr = &listener };

	is_full = !yes;
	epoll_ctl(loop, EPOLL_CTL_MOD, listener, &e);
}

static void drop(struct client *c)
{
	take_out(c);
	close(c->fd); /* which takes it out of the epoll set */
	free(c);
	if (is_full)
		ask_listener(true);
}

static void want(struct client *c, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.ptr = c };

	epoll_ctl(loop, EPOLL_CTL_MOD, c->fd, &e);
}

/* Send what is left of the answer. Returns: false: the client is gone, or not ready. */
static bool flush_out(struct client *c, bool *is_gone)
{
	ssize_t n;

	while (c->out_sent < c->out_have) {
		n = write(c->fd, c->out + c->out_sent, c->out_have - c->out_sent);
		if (n < 0) {
			*is_gone = errno != EAGAIN;
			return false;
		}
		c->out_sent += (size_t)n;
	}
	c->out_have = c->out_sent = 0;
	return true;
}

/* Answer the lines that are there. Returns: false: the client is gone, or to be let go. */
static bool answer_lines(struct client *c)
{
	char line[LONGEST], *newline;
	bool is_gone = false;
	size_t len;

	for (;;) {
		if (!flush_out(c, &is_gone)) {
			want(c, EPOLLOUT);
			return !is_gone;
		}
		newline = memchr(c->in, '\n', c->have);
		if (!newline)
			break;
		*newline = '\0';
		strcpy(line, c->in);
		len = (size_t)(newline + 1 - c->in);
		c->have -= len;
		memmove(c->in, c->in + len, c->have);
		if (strcmp(line, "bye") == 0)
			return false;
		c->out_have = (size_t)snprintf(c->out, sizeof(c->out), "%ld %s\n", count(line),
					       line);
		take_out(c);
		put_last(c);
	}
	want(c, EPOLLIN);
	return c->have < sizeof(c->in);
}

static void on_client(struct client *c)
{
	ssize_t n = 0;

	if (!c->out_have) {
		n = read(c->fd, c->in + c->have, sizeof(c->in) - c->have);
		if (n == 0 || (n < 0 && errno != EAGAIN)) {
			drop(c);
			return;
		}
		c->have += n > 0 ? (size_t)n : 0;
	}
	if (!answer_lines(c))
		drop(c);
}

static void on_listener(void)
{
	int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
	struct client *c = fd >= 0 ? calloc(1, sizeof(*c)) : NULL;
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = c };

	if (c && epoll_ctl(loop, EPOLL_CTL_ADD, fd, &e) == 0) {
		c->fd = fd;
		put_last(c);
		return;
	}
	free(c);
	if (fd >= 0)
		close(fd);
	else if (clients && (errno == EMFILE || errno == ENFILE))
		ask_listener(false);
}

static void run(void)
{
	struct epoll_event e;
	int64_t wait;
	int n;

	for (;;) {
		while (clients && clients->until <= now())
			drop(clients);
		wait = clients ? clients->until - now() : -1;
		n = epoll_wait(loop, &e, 1, clients && wait < 0 ? 0 : (int)wait);
		if (n < 1)
			continue;
		if (e.data.ptr == &signals)
			break;
		if (e.data.ptr == &listener)
			on_listener();
		else
			on_client(e.data.ptr);
	}
	while (clients)
		drop(clients);
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	struct epoll_event for_listener = { .events = EPOLLIN, .data.ptr = &listener },
			   for_signals = { .events = EPOLLIN, .data.ptr = &signals };
	socklen_t len = sizeof(at);
	int yes = 1;
	sigset_t set;

	listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	at.sin_port = htons((uint16_t)(argc > 1 ? atoi(argv[1]) : 7010));
	if (argc > 2)
		silence = atoi(argv[2]);
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	signals = signalfd(-1, &set, 0);
	loop = epoll_create1(0);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (bind(listener, (struct sockaddr *)&at, len) < 0 || listen(listener, 128) < 0 ||
	    getsockname(listener, (struct sockaddr *)&at, &len) < 0 ||
	    epoll_ctl(loop, EPOLL_CTL_ADD, listener, &for_listener) < 0 ||
	    epoll_ctl(loop, EPOLL_CTL_ADD, signals, &for_signals) < 0) {
		perror("loop_before");
		return 1;
	}
	printf("port %d\n", ntohs(at.sin_port));
	fflush(stdout);
	run();
	puts("ended");
	return 0;
}
