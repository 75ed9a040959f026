// SPDX-License-Identifier: Apache-2.0
/*
 * Handlers that leave by siglongjmp(), out of every kind of wait, out of a computation, out of a call of the
 * thread itself and out of a fault, on the thread's stack and on an alternate one: the thread goes on with the
 * mask that it had, and can wait again.
 */
#include "check.h"

#include <poll.h>
#include <semaphore.h>
#include <setjmp.h>
#include <sys/epoll.h>
#include <sys/select.h>

enum wait {
	READ,
	POLL,
	SLEEP,
	SEM_WAIT,
	PAUSE,
	SUSPEND,
	SIGWAIT,
	WAITPID,
	LOOP,
	EPOLL,
	SELECT,
	PPOLL,
	RAISE,
	FAULT,
	NR_WAITS
};

#define ROUNDS 3

static __thread sigjmp_buf back;
static sem_t is_ready, never;
static int pipe_fds[2], set_fd, nr_done;
static pid_t child;
static volatile int *volatile nowhere = (int *)8;

static void jumps(int sig)
{
	(void)sig;
	siglongjmp(back, 1);
}

static void wait_by(enum wait how)
{
	struct pollfd p = { pipe_fds[0], POLLIN, 0 };
	struct timespec long_time = { 100, 0 };
	struct epoll_event event;
	sigset_t set;
	int sig;
	char c;

	sigemptyset(&set);
	switch (how) {
	case READ:
		CHECK_SYS(read(pipe_fds[0], &c, 1));
		break;
	case POLL:
		poll(&p, 1, -1);
		break;
	case SLEEP:
		nanosleep(&long_time, NULL);
		break;
	case SEM_WAIT:
		sem_wait(&never);
		break;
	case PAUSE:
		pause();
		break;
	case SUSPEND:
		sigsuspend(&set);
		break;
	case SIGWAIT:
		sigaddset(&set, SIGUSR2);
		sigwait(&set, &sig);
		break;
	case WAITPID:
		waitpid(child, NULL, 0);
		break;
	case LOOP:
		for (;;)
			;
	case EPOLL:
		epoll_wait(set_fd, &event, 1, -1);
		break;
	case SELECT:
		select(0, NULL, NULL, NULL, NULL);
		break;
	case PPOLL:
		ppoll(&p, 1, NULL, &set);
		break;
	case RAISE:
		raise(SIGUSR1);
		break;
	default:
		*nowhere = 1;
	}
}

static void *waits(void *arg)
{
	stack_t stack = { .ss_sp = malloc(65536), .ss_size = 65536 };
	sigset_t before, after;

	CHECK_SYS(sigaltstack(&stack, NULL));
	for (volatile int i = 0; i < ROUNDS * NR_WAITS; i++) {
		pthread_sigmask(SIG_SETMASK, NULL, &before);
		if (!sigsetjmp(back, 1)) {
			sem_post(&is_ready);
			wait_by((enum wait)(i % NR_WAITS));
			CHECK(!"the wait returned");
		}
		pthread_sigmask(SIG_SETMASK, NULL, &after);
		CHECK(memcmp(&before, &after, 8) == 0);
		ADD(&nr_done, 1);
	}
	stack.ss_flags = SS_DISABLE;
	CHECK_SYS(sigaltstack(&stack, NULL));
	free(stack.ss_sp);
	return arg;
}

static void run(int flags)
{
	struct sigaction act = { .sa_handler = jumps, .sa_flags = flags };
	pthread_t t;

	sigaction(SIGUSR1, &act, NULL);
	sigaction(SIGSEGV, &act, NULL);
	nr_done = 0;
	t = start(waits, NULL);
	for (int i = 0; i < ROUNDS * NR_WAITS; i++) {
		sem_wait(&is_ready);
		if (i >= NR_WAITS)
			let_others_block();
		if (i % NR_WAITS != RAISE && i % NR_WAITS != FAULT)
			pthread_kill(t, SIGUSR1);
		while (LOAD(&nr_done) <= i)
			sched_yield();
	}
	join(t);
}

int main(void)
{
	sem_init(&is_ready, 0, 0);
	sem_init(&never, 0, 0);
	CHECK_SYS(pipe(pipe_fds));
	set_fd = epoll_create1(0);
	child = fork();
	if (child == 0) {
		pause();
		_exit(0);
	}
	run(0);
	ok("on the thread's stack");
	run(SA_ONSTACK);
	ok("on an alternate stack");
	kill(child, SIGKILL);
	CHECK_EQ(waitpid(child, NULL, 0), child);
	return finish();
}
