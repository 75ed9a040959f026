// SPDX-License-Identifier: Apache-2.0
// A chat server: a thread for each client, which waits for what the client says and for what it is to be told, both in one
// select. A client that does not read has its channel fill, and is let go: it holds up nobody.
//
// Usage: chat [port]      Clients send lines: /nick NAME, /leave, and what all the others are to read.
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <weft/weft.h>

#define LONGEST 400 /* bytes of a line that a client sends */
#define WAITING 64  /* lines that a client may be behind */

struct line {
	char text[LONGEST + 48];
};

struct client {
	int fd;
	char nick[32];
	weft_chan *out; /* of lines */
	struct client *next;
	size_t have; /* bytes in `in` */
	char in[LONGEST];
};

static weft_group server = { .name = "chat", .limit = 10000, .policy = WEFT_EACH };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the list, and of the nicks in it */
static struct client *clients;
static unsigned nr_guests;

static void on_signal(int nr)
{
	(void)nr;
	weft_group_cancel(&server);
}

/* To all but `from`. Nobody is waited for. */
static void tell_others(struct client *from, const char *verb, const char *text)
{
	struct line l;

	snprintf(l.text, sizeof(l.text), "%s%s%s\n", from->nick, verb, text);
	pthread_mutex_lock(&lock);
	for (struct client *c = clients; c; c = c->next) {
		if (c != from && weft_chan_send(c->out, &l, WEFT_NOW) < 0)
			shutdown(c->fd, SHUT_RDWR); /* too far behind; this ends its write() */
	}
	pthread_mutex_unlock(&lock);
}

/* Only the client's own thread writes to it. */
static int put(struct client *c, const char *text)
{
	size_t len = strlen(text);
	ssize_t n;
	WEFT_SCOPE(s, weft_now() + 10 * WEFT_SEC);

	for (; len; text += n, len -= (size_t)n) {
		n = write(c->fd, text, len);
		if (n < 0)
			return -errno;
	}
	return 0;
}

static int rename_to(struct client *c, const char *nick)
{
	bool is_free = *nick && strlen(nick) < sizeof(c->nick) && !strchr(nick, ' ');
	char old[sizeof(c->nick)];

	pthread_mutex_lock(&lock);
	strcpy(old, c->nick);
	for (struct client *o = clients; o && is_free; o = o->next)
		is_free = strcmp(o->nick, nick) != 0;
	if (is_free)
		strcpy(c->nick, nick);
	pthread_mutex_unlock(&lock);
	if (!is_free)
		return put(c, "* no: it is taken, or no name\n");
	tell_others(c, " was ", old);
	return put(c, "* ok\n");
}

/* Returns: 0, or that the client leaves. */
static int obey(struct client *c, char *text)
{
	text[strcspn(text, "\r")] = '\0';
	for (char *p = text; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			*p = '?'; /* nobody shall send codes to the terminals of others */
	if (strcmp(text, "/leave") == 0)
		return -1;
	if (strncmp(text, "/nick ", 6) == 0)
		return rename_to(c, text + 6);
	if (text[0] == '/')
		return put(c, "* /nick NAME, /leave\n");
	if (*text)
		tell_others(c, ": ", text);
	return 0;
}

/* Returns: 0, or that the client is gone, or has sent a line that is too long. */
static int listen_to(struct client *c)
{
	ssize_t n = read(c->fd, c->in + c->have, sizeof(c->in) - c->have);
	char *start = c->in, *end;
	int ret = 0;

	if (n <= 0)
		return -1;
	c->have += (size_t)n;
	while (ret == 0 && (end = memchr(start, '\n', c->have))) {
		*end = '\0';
		ret = obey(c, start);
		c->have -= (size_t)(end + 1 - start);
		start = end + 1;
	}
	memmove(c->in, start, c->have);
	if (ret == 0 && c->have == sizeof(c->in)) {
		(void)put(c, "* too long\n");
		return -1;
	}
	return ret;
}

static int serve(void *arg)
{
	struct client *c = arg;
	struct client **at;
	struct line l;
	int ret = 0;

	tell_others(c, " is here", "");
	while (ret == 0) {
		struct weft_op ops[] = { WEFT_RECV(c->out, &l), WEFT_FD(c->fd, POLLIN) };

		switch (weft_select(ops, 2, WEFT_NEVER)) {
		case 0:
			ret = put(c, l.text);
			break;
		case 1:
			ret = listen_to(c);
			break;
		default:
			ret = -1; /* the server ends */
		}
	}
	tell_others(c, " has left", "");
	pthread_mutex_lock(&lock);
	for (at = &clients; *at != c; at = &(*at)->next)
		;
	*at = c->next;
	pthread_mutex_unlock(&lock);
	close(c->fd);
	weft_chan_free(c->out);
	free(c);
	return 0;
}

static void welcome(int fd)
{
	struct client *c = calloc(1, sizeof(*c));

	if (c)
		c->out = weft_chan_new(sizeof(struct line), WAITING, "lines of a client");
	if (!c || !c->out) {
		free(c);
		close(fd);
		return;
	}
	c->fd = fd;
	pthread_mutex_lock(&lock);
	snprintf(c->nick, sizeof(c->nick), "guest %u",
		 ++nr_guests); /* the space: nobody can take it */
	c->next = clients;
	clients = c;
	pthread_mutex_unlock(&lock);
	if (weft_group_go(&server, serve, c) == 0)
		return;
	pthread_mutex_lock(&lock);
	clients = c->next; /* nobody else adds */
	pthread_mutex_unlock(&lock);
	close(fd);
	weft_chan_free(c->out);
	free(c);
}

static int accept_all(void *arg)
{
	struct weft_op ready = WEFT_FD(*(int *)arg, POLLIN);
	int fd;

	while (weft_select(&ready, 1, WEFT_NEVER) == 0) {
		fd = accept(*(int *)arg, NULL, NULL);
		if (fd >= 0)
			welcome(fd);
		else if (weft_sleep_until(weft_now() + 50 * WEFT_MS) < 0) /* no descriptors */
			break;
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t len = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM, 0), yes = 1;

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	at.sin_port = htons((uint16_t)(argc > 1 ? atoi(argv[1]) : 7008));
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (bind(listener, (struct sockaddr *)&at, len) < 0 || listen(listener, 128) < 0 ||
	    getsockname(listener, (struct sockaddr *)&at, &len) < 0) {
		perror("chat");
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
