// SPDX-License-Identifier: Apache-2.0
/*
 * Functions of libc about threads and signals that programs call by other names than those in the manuals, because
 * headers make them of macros; and some that only few programs call.
 */
#include "check.h"

#include <netdb.h>
#include <sched.h>
#include <setjmp.h>
#include <ucontext.h>

int __libc_current_sigrtmin(void);
int __libc_current_sigrtmax(void);
int __libc_allocate_rtsig(int high);
int __register_atfork(void (*before)(void), void (*parent)(void), void (*child)(void),
		      void *module);
int __xpg_sigpause(int sig);

void __pthread_cleanup_routine(struct __pthread_cleanup_frame *frame);
void _pthread_cleanup_push(struct _pthread_cleanup_buffer *buffer, void (*fn)(void *), void *arg);
void _pthread_cleanup_pop(struct _pthread_cleanup_buffer *buffer, int runs);

static int nr_calls; /* atomic */

static void adds(void *nr)
{
	ADD(&nr_calls, (int)(intptr_t)nr);
}

static void is_before_fork(void)
{
	ADD(&nr_calls, 1);
}

static void handler(int sig)
{
	ADD(&nr_calls, sig == SIGUSR1 ? 1 : 1000);
}

static void real_time_signals(void)
{
	int low, high;

	CHECK_EQ(__libc_current_sigrtmin(), 34);
	CHECK_EQ(__libc_current_sigrtmax(), 64);
	low = __libc_allocate_rtsig(0);
	high = __libc_allocate_rtsig(1);
	CHECK_EQ(high, 34); /* the highest priority is the lowest number */
	CHECK_EQ(low, 64);
	CHECK_EQ(SIGRTMIN, 35);
	CHECK_EQ(SIGRTMAX, 63);
	signal(SIGRTMAX, handler);
	STORE(&nr_calls, 0);
	raise(SIGRTMAX);
	CHECK_EQ(nr_calls, 1000);
	ok("real-time signals that the program gives away");
}

/* A push is __pthread_register_cancel() and __pthread_unwind_next(), in C without exceptions. */
static void *is_cancelled(void *arg)
{
	pthread_cleanup_push(adds, (void *)10);
	pause();
	pthread_cleanup_pop(0);
	return arg;
}

/* __pthread_register_cancel_defer() and __pthread_unregister_cancel_restore() */
static void *cleans_up(void *arg)
{
	struct __pthread_cleanup_frame frame = { adds, (void *)1, 1, 0 };
	struct _pthread_cleanup_buffer buffer;

	pthread_cleanup_push_defer_np(adds, (void *)2);
	pthread_cleanup_pop_restore_np(1);
	pthread_cleanup_push(adds, (void *)4); /* popped by __pthread_unregister_cancel() */
	pthread_cleanup_pop(1);
	_pthread_cleanup_push(&buffer, adds, (void *)8);
	_pthread_cleanup_pop(&buffer, 1);
	__pthread_cleanup_routine(&frame);
	return arg;
}

static void cleanup(void)
{
	pthread_t t;

	STORE(&nr_calls, 0);
	join(start(cleans_up, NULL));
	CHECK_EQ(nr_calls, 15);
	t = start(is_cancelled, NULL);
	CHECK_PT(pthread_cancel(t));
	CHECK(join(t) == PTHREAD_CANCELED);
	CHECK_EQ(nr_calls, 25);
	ok("cleanup handlers");
}

static void at_fork(void)
{
	pid_t pid;

	STORE(&nr_calls, 0);
	CHECK_EQ(__register_atfork(is_before_fork, NULL, is_before_fork, NULL), 0);
	pid = fork();
	if (pid == 0)
		_exit(nr_calls == 2 ? 0 : 1);
	CHECK_SYS(pid);
	reap(pid);
	CHECK_EQ(nr_calls, 1);
	ok("fork handlers");
}

static void *pauses(void *arg)
{
	CHECK_EQ(__xpg_sigpause(SIGUSR1), -1);
	CHECK_EQ(errno, EINTR);
	return arg;
}

static void signals(void)
{
	sigset_t set;
	pthread_t t;

	STORE(&nr_calls, 0);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	CHECK_PT(pthread_sigmask(SIG_BLOCK, &set, NULL));
	CHECK(sysv_signal(SIGUSR1, handler) == SIG_DFL);
	t = start(pauses, NULL);
	CHECK_PT(pthread_kill(t, SIGUSR1));
	join(t);
	CHECK_EQ(nr_calls, 1);
	CHECK(signal(SIGUSR1, SIG_DFL) == SIG_DFL); /* sysv_signal() is for one signal */
	ok("sigpause() of X/Open, signal() of System V");
}

static void processors(void)
{
	cpu_set_t *cpus = CPU_ALLOC(
		200); /* __sched_cpualloc(), __sched_cpucount(), __sched_cpufree() */
	size_t bytes = CPU_ALLOC_SIZE(200);

	CPU_ZERO_S(bytes, cpus);
	CPU_SET_S(3, bytes, cpus);
	CPU_SET_S(199, bytes, cpus);
	CHECK_EQ(CPU_COUNT_S(bytes, cpus), 2);
	CPU_FREE(cpus);
	ok("sets of processors");
}

