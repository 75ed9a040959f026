// SPDX-License-Identifier: Apache-2.0
/* accept() where no descriptor is left fails at once, and waits for a connection as soon as there is one. */
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include "check.h"

#define LIMIT 200

static struct sockaddr_in addr = { .sin_family = AF_INET };
static int listener;

static void *accepts(void *arg)
{
	return (void *)(intptr_t)accept(listener, NULL, NULL);
}

static void *accept_fails(void *arg)
{
	CHECK_ERRNO(accept(listener, NULL, NULL), EMFILE);
	CHECK_ERRNO(accept4(listener, NULL, NULL, SOCK_CLOEXEC), EMFILE);
	return arg;
}

static void check_room(int client)
{
	pthread_t t = start(accepts, NULL);
	int fd;

	let_others_block();
	CHECK_SYS(connect(client, (struct sockaddr *)&addr, sizeof(addr)));
	fd = (int)(intptr_t)join(t);
	CHECK(fd >= 0);
	CHECK_EQ(send(client, "a", 1, 0), 1);
	CHECK_EQ(recv(fd, &(char){ 0 }, 1, 0), 1);
	close(fd);
}

int main(void)
{
	struct rlimit limit = { LIMIT, LIMIT };
	socklen_t len = sizeof(addr);
	int last = -1, fd, clients[2];

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK_SYS(setrlimit(RLIMIT_NOFILE, &limit));
	listener = (int)CHECK_SYS(socket(AF_INET, SOCK_STREAM, 0));
	for (int i = 0; i < 2; i++)
		clients[i] = (int)CHECK_SYS(socket(AF_INET, SOCK_STREAM, 0));
	CHECK_SYS(bind(listener, (struct sockaddr *)&addr, sizeof(addr)));
	CHECK_SYS(listen(listener, 5));
	CHECK_SYS(getsockname(listener, (struct sockaddr *)&addr, &len));
	check_room(clients[0]); /* whatever serves waits has its descriptors now */
	while ((fd = fcntl(listener, F_DUPFD, 0)) >= 0)
		last = fd;
	CHECK_EQ(errno, EMFILE);
	join(start(accept_fails, NULL));
	ok("no descriptor, no wait");
	close(last);
	check_room(clients[1]);
	ok("one is enough");

	/* The limit alone says so, too: what is open stays open. */
	CHECK_SYS(fcntl(listener, F_DUPFD, 0));
	limit.rlim_cur = 3;
	CHECK_SYS(setrlimit(RLIMIT_NOFILE, &limit));
	accept_fails(NULL);
	ok("beyond a lowered limit as well");
	return finish();
}
