// SPDX-License-Identifier: Apache-2.0
/*
 * daemon(3): before the first thread, after threads, and from a thread of a process that has several. The rest is
 * one thread in a session of its own, without a terminal, that can make threads and serve.
 */
#include "check.h"

#include <fcntl.h>

#define NR 8

static int report[2], commands[2], keep_directory;

static void *adds(void *arg)
{
	ADD((int *)arg, 1);
	return NULL;
}

static void *echoes(void *arg)
{
	char c;

	while (read(commands[0], &c, 1) == 1)
		if (write(report[1], &c, 1) != 1)
			break;
	return arg;
}

/* In the daemon. Its standard streams are gone: what is wrong goes into the pipe as a letter that nobody wants. */
static void serve(pid_t parent)
{
	char where[64] = "", link[64] = "";
	pthread_t t[NR], server;
	int sum = 0;

	if (getpid() == parent)
		(void)!write(report[1], "1", 1);
	if (getsid(0) != getpid() || open("/dev/tty", O_RDWR) != -1)
		(void)!write(report[1], "2", 1);
	if (!getcwd(where, sizeof(where)) || (strcmp(where, "/") == 0) == keep_directory)
		(void)!write(report[1], "3", 1);
	if (readlink("/proc/self/fd/1", link, sizeof(link) - 1) < 0 || strcmp(link, "/dev/null"))
		(void)!write(report[1], "4", 1);
	close(commands[1]);
	server = start(echoes, NULL);
	for (int i = 0; i < NR; i++)
		t[i] = start(adds, &sum);
	for (int i = 0; i < NR; i++)
		join(t[i]);
	if (sum != NR)
		(void)!write(report[1], "5", 1);
	join(server);
	_exit(0);
}

static void *becomes_daemon(void *parent)
{
	if (daemon(keep_directory, 0) == 0)
		serve((pid_t)(intptr_t)parent);
	_exit(1);
}

static void *waits(void *arg)
{
	pause();
	return arg;
}

enum {
	BEFORE_THREADS,
	AFTER_THREADS,
	IN_THREAD
};

static void in_child(int when)
{
	void *parent = (void *)(intptr_t)getpid();
	int sum = 0;

	close(report[0]);
	if (when == AFTER_THREADS)
		join(start(adds, &sum));
	if (when == IN_THREAD) {
		start(waits, NULL);
		join(start(becomes_daemon, parent));
	}
	becomes_daemon(parent);
}

static void try(const char *what, int when)
{
	char got[16] = "";
	size_t len = 0;
	ssize_t n;
	pid_t pid;

	CHECK_SYS(pipe(report));
	CHECK_SYS(pipe(commands));
	keep_directory = when == AFTER_THREADS;
	pid = fork();
	if (pid == 0)
		in_child(when);
	CHECK_SYS(pid);
	reap(pid); /* what called daemon() has ended, well */
	close(report[1]);
	close(commands[0]);
	CHECK_EQ(write(commands[1], "abc", 3), 3);
	close(commands[1]);
	while (len < sizeof(got) - 1 && (n = read(report[0], got + len, sizeof(got) - 1 - len)) > 0)
		len += (size_t)n;
	CHECK_STR(got, "abc");
	close(report[0]);
	ok(what);
}

int main(void)
{
	CHECK_SYS(chdir("/proc/self"));
	try("before its first thread", BEFORE_THREADS);
	try("after threads", AFTER_THREADS);
	try("in a thread, beside another", IN_THREAD);
	return finish();
}