static void *tries_stream(void *arg)
{
	int ret = ftrylockfile(stderr);

	if (ret == 0)
		funlockfile(stderr);
	ret = ret != 0;
	if (arg) {
		flockfile(stderr);
		funlockfile(stderr);
	}
	return (void *)(intptr_t)ret;
}

static void streams(void)
{
	pthread_t t;

	flockfile(stderr);
	CHECK_EQ(ftrylockfile(stderr), 0);
	funlockfile(stderr);
	CHECK_EQ((intptr_t)join(start(tries_stream, NULL)), 1);
	t = start(tries_stream, &nr_calls);
	let_others_block();
	funlockfile(stderr);
	join(t);
	CHECK_EQ((intptr_t)join(start(tries_stream, NULL)), 0);
	ok("locks of streams");
}

static void names(void)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM };
	struct gaicb request[4] = { { .ar_name = "127.0.0.1", .ar_request = &hints },
				    { .ar_name = "::1", .ar_request = &hints },
				    { .ar_name = "no number", .ar_request = &hints },
				    { .ar_name = "127.0.0.2", .ar_request = &hints } };
	struct gaicb *list[4] = { &request[0], &request[1], &request[2], &request[3] };
	int ret;

	CHECK_EQ(getaddrinfo_a(GAI_NOWAIT, list, 3, NULL), 0);
	for (int i = 0; i < 3; i++) {
		const struct gaicb *one[1] = { list[i] };

		while (gai_error(list[i]) == EAI_INPROGRESS) {
			ret = gai_suspend(one, 1, NULL);
			CHECK(ret == 0 || ret == EAI_ALLDONE || ret == EAI_INTR);
		}
		CHECK_EQ(gai_error(list[i]), i == 2 ? EAI_NONAME : 0);
		ret = gai_cancel(list[i]); /* the helper may not be done with the request */
		CHECK(ret == EAI_ALLDONE || ret == EAI_NOTCANCELED);
	}
	CHECK_EQ(getaddrinfo_a(GAI_WAIT, list + 3, 1, NULL), 0);
	CHECK_EQ(gai_error(list[3]), 0);
	for (int i = 0; i < 4; i++)
		if (request[i].ar_result)
			freeaddrinfo(request[i].ar_result);
	ok("names that libc's threads look up");
}

static ucontext_t here, there;

static void runs_there(void)
{
	ADD(&nr_calls, 1);
	setcontext(&here);
}

/* Contexts have signal masks. */
static void *goes_there_and_back(void *arg)
{
	static char stack[65536];
	sigset_t set;

	STORE(&nr_calls, 0);
	CHECK_SYS(getcontext(&there));
	there.uc_stack.ss_sp = stack;
	there.uc_stack.ss_size = sizeof(stack);
	there.uc_link = &here;
	sigaddset(&there.uc_sigmask, SIGUSR2);
	makecontext(&there, runs_there, 0);
	CHECK_SYS(swapcontext(&here, &there));
	CHECK_EQ(nr_calls, 1);
	CHECK_PT(pthread_sigmask(SIG_BLOCK, NULL, &set));
	CHECK_EQ(sigismember(&set, SIGUSR2), 0);
	return arg;
}

static void jumps(void)
{
	static jmp_buf plain;
	static sigjmp_buf with_mask;
	sigset_t set, none;
	volatile int nr = 0;

	sigemptyset(&none);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	if (setjmp(plain) < 3) {
		nr++;
		longjmp(plain, nr);
	}
	CHECK_EQ(nr, 3);
	if (sigsetjmp(with_mask, 1) == 0) { /* __sigsetjmp() */
		CHECK_PT(pthread_sigmask(SIG_BLOCK, &set, NULL));
		siglongjmp(with_mask, 1);
	}
	CHECK_PT(pthread_sigmask(SIG_BLOCK, NULL, &set));
	CHECK_EQ(sigismember(&set, SIGUSR2), 0);
	join(start(goes_there_and_back, NULL));
	ok("jumps and contexts");
}

static void *looks_at_clocks(void *arg)
{
	struct timespec a, b;

	CHECK_EQ(timespec_get(&a, TIME_UTC), TIME_UTC);
	CHECK_EQ(timespec_getres(&b, TIME_UTC), TIME_UTC);
	CHECK(a.tv_sec > 1600000000 && b.tv_sec == 0 && b.tv_nsec > 0);
	CHECK(clock() >= 0);
	ok("clocks of C");
	return arg;
}

static void *aborts(void *arg)
{
	abort();
	return arg;
}

int main(int argc, char **argv)
{
	int status;

	(void)argv;
	if (argc > 1)
		join(start(aborts, NULL));
	join(start(looks_at_clocks, NULL));
	real_time_signals();
	cleanup();
	at_fork();
	signals();
	processors();
	streams();
	names();
	jumps();
	status = run_self("abort");
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	ok("abort() in a thread");
	return finish();
}
