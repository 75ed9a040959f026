// SPDX-License-Identifier: Apache-2.0
/*
 * Faults on threads: a SIGSEGV or SIGILL handler runs there and leaves with siglongjmp.
 */
#include <setjmp.h>
#include <sys/mman.h>
#include "check.h"

#define NR 8
#define ROUNDS 50

/* Not __builtin_trap(): after it the compiler would drop the code. */
#if defined(__x86_64__)
#define ILLEGAL() __asm__ volatile("ud2")
#else
#define ILLEGAL() __asm__ volatile("udf #0")
#endif

static __thread sigjmp_buf back;
static __thread pthread_t self;
static char *nowhere;

static void on_fault(int sig, siginfo_t *info, void *context)
{
	(void)context;
	CHECK(pthread_equal(self, pthread_self()));
	CHECK(sig != SIGSEGV || info->si_addr == nowhere);
	siglongjmp(back, sig);
}

static void *faults(void *arg)
{
	sigset_t now;

	self = pthread_self();
	for (volatile int i = 0; i < ROUNDS; i++) {
		int sig = sigsetjmp(back, 1);

		if (sig == 0) {
			*(volatile char *)nowhere = 1;
			CHECK(!"no fault");
		}
		CHECK_EQ(sig, SIGSEGV);
		pthread_sigmask(SIG_SETMASK, NULL, &now);
		CHECK(!sigismember(&now, SIGSEGV));
		sched_yield();
		sig = sigsetjmp(back, 1);
		if (sig == 0) {
			ILLEGAL();
			CHECK(!"no fault");
		}
		CHECK_EQ(sig, SIGILL);
	}
	return arg;
}

int main(void)
{
	struct sigaction sa = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };
	pthread_t t[NR];

	nowhere = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	sigaction(SIGSEGV, &sa, NULL);
	sigaction(SIGILL, &sa, NULL);
	faults(NULL);
	ok("main");
	for (int i = 0; i < NR; i++)
		t[i] = start(faults, NULL);
	for (int i = 0; i < NR; i++)
		join(t[i]);
	ok("8 threads, 50 times each");
	return finish();
}
