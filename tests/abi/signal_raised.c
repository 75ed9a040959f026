// SPDX-License-Identifier: Apache-2.0
/*
 * Signals that a call raises for its caller: SIGPIPE by whatever writes to what nobody reads, SIGXFSZ beyond
 * the limit of a file's size. The plain kernel says what is to be printed.
 */
#include "check.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define LIMIT 4096

static volatile int handled;

static void handler(int sig)
{
	handled = sig;
}

#define SHOW(what, call)                                                                           \
	do {                                                                                       \
		long ret_;                                                                         \
		handled = 0;                                                                       \
		errno = 0;                                                                         \
		ret_ = (call);                                                                     \
		printf("%s: %ld, errno %d, signal %d\n", what, ret_, errno, handled);              \
	} while (0)

static void *grows(void *arg)
{
	char path[] = "/tmp/abi_raised_XXXXXX", buf[2 * LIMIT] = { 0 };
	struct iovec vec = { buf, 10 };
	int fd = mkstemp(path), from;
	sigset_t pending;

	unlink(path);
	SHOW("write", write(fd, buf, sizeof(buf)));
	SHOW("write at the limit", write(fd, buf, 10));
	SHOW("writev", writev(fd, &vec, 1));
	SHOW("pwrite", pwrite(fd, buf, 10, 10 * LIMIT));
	SHOW("pwritev", pwritev(fd, &vec, 1, 10 * LIMIT));
	SHOW("ftruncate", ftruncate(fd, 10 * LIMIT));
	SHOW("fallocate", fallocate(fd, 0, 0, 10 * LIMIT));
	from = open("/proc/self/exe", O_RDONLY);
	SHOW("sendfile", sendfile(fd, from, NULL, 10));
	sigpending(&pending);
	CHECK(!sigismember(&pending, SIGXFSZ));
	close(from);
	close(fd);
	return arg;
}

static void *writes(void *arg)
{
	int to[2], from[2], sock[2], file = open("/proc/self/exe", O_RDONLY);
	char buf[10] = { 0 };
	struct iovec vec = { buf, sizeof(buf) };
	struct msghdr msg = { .msg_iov = &vec, .msg_iovlen = 1 };
	struct mmsghdr mmsg = { .msg_hdr = msg };
	sigset_t pending;

	CHECK_SYS(pipe(to));
	CHECK_SYS(pipe(from));
	CHECK_SYS(socketpair(AF_UNIX, SOCK_STREAM, 0, sock));
	CHECK_EQ(write(from[1], buf, 1), 1);
	close(to[0]);
	close(sock[0]);
	SHOW("write", write(to[1], buf, 10));
	SHOW("writev", writev(to[1], &vec, 1));
	SHOW("pwritev2", pwritev2(to[1], &vec, 1, -1, 0));
	SHOW("vmsplice", vmsplice(to[1], &vec, 1, 0));
	SHOW("splice", splice(file, NULL, to[1], NULL, 10, 0));
	SHOW("tee", tee(from[0], to[1], 1, 0));
	SHOW("sendfile", sendfile(to[1], file, NULL, 10));
	SHOW("socket: send", send(sock[1], buf, 1, 0));
	SHOW("socket: send without", send(sock[1], buf, 1, MSG_NOSIGNAL));
	SHOW("socket: write", write(sock[1], buf, 1));
	SHOW("socket: sendmsg", sendmsg(sock[1], &msg, 0));
	SHOW("socket: sendmmsg", sendmmsg(sock[1], &mmsg, 1, 0));
	SHOW("socket: sendfile", sendfile(sock[1], file, NULL, 10));
	SHOW("socket: splice", splice(from[0], NULL, sock[1], NULL, 1, 0));
	sigpending(&pending);
	CHECK(!sigismember(&pending, SIGPIPE));
	close(file);
	return arg;
}

static void check_death(int sig, void *(*fn)(void *))
{
	int status = -1;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		struct rlimit none = { 0, 0 };

		setrlimit(RLIMIT_CORE, &none);
		signal(sig, SIG_DFL);
		freopen("/dev/null", "w", stdout);
		join(start(fn, NULL));
		_exit(0);
	}
	CHECK_SYS(waitpid(pid, &status, 0));
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == sig);
}

int main(void)
{
	struct rlimit limit = { LIMIT, LIMIT };

	setrlimit(RLIMIT_FSIZE, &limit);
	signal(SIGXFSZ, handler);
	signal(SIGPIPE, handler);
	join(start(grows, NULL));
	join(start(writes, NULL));
	grows(NULL);
	writes(NULL);
	check_death(SIGXFSZ, grows);
	check_death(SIGPIPE, writes);
	ok("by default they end the process");
	return finish();
}
