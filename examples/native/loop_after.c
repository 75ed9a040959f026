// SPDX-License-Identifier: Apache-2.0
// A service as blocking code: a client sends words, one in a line, and is told how often all clients together have sent each.
// "bye" ends it, and so does a time without a whole line, or without reading. loop_before.c is the same as an epoll loop.
//
// Usage: loop_after [port [ms of silence]]
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <weft/weft.h>

#define LONGEST 64
#define MOST_WORDS 1000

static weft_time silence = 10 * WEFT_SEC;
static weft_group server = { .name = "words", .policy = WEFT_EACH };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	char text[LONGEST];
	long count;
} words[MOST_WORDS];

static void on_signal(int nr)
{
	(void)nr;
	weft_group_cancel(&server);
}

/* Returns: how often; 0: it is one too many. */
static long count(const char *word)
{
	long ret = 0;
	int i = 0;

	pthread_mutex_lock(&lock);
	while (i < MOST_WORDS && words[i].count && strcmp(words[i].text, word) != 0)
		i++;
	if (i < MOST_WORDS) {
		strcpy(words[i].text, word);
		ret = ++words[i].count;
	}
	pthread_mutex_unlock(&lock);
	return ret;
}

/* One turn: a line, and its answer. Returns: false: the client is gone, or to be let go. */
static bool turn(int fd, char *in, size_t *have)
{
	char out[LONGEST + 32], *newline;
	size_t len, sent = 0;
	ssize_t n;
	WEFT_SCOPE(s, weft_now() + silence);

	while (!(newline = memchr(in, '\n', *have))) {
		n = *have < LONGEST ? read(fd, in + *have, LONGEST - *have) : -1;
		if (n <= 0)
			return false;
		*have += (size_t)n;
	}
	*newline = '\0';
	if (strcmp(in, "bye") == 0)
		return false;
	len = (size_t)snprintf(out, sizeof(out), "%ld %s\n", count(in), in);
	*have -= (size_t)(newline + 1 - in);
	memmove(in, newline + 1, *have);
	for (; sent < len; sent += (size_t)n) {
		n = write(fd, out + sent, len - sent);
		if (n < 0)
			return false;
	}
	return true;
}

static int serve(void *arg)
{
	int fd = (int)(intptr_t)arg;
	char in[LONGEST];
	size_t have = 0;

	while (turn(fd, in, &have))
		;
	close(fd);
	return 0;
}

static int accept_all(void *arg)
{
	int listener = *(int *)arg, fd, ret = 0;

	while (ret != -ECANCELED) {
		fd = accept(listener, NULL, NULL);
		if (fd < 0) {
			/* No descriptors, for now; or the server ends, and this says so. */
			ret = weft_sleep_until(weft_now() + 50 * WEFT_MS);
		} else {
			ret = weft_group_go(&server, serve, (void *)(intptr_t)fd);
			if (ret < 0)
				close(fd);
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
	at.sin_port = htons((uint16_t)(argc > 1 ? atoi(argv[1]) : 7010));
	if (argc > 2)
		silence = atoi(argv[2]) * WEFT_MS;
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (bind(listener, (struct sockaddr *)&at, len) < 0 || listen(listener, 128) < 0 ||
	    getsockname(listener, (struct sockaddr *)&at, &len) < 0) {
		perror("loop_after");
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
