// SPDX-License-Identifier: Apache-2.0
/*
 * SA_SIGINFO: the contents of siginfo for kill, tgkill, sigqueue, pthread_sigqueue, timers, faults;
 * the context shows the interrupted place.
 */
#include <sys/mman.h>
#include <ucontext.h>
#include "check.h"

static siginfo_t seen;
static void *seen_stack;
static pthread_t seen_thread;
static volatile sig_atomic_t nr_seen;
static char *guarded;

static void on_signal(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = (ucontext_t *)context;

	(void)sig;
	seen = *info;
	seen_thread = pthread_self();
#if defined(__x86_64__)
	seen_stack = (void *)uc->uc_mcontext.gregs[REG_RSP];
#else
	seen_stack = (void *)uc->uc_mcontext.sp;
#endif
	if (sig == SIGSEGV)
		mprotect(guarded, 4096, PROT_READ | PROT_WRITE);
	ADD(&nr_seen, 1);
}

static void expect(int sig, int code)
{
	while (!LOAD(&nr_seen))
		sched_yield();
	CHECK_EQ(nr_seen, 1);
	CHECK_EQ(seen.si_signo, sig);
	CHECK_EQ(seen.si_code, code);
	nr_seen = 0;
}

static void *receives(void *arg)
{
	char here;
	union sigval value = { .sival_int = 4711 };

	raise(SIGUSR1);
	expect(SIGUSR1, SI_TKILL);
	CHECK_EQ(seen.si_pid, getpid());
	CHECK_EQ(seen.si_uid, getuid());
	CHECK(pthread_equal(seen_thread, pthread_self()));
	CHECK(llabs((intptr_t)seen_stack - (intptr_t)&here) < 65536);
	CHECK_PT(pthread_sigqueue(pthread_self(), SIGUSR1, value));
	expect(SIGUSR1, SI_QUEUE);
	CHECK_EQ(seen.si_value.sival_int, 4711);
	CHECK_EQ(seen.si_pid, getpid());
	CHECK(pthread_equal(seen_thread, pthread_self()));
	CHECK_SYS(syscall(SYS_tgkill, getpid(), gettid(), SIGUSR1));
	expect(SIGUSR1, SI_TKILL);

	*guarded = 1;
	expect(SIGSEGV, SEGV_ACCERR);
	CHECK(seen.si_addr == guarded);
	CHECK(pthread_equal(seen_thread, pthread_self()));
	mprotect(guarded, 4096, PROT_NONE);
	return arg;
}

int main(void)
{
	struct sigaction sa = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL,
				  .sigev_signo = SIGUSR1,
				  .sigev_value.sival_int = 99 };
	struct itimerspec spec = { .it_value.tv_nsec = 5 * MS };
	timer_t timer;

	guarded = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	sigaction(SIGUSR1, &sa, NULL);
	sigaction(SIGSEGV, &sa, NULL);
	join(start(receives, NULL));
	join(start(receives, NULL));
	ok("raise, pthread_sigqueue, tgkill and a fault on a thread");
	receives(NULL);
	ok("the same on main");

	CHECK_SYS(kill(getpid(), SIGUSR1));
	expect(SIGUSR1, SI_USER);
	CHECK_EQ(seen.si_pid, getpid());
	CHECK_SYS(sigqueue(getpid(), SIGUSR1, (union sigval){ .sival_int = 5 }));
	expect(SIGUSR1, SI_QUEUE);
	CHECK_EQ(seen.si_value.sival_int, 5);
	ok("kill and sigqueue to the process");

	CHECK_SYS(timer_create(CLOCK_MONOTONIC, &event, &timer));
	CHECK_SYS(timer_settime(timer, 0, &spec, NULL));
	expect(SIGUSR1, SI_TIMER);
	CHECK_EQ(seen.si_value.sival_int, 99);
	timer_delete(timer);
	pid_t parent = getpid(), pid = (pid_t)CHECK_SYS(fork());
	if (pid == 0)
		_exit(kill(parent, SIGUSR1) ? 1 : 0);
	expect(SIGUSR1, SI_USER);
	CHECK_EQ(seen.si_pid, pid);
	reap(pid);
	ok("a timer and another process");
	return finish();
}
