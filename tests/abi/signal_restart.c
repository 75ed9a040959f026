// SPDX-License-Identifier: Apache-2.0
/*
 * Interrupted calls: SA_RESTART goes on, without it EINTR; sleeps and polls always end.
 */
#include <fcntl.h>
#include <poll.h>
#include <semaphore.h>
#include <sys/socket.h>
#include <linux/futex.h>
#include "check.h"

static int fds[2], is_done, nr_handled;
static sem_t sem;
static int word;

static void on_signal(int sig)
{
	(void)sig;
	ADD(&nr_handled, 1);
}

enum kind {
	READ,
	RECV,
	SEM_WAIT,
	FUTEX,
	NANOSLEEP,
	POLL,
	PAUSE,
	WAITPID,
	NR_KINDS
};

static const char *const names[] = { "read",      "recv", "sem_wait", "futex",
				     "nanosleep", "poll", "pause",    "waitpid" };
static pid_t child;

/* Returns 0 when the call went on to its end, else errno. */
static void *calls(void *arg)
{
	struct timespec hour = { .tv_sec = 3600 }, left = { .tv_sec = 0 };
	struct pollfd p = { .fd = fds[0], .events = POLLIN };
	long ret = 0;
	int status;
	char c;

	errno = 0;
	switch ((enum kind)(intptr_t)arg) {
	case READ:
		ret = read(fds[0], &c, 1);
		break;
	case RECV:
		ret = recv(fds[0], &c, 1, 0);
		break;
	case SEM_WAIT:
		ret = sem_wait(&sem);
		break;
	case FUTEX:
		ret = syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
		break;
	case NANOSLEEP:
		ret = nanosleep(&hour, &left);
		CHECK(ret == 0 || left.tv_sec >= 3500);
		break;
	case POLL:
		ret = poll(&p, 1, -1);
		break;
	case PAUSE:
		ret = pause();
		break;
	default:
		ret = waitpid(child, &status, 0);
		break;
	}
	int saved = ret == -1 ? errno : 0;

	STORE(&is_done, 1);
	return (void *)(intptr_t)saved;
}

/* Signals until the call ends, or until a few were handled and it did not. */
static int interrupt(enum kind kind, int flags)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = flags };

	sigaction(SIGUSR1, &sa, NULL);
	STORE(&is_done, 0);
	STORE(&word, 0);
	pthread_t t = start(calls, (void *)(intptr_t)kind);
	for (int round = 0; !LOAD(&is_done) && (!flags || round < 5); round++) {
		int before = LOAD(&nr_handled);

		sleep_ns(2 * MS);
		if (pthread_kill(t, SIGUSR1) != 0)
			break;
		while (LOAD(&nr_handled) == before && !LOAD(&is_done))
			sched_yield();
	}
	if (flags) {
		/* It is still waiting unless this kind never restarts: let it end by itself. */
		CHECK_EQ(write(fds[1], "x", 1), 1);
		sem_post(&sem);
		STORE(&word, 1);
		syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
		if (kind == WAITPID)
			kill(child, SIGKILL);
	}
	int ret = (int)(intptr_t)join(t);
	char c[8];

	while (recv(fds[0], c, sizeof(c), MSG_DONTWAIT) > 0)
		;
	while (sem_trywait(&sem) == 0)
		;
	return ret;
}

int main(void)
{
	CHECK_SYS(socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
	sem_init(&sem, 0, 0);
	child = fork();
	if (child == 0)
		for (;;)
			pause();
	for (int kind = 0; kind < NR_KINDS; kind++) {
		CHECK_EQ(interrupt((enum kind)kind, 0), EINTR);
		printf("%s\n", names[kind]);
		ok("EINTR without SA_RESTART");
	}
	for (int kind = 0; kind < NR_KINDS; kind++) {
		int want = kind == NANOSLEEP || kind == POLL || kind == PAUSE ? EINTR : 0;
		int got = interrupt((enum kind)kind, SA_RESTART);

		/* A raw futex wait that comes after the word has changed ends with EAGAIN. */
		CHECK(got == want || (kind == FUTEX && got == EAGAIN));
		printf("%s\n", names[kind]);
		ok(want ? "EINTR although SA_RESTART" : "goes on with SA_RESTART");
	}
	return finish();
}
