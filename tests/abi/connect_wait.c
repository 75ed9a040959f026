// SPDX-License-Identifier: Apache-2.0
/*
 * connect() that has to wait, as for a host that does not answer: a listener whose queue is full stays silent.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include "check.h"

#define NR 20

static struct sockaddr_in addr;
static int listener;
static int fillers[8], nr_fillers;
static int is_over;

static int tcp(void)
{
	return (int)CHECK_SYS(socket(AF_INET, SOCK_STREAM, 0));
}

/* No further connection is answered until somebody accepts. */
static void fill_queue(void)
{
	socklen_t len = sizeof(addr);

	addr = (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	listener = tcp();
	CHECK_SYS(bind(listener, (struct sockaddr *)&addr, sizeof(addr)));
	CHECK_SYS(listen(listener, 0));
	CHECK_SYS(getsockname(listener, (struct sockaddr *)&addr, &len));
	for (nr_fillers = 0; nr_fillers < 1; nr_fillers++) {
		fillers[nr_fillers] = tcp();
		CHECK_SYS(connect(fillers[nr_fillers], (struct sockaddr *)&addr, sizeof(addr)));
	}
}

static void empty_queue(void)
{
	for (int i = 0; i < nr_fillers; i++) {
		close((int)CHECK_SYS(accept(listener, NULL, NULL)));
		close(fillers[i]);
	}
}

static void *connects(void *arg)
{
	int fd = tcp();
	char c = 0;

	CHECK_SYS(connect(fd, (struct sockaddr *)&addr, sizeof(addr)));
	CHECK_EQ(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
	CHECK_EQ(send(fd, "x", 1, 0), 1);
	CHECK_EQ(recv(fd, &c, 1, 0), 1);
	CHECK_EQ(c, 'x');
	CHECK_ERRNO(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), EISCONN);
	close(fd);
	return arg;
}

static void *times_out(void *arg)
{
	struct timeval tv = { .tv_usec = 50000 };
	int fd = tcp();
	int64_t before = now_ns();

	CHECK_SYS(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)));
	CHECK_ERRNO(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), EINPROGRESS);
	CHECK(now_ns() - before >= 48 * MS);
	close(fd);
	return arg;
}

static void on_signal(int sig)
{
	(void)sig;
}

static void *is_interrupted(void *arg)
{
	int fd = tcp();

	CHECK_ERRNO(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), EINTR);
	STORE(&is_over, 1);
	close(fd);
	return arg;
}

static void *does_not_wait(void *arg)
{
	int fd = tcp();

	CHECK_SYS(fcntl(fd, F_SETFL, O_NONBLOCK));
	CHECK_ERRNO(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), EINPROGRESS);
	CHECK_ERRNO(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), EALREADY);
	close(fd);
	return arg;
}

int main(void)
{
	struct sigaction sa = { .sa_handler = on_signal };
	pthread_t t[NR];

	fill_queue();
	join(start(times_out, NULL));
	ok("SO_SNDTIMEO ends a connect");
	join(start(does_not_wait, NULL));
	ok("O_NONBLOCK");

	CHECK_SYS(sigaction(SIGUSR1, &sa, NULL));
	t[0] = start(is_interrupted, NULL);
	while (!LOAD(&is_over)) {
		let_others_block();
		pthread_kill(t[0], SIGUSR1);
	}
	join(t[0]);
	ok("EINTR");

	/* A connection that waits is tried again by the kernel after a second: served one by one, all get through. */
	for (int i = 0; i < NR; i++)
		t[i] = start(connects, NULL);
	let_others_block();
	CHECK_SYS(listen(listener, 64));
	empty_queue();
	for (int i = 0; i < NR;) {
		int fd = (int)CHECK_SYS(accept(listener, NULL, NULL));
		char c;

		/* Those that gave up before are in the queue, too. */
		if (recv(fd, &c, 1, 0) == 1) {
			CHECK_EQ(send(fd, &c, 1, 0), 1);
			i++;
		}
		close(fd);
	}
	for (int i = 0; i < NR; i++)
		join(t[i]);
	ok("20 that wait get through");
	return finish();
}
