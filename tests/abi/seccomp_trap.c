// SPDX-License-Identifier: Apache-2.0
/*
 * A filter that traps a call, installed for all threads while they live: the handler sees which call it was and
 * gives the result. Without a handler the process dies of SIGSYS.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <ucontext.h>

#include "check.h"

#define NR_TRAPPED SYS_getsid
#define RESULT 42

#define NR 3

static int traps; /* atomic */
static int trapped = NR_TRAPPED, result = RESULT;
static pthread_barrier_t barrier;

static void install(int nr)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned int)nr, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };

	CHECK_SYS(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHECK_SYS(
		syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program));
}

static void on_sigsys(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	CHECK_EQ(sig, SIGSYS);
	CHECK_EQ(info->si_code, 1 /* SYS_SECCOMP */);
	CHECK_EQ(info->si_syscall, trapped);
	CHECK(info->si_call_addr == (void *)uc->uc_mcontext.gregs[REG_RIP]);
	CHECK_EQ(uc->uc_mcontext.gregs[REG_RAX], trapped);
	uc->uc_mcontext.gregs[REG_RAX] = result;
	ADD(&traps, 1);
}

static void *call_often(void *arg)
{
	for (int i = 0; i < 100; i++)
		CHECK_EQ(syscall(NR_TRAPPED, 0), RESULT);
	return arg;
}

static void *install_and_call(void *arg)
{
	install(NR_TRAPPED);
	return call_often(arg);
}

static void *call_in_vain(void *arg)
{
	install(NR_TRAPPED);
	syscall(NR_TRAPPED, 0);
	return arg;
}

static void *waits(void *arg)
{
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	return arg;
}

/* A call that libc makes in all threads is each thread's to answer. */
static void call_in_all(void)
{
	pthread_t t[NR];

	CHECK_PT(pthread_barrier_init(&barrier, NULL, NR + 1));
	for (int i = 0; i < NR; i++)
		t[i] = start(waits, NULL);
	pthread_barrier_wait(&barrier);
	traps = result = 0;
	trapped = SYS_setresgid;
	install(trapped);
	CHECK_SYS(setresgid(1, 2, 3));
	CHECK_EQ(traps, NR + 1);
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < NR; i++)
		join(t[i]);
}

int main(int argc, char **argv)
{
	struct sigaction sa = { .sa_sigaction = on_sigsys, .sa_flags = SA_SIGINFO };
	int status;

	if (argc > 1 && strcmp(argv[1], "die") == 0) {
		join(start(call_in_vain, NULL));
		return 0;
	}
	status = run_self("die");
	CHECK(WIFSIGNALED(status));
	CHECK_EQ(WTERMSIG(status), SIGSYS);
	ok("the default action");

	CHECK_SYS(sigaction(SIGSYS, &sa, NULL));
	join(start(install_and_call, NULL));
	CHECK_EQ(traps, 100);
	ok("in the thread that installed it");
	join(start(call_often, NULL));
	call_often(NULL);
	CHECK_EQ(traps, 300);
	ok("in others");
	call_in_all();
	ok("in all at once");
	return finish();
}
