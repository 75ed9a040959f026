// SPDX-License-Identifier: Apache-2.0
/*
 * Deferred cancellation at blocking calls: the cleanup handlers run in order, exactly once, and
 * the thread reports PTHREAD_CANCELED; also when the request comes first.
 */
#include <netinet/in.h>
#include <poll.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include "check.h"

enum kind {
	READ,
	SEM_WAIT,
	COND_WAIT,
	NANOSLEEP,
	PAUSE,
	POLL,
	SELECT,
	ACCEPT,
	RECV,
	JOIN,
	WAITPID,
	EPOLL,
	SIGWAIT,
	SEM_TIMEDWAIT,
	NR_KINDS
};

static const char *const names[NR_KINDS] = { "read",    "sem_wait",     "cond_wait", "nanosleep",
					     "pause",   "poll",         "select",    "accept",
					     "recv",    "join",         "waitpid",   "epoll_wait",
					     "sigwait", "sem_timedwait" };

static int fds[2], listener, epoll_set, order, nr_ready;
static sem_t sem;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_t sleeper;
static pid_t child;

static void note(void *digit)
{
	order = order * 10 + (int)(intptr_t)digit;
}

static void unlock(void *m)
{
	/* Cancelled in a condition wait, we must own the mutex. */
	CHECK_EQ(pthread_mutex_trylock((pthread_mutex_t *)m), EBUSY);
	CHECK_PT(pthread_mutex_unlock((pthread_mutex_t *)m));
}

static void blocks(enum kind kind)
{
	struct timespec hour = { .tv_sec = 3600 };
	struct pollfd p = { .fd = fds[0], .events = POLLIN };
	struct epoll_event event;
	sigset_t set;
	char c;
	int sig;

	switch (kind) {
	case READ:
		(void)!read(fds[0], &c, 1);
		break;
	case SEM_WAIT:
		sem_wait(&sem);
		break;
	case COND_WAIT:
		pthread_mutex_lock(&lock);
		pthread_cleanup_push(unlock, &lock);
		for (;;)
			pthread_cond_wait(&cond, &lock);
		pthread_cleanup_pop(1);
		break;
	case NANOSLEEP:
		nanosleep(&hour, NULL);
		break;
	case PAUSE:
		pause();
		break;
	case POLL:
		poll(&p, 1, -1);
		break;
	case SELECT:
		select(0, NULL, NULL, NULL, NULL);
		break;
	case ACCEPT:
		accept(listener, NULL, NULL);
		break;
	case RECV:
		recv(fds[0], &c, 1, 0);
		break;
	case JOIN:
		pthread_join(sleeper, NULL);
		break;
	case WAITPID:
		waitpid(child, &sig, 0);
		break;
	case EPOLL:
		epoll_wait(epoll_set, &event, 1, -1);
		break;
	case SIGWAIT:
		sigemptyset(&set);
		sigaddset(&set, SIGUSR1);
		sigwait(&set, &sig);
		break;
	default:
		hour.tv_sec += time(NULL);
		sem_timedwait(&sem, &hour);
		break;
	}
}

static void *is_cancelled(void *arg)
{
	pthread_cleanup_push(note, (void *)1);
	pthread_cleanup_push(note, (void *)2);
	pthread_cleanup_push(note, (void *)3);
	ADD(&nr_ready, 1);
	blocks((enum kind)(intptr_t)arg);
	CHECK(!"the call returned");
	pthread_cleanup_pop(0);
	pthread_cleanup_pop(0);
	pthread_cleanup_pop(0);
	return NULL;
}

static void *sleeps(void *arg)
{
	for (;;)
		pause();
	return arg;
}

int main(void)
{
	sigset_t set;
	struct sockaddr_in address = { .sin_family = AF_INET };

	CHECK_SYS(socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
	sem_init(&sem, 0, 0);
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	listener = (int)CHECK_SYS(socket(AF_INET, SOCK_STREAM, 0));
	CHECK_SYS(bind(listener, (struct sockaddr *)&address, sizeof(address)));
	CHECK_SYS(listen(listener, 1));
	epoll_set = (int)CHECK_SYS(epoll_create1(0));
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	child = fork();
	if (child == 0)
		for (;;)
			pause();
	sleeper = start(sleeps, NULL);

	for (int kind = 0; kind < NR_KINDS; kind++) {
		/* First surely blocked, then on its way. */
		for (int round = 0; round < 3; round++) {
			order = nr_ready = 0;
			pthread_t t = start(is_cancelled, (void *)(intptr_t)kind);

			while (!LOAD(&nr_ready))
				sched_yield();
			if (round == 0)
				let_others_block();
			CHECK_PT(pthread_cancel(t));
			CHECK(join(t) == PTHREAD_CANCELED);
			CHECK_EQ(order, 321);
		}
		ok(names[kind]);
	}
	CHECK_PT(pthread_cancel(sleeper));
	CHECK(join(sleeper) == PTHREAD_CANCELED);
	CHECK_SYS(kill(child, SIGKILL));
	waitpid(child, NULL, 0);
	return finish();
}
