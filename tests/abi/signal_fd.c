// SPDX-License-Identifier: Apache-2.0
/* A signalfd shows what is pending for the process and for the thread that reads it: poll, epoll, read. */
#include "check.h"

#include <poll.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>

static int fd, set_fd;
static sigset_t set;

static void look(const char *what)
{
	struct pollfd p = { fd, POLLIN, 0 };
	struct signalfd_siginfo info = { 0 };
	struct epoll_event event;
	int polled = poll(&p, 1, 0), waited = epoll_wait(set_fd, &event, 1, 0);
	sigset_t pending;
	ssize_t n;

	sigpending(&pending);
	n = read(fd, &info, sizeof(info));
	printf("%s: poll %d, epoll %d, USR1 pending %d, read %zd: signal %u, code %d, ours %d, value %d\n",
	       what, polled, waited, sigismember(&pending, SIGUSR1), n, info.ssi_signo,
	       info.ssi_code, (pid_t)info.ssi_pid == getpid(), info.ssi_int);
}

static void *body(void *arg)
{
	union sigval value = { .sival_int = 7 };
	siginfo_t info;

	look("nothing");
	raise(SIGUSR1);
	look("raise");
	kill(getpid(), SIGUSR1);
	look("kill");
	pthread_kill(pthread_self(), SIGUSR2);
	look("pthread_kill");
	sigqueue(getpid(), SIGRTMIN, value);
	look("sigqueue");
	pthread_sigqueue(pthread_self(), SIGRTMIN, value);
	look("pthread_sigqueue");
	for (int i = 0; i < 5; i++) {
		value.sival_int = i;
		sigqueue(getpid(), SIGRTMIN, value);
	}
	for (int i = 0; i < 6; i++)
		look("five queued");
	raise(SIGUSR1);
	CHECK_EQ(sigwaitinfo(&set, &info), SIGUSR1);
	look("taken by sigwaitinfo");
	return arg;
}

static void *reads(void *arg)
{
	struct signalfd_siginfo info;
	struct pollfd p = { fd, POLLIN, 0 };

	for (int i = 0; i < 20; i++) {
		CHECK_EQ(poll(&p, 1, -1), 1);
		CHECK_EQ(read(fd, &info, sizeof(info)), sizeof(info));
		CHECK_EQ(info.ssi_signo, SIGUSR1);
		sem_post(arg);
	}
	return NULL;
}

int main(void)
{
	struct epoll_event event = { .events = EPOLLIN };
	pthread_t t;
	sem_t sem;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	sigaddset(&set, SIGRTMIN);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	/* One made before the first thread, which weft has not seen being made. */
	fd = signalfd(-1, &set, SFD_NONBLOCK);
	set_fd = epoll_create1(0);
	epoll_ctl(set_fd, EPOLL_CTL_ADD, fd, &event);
	sem_init(&sem, 0, 0);
	t = start(reads, &sem);
	for (int i = 0; i < 20; i++) {
		kill(getpid(), SIGUSR1);
		sem_wait(&sem);
	}
	join(t);
	ok("a thread waits for what is sent to the process");
	body(NULL);
	return finish();
}
