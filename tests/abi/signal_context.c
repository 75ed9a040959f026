// SPDX-License-Identifier: Apache-2.0
/*
 * A handler's changes of its context take effect: results of calls, registers, the place to go on at, the
 * mask. And what faults say: code, address, trap number. The plain kernel says what is to be printed.
 */
#include "check.h"

#include <sys/mman.h>
#include <ucontext.h>

enum change {
	RESULT,
	MASK,
	REGISTER,
	NOTHING
};

static enum change change;

static void on_signal(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	(void)sig;
	(void)info;
	if (change == RESULT)
		uc->uc_mcontext.gregs[REG_RAX] = 1234;
	if (change == MASK)
		sigaddset(&uc->uc_sigmask, SIGUSR2);
}

/* All faulting instructions below are two bytes long. */
static void on_fault(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	greg_t *reg = uc->uc_mcontext.gregs;

	printf("signal %d, code %d, trap %lld", sig, info->si_code, (long long)reg[REG_TRAPNO]);
	if (sig == SIGSEGV)
		printf(", address %lx, error %llx", (long)info->si_addr, (long long)reg[REG_ERR]);
	else if (sig != SIGTRAP && sig != SIGBUS)
		CHECK_EQ((long)info->si_addr, reg[REG_RIP]);
	printf("\n");
	if (sig != SIGTRAP)
		reg[REG_RIP] += 2;
	if (change == REGISTER)
		reg[REG_RBX] = 77;
}

static long send_by_instruction(void)
{
	long ret, tid = syscall(SYS_gettid);

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(SYS_tgkill), "D"(getpid()), "S"(tid), "d"(SIGUSR1)
			 : "rcx", "r11", "memory");
	return ret;
}

static void changes(void)
{
	sigset_t set;
	long rbx;

	change = RESULT;
	printf("an instruction's result: %ld\n", send_by_instruction());
	printf("a function's result: %ld\n",
	       syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGUSR1));
	change = MASK;
	raise(SIGUSR1);
	pthread_sigmask(SIG_SETMASK, NULL, &set);
	printf("blocked: %d\n", sigismember(&set, SIGUSR2));
	sigdelset(&set, SIGUSR2);
	pthread_sigmask(SIG_SETMASK, &set, NULL);
	change = REGISTER;
	__asm__ volatile("mov $1, %%rbx\n\tud2\n\tmov %%rbx, %0" : "=r"(rbx)::"rbx", "memory");
	printf("register: %ld\n", rbx);
	change = NOTHING;
}

static void faults(void)
{
	char *file;
	FILE *f = tmpfile();

	__asm__ volatile("ud2");
	__asm__ volatile("xor %%edx, %%edx\n\tmov $1, %%eax\n\tidivl %%ecx" ::"c"(0)
			 : "rax", "rdx");
	__asm__ volatile("int3");
	__asm__ volatile("movl %%eax, (%%rcx)" ::"c"(16L) : "memory");
	__asm__ volatile("movb (%%rcx), %%al" ::"c"(0x8000000000000000) : "rax");
	CHECK_SYS(ftruncate(fileno(f), 4096));
	file = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(f), 0);
	__asm__ volatile("movl %%eax, (%%rcx)" ::"c"(file + 5000) : "memory");
	munmap(file, 8192);
	fclose(f);
}

static void *body(void *arg)
{
	changes();
	faults();
	return arg;
}

int main(void)
{
	const int sigs[] = { SIGILL, SIGFPE, SIGTRAP, SIGSEGV, SIGBUS };
	struct sigaction act = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };

	sigaction(SIGUSR1, &act, NULL);
	act.sa_sigaction = on_fault;
	for (int i = 0; i < 5; i++)
		sigaction(sigs[i], &act, NULL);
	join(start(body, NULL));
	body(NULL);
	return finish();
}
