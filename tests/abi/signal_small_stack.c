// SPDX-License-Identifier: Apache-2.0
/*
 * Handlers on an alternate stack that is as small as the system says it may be: a little room above the frame of
 * the kernel. They may make calls, wait, be interrupted in them, give way and jump out, and nothing below the stack
 * changes. A frame that does not fit there is a fault.
 */
#include "check.h"

#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/resource.h>

#define BELOW 16384 /* must stay as it is */
#define NEARLY 4096 /* of that, where the last call before a fault may run */
#define MOST 65536  /* room for the largest frame */
#define CALLS                                                                                      \
	256 /* what a handler is given for itself and for the functions of libc that it calls */
#define LEAST 2048 /* that the kernel takes, however small its frame is */
#define PAINT 0xa5
#define ROUNDS 4

enum kind {
	NOTHING,
	WRITES,
	WAITS,
	POLLS,
	YIELDS,
	JUMPS,
	NR_KINDS
};

static const char *const names[NR_KINDS] = { "does nothing", "writes and reads", "waits",
					     "polls",        "yields",           "jumps out" };

static enum kind kind;
static unsigned char *area;
static size_t small;
static int fds[2], nr_handled, spins, stop;
static sigjmp_buf before;

static void on_signal(int sig)
{
	const struct timespec brief = { 0, 100000 };
	struct pollfd p = { fds[0], POLLIN, 0 };
	char c = 0;

	(void)sig;
	ADD(&nr_handled, 1);
	if (kind == WRITES && (write(fds[1], &c, 1) != 1 || read(fds[0], &c, 1) != 1))
		ADD(&abi_failures, 1);
	if (kind == WAITS)
		(void)nanosleep(&brief, NULL);
	if (kind == POLLS)
		(void)poll(&p, 1, 1);
	if (kind == YIELDS)
		sched_yield();
	if (kind == JUMPS)
		siglongjmp(before, 1);
}

static void use_stack(size_t bytes)
{
	const stack_t s = { .ss_sp = area + BELOW, .ss_size = bytes };

	memset(area, PAINT, BELOW + MOST);
	CHECK_SYS(sigaltstack(&s, NULL));
}

static void check_below(size_t bytes)
{
	size_t i = 0;

	while (i < bytes && area[i] == PAINT)
		i++;
	CHECK_EQ(bytes - i, 0); /* so many bytes too many */
}

static void handle(bool at_call)
{
	int seen = LOAD(&nr_handled);

	if (sigsetjmp(before, 1))
		return;
	if (at_call) {
		raise(SIGUSR1);
		return;
	}
	STORE(&spins, 1);
	while (LOAD(&nr_handled) == seen)
		;
}

/* libc looks its functions up when they are called first, and needs more stack for that. */
static void call_all(void)
{
	use_stack(MOST);
	for (kind = NOTHING; kind < NR_KINDS; kind++)
		handle(true);
}

static void *receives(void *arg)
{
	call_all();
	for (kind = NOTHING; kind < NR_KINDS; kind++) {
		use_stack(small);
		for (int i = 0; i < ROUNDS; i++) {
			handle(true);
			handle(false);
		}
		check_below(BELOW);
		ok(names[kind]);
	}
	STORE(&stop, 1);
	return arg;
}

/* Sends one whenever the other thread computes. */
static void sends(pthread_t to)
{
	int one = 1;

	while (!LOAD(&stop)) {
		one = 1;
		if (__atomic_compare_exchange_n(&spins, &one, 0, false, __ATOMIC_ACQ_REL,
						__ATOMIC_ACQUIRE))
			CHECK_PT(pthread_kill(to, SIGUSR1));
		sched_yield();
	}
}

static void on_nested(int sig)
{
	raise(sig);
}

static void *nests(void *arg)
{
	const struct rlimit no_core = { 0, 0 };
	struct sigaction sa = { .sa_handler = on_nested, .sa_flags = SA_ONSTACK | SA_NODEFER };

	CHECK_SYS(setrlimit(RLIMIT_CORE, &no_core));
	CHECK_SYS(sigaction(SIGUSR2, &sa, NULL));
	use_stack(small);
	raise(SIGUSR2);
	return arg;
}

static void nest_in_child(void)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		join(start(nests, NULL));
		_exit(0);
	}
	CHECK_SYS(waitpid(pid, &status, 0));
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
	check_below(BELOW - NEARLY);
	ok("a frame that does not fit is a fault");
}

int main(void)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK };
	pthread_t receiver;

	small = (size_t)sysconf(_SC_MINSIGSTKSZ) + CALLS;
	if (small < LEAST)
		small = LEAST;
	area = mmap(NULL, BELOW + MOST, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(area != MAP_FAILED);
	CHECK_SYS(pipe(fds));
	CHECK_SYS(sigaction(SIGUSR1, &sa, NULL));
	receiver = start(receives, NULL);
	sends(receiver);
	join(receiver);
	nest_in_child();
	return finish();
}
