// SPDX-License-Identifier: Apache-2.0
// A TCP echo server: a thread for each connection, plain blocking calls, and a deadline around each of its turns. SIGINT and
// SIGTERM end all that waits.
//
// Usage: echo [port [ms of silence after which a connection is closed]]
#include <arpa/inet.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include <weft/weft.h>

static weft_time silence = 10 * WEFT_SEC;
static weft_group server = { .name = "echo", .limit = 10000, .policy = WEFT_EACH };

static void on_signal(int nr)
{
	(void)nr;
	weft_group_cancel(&server);
}

/* One turn: read, and write it back, all of it. The scope ends read() and write() when its time is over. */
static int turn(int fd)
{
	char buf[4096];
	ssize_t n, done = 0, put;
	WEFT_SCOPE(s, weft_now() + silence);

	n = read(fd, buf, sizeof(buf));
	while (done < n) {
		put = write(fd, buf + done, (size_t)(n - done));
		if (put < 0)
			return -1;
		done += put;
	}
	return n > 0 ? 0 : -1;
}

static int serve(void *arg)
{
	int fd = (int)(intptr_t)arg;

	while (turn(fd) == 0)
		;
	close(fd);
	return 0;
}

static int accept_all(void *arg)
{
	int listener = *(int *)arg, fd, ret = 0;

	while (ret == 0) {
		fd = accept(listener, NULL, NULL);
		if (fd <
		    0) /* no descriptors: some may be given back soon. Or the server ends, and this says so. */
			ret = weft_sleep_until(weft_now() + 50 * WEFT_MS);
		else if (weft_group_go(&server, serve, (void *)(intptr_t)fd) < 0)
			close(fd);
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t len = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM, 0), yes = 1;

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	at.sin_port = htons((uint16_t)(argc > 1 ? atoi(argv[1]) : 7007));
	if (argc > 2)
		silence = atol(argv[2]) * WEFT_MS;
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (bind(listener, (struct sockaddr *)&at, len) < 0 || listen(listener, 128) < 0 ||
	    getsockname(listener, (struct sockaddr *)&at, &len) < 0) {
		perror("echo");
		return 1;
	}
	signal(SIGPIPE, SIG_IGN);
	if (weft_group_go(&server, accept_all, &listener) < 0)
		return 1;
	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	printf("port %d\n", ntohs(at.sin_port));
	fflush(stdout);
	weft_group_wait(&server); /* all have closed what they had */
	close(listener);
	puts("ended");
	return 0;
}
