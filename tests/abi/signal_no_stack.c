// SPDX-License-Identifier: Apache-2.0
/*
 * A handler whose alternate stack cannot be written does not run: SIGSEGV comes instead, to a handler on the
 * thread's own stack. Where SIGSEGV has none, or wants that stack too, it kills.
 */
#include <sys/mman.h>
#include "check.h"

#define STACK_BYTES 65536

static int nr_hups, nr_faults, code;
static int go;
static pthread_t victim;

static void on_hup(int sig)
{
	(void)sig;
	nr_hups++;
}

static void on_fault(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	code = info->si_code;
	STORE(&nr_faults, nr_faults + 1);
}

static void take_stack(int protection)
{
	stack_t st = { .ss_size = STACK_BYTES };

	st.ss_sp = mmap(NULL, STACK_BYTES, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(st.ss_sp != MAP_FAILED);
	CHECK_SYS(sigaltstack(&st, NULL));
}

static void handle(int fault_flags)
{
	struct sigaction hup = { .sa_handler = on_hup, .sa_flags = SA_ONSTACK };
	struct sigaction fault = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | fault_flags };

	CHECK_SYS(sigaction(SIGHUP, &hup, NULL));
	CHECK_SYS(sigaction(SIGSEGV, &fault, NULL));
}

static void *sends(void *arg)
{
	while (!LOAD(&go))
		sched_yield();
	pthread_kill(victim, SIGHUP);
	return arg;
}

static void *body(void *arg)
{
	pthread_t t;

	nr_faults = nr_hups = go = 0;
	victim = pthread_self();
	take_stack(PROT_READ);
	handle(0);
	CHECK_PT(pthread_kill(victim, SIGHUP));
	CHECK_EQ(nr_faults, 1);
	CHECK_EQ(code, SI_KERNEL);

	/* in the middle of its own code */
	t = start(sends, NULL);
	STORE(&go, 1);
	while (LOAD(&nr_faults) < 2)
		;
	join(t);

	/* in a call */
	go = 0;
	t = start(sends, NULL);
	STORE(&go, 1);
	while (LOAD(&nr_faults) < 3)
		sleep_ns(MS);
	join(t);
	CHECK_EQ(nr_hups, 0);
	return arg;
}

static void dies(void (*how)(void))
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		take_stack(PROT_READ);
		how();
		pthread_kill(pthread_self(), SIGHUP);
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFSIGNALED(status));
	CHECK_EQ(WTERMSIG(status), SIGSEGV);
}

static void without_handler(void)
{
	handle(0);
	signal(SIGSEGV, SIG_DFL);
}

static void with_the_same_stack(void)
{
	handle(SA_ONSTACK);
}

static void while_blocked(void)
{
	sigset_t set;

	handle(0);
	sigemptyset(&set);
	sigaddset(&set, SIGSEGV);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
}

static void *dies_with_threads(void *how)
{
	take_stack(PROT_READ);
	((void (*)(void))how)();
	pthread_kill(pthread_self(), SIGHUP);
	_exit(0);
}

static void threads_die(void (*how)(void))
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		join(start(dies_with_threads, (void *)how));
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFSIGNALED(status));
	CHECK_EQ(WTERMSIG(status), SIGSEGV);
}

int main(void)
{
	body(NULL);
	ok("on main, without threads");
	join(start(body, NULL));
	ok("on a thread");
	body(NULL);
	ok("on main");
	dies(without_handler);
	dies(with_the_same_stack);
	dies(while_blocked);
	threads_die(without_handler);
	threads_die(with_the_same_stack);
	threads_die(while_blocked);
	ok("and death");
	return finish();
}
