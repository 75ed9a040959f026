// SPDX-License-Identifier: Apache-2.0
/*
 * A thread that loads another thread pointer by itself, as runtimes with threads of their own do (WRFSBASE), keeps
 * it when it is preempted and over calls that wait.
 */
#if defined(__x86_64__)
#include "check.h"

#include <sys/auxv.h>

#define NR 4
#define RUN_NS (100 * MS)
#define HWCAP2_FSGSBASE 2

static int64_t end_ns;

static long call0(long nr)
{
	long ret;

	__asm__ volatile("syscall" : "=a"(ret) : "0"(nr) : "rcx", "r11", "memory");
	return ret;
}

/* No call to libc here: its variables are not at what the pointer says. */
static __attribute__((noinline)) int lives_elsewhere(uintptr_t *block, int has_calls)
{
	uintptr_t own, now;
	int is_same = 1;

	__asm__ volatile("rdfsbase %0" : "=r"(own));
	__asm__ volatile("wrfsbase %0" ::"r"(block));
	for (int i = 0; i < 100; i++) {
		if (has_calls)
			(void)call0(SYS_sched_yield);
		for (int n = 0; n < 2000; n++) {
			__asm__ volatile("movq %%fs:0, %0" : "=r"(now));
			is_same &= now == block[0];
		}
	}
	__asm__ volatile("wrfsbase %0" ::"r"(own));
	return is_same;
}

static void *uses_own_pointer(void *arg)
{
	uintptr_t block[64];

	block[0] = (uintptr_t)block;
	do
		CHECK(lives_elsewhere(block, arg != NULL));
	while (now_ns() < end_ns);
	return NULL;
}

static void run(const char *name, void *arg)
{
	pthread_t t[NR];

	end_ns = now_ns() + RUN_NS;
	for (int i = 0; i < NR; i++)
		t[i] = start(uses_own_pointer, arg);
	for (int i = 0; i < NR; i++)
		join(t[i]);
	ok(name);
}

int main(void)
{
	if (!(getauxval(AT_HWCAP2) & HWCAP2_FSGSBASE)) {
		dprintf(2, "no WRFSBASE\n");
		return EXIT_SKIP;
	}
	run("preempted", NULL);
	run("in calls", "");
	return finish();
}
#else
int main(void)
{
	return 77; /* EXIT_SKIP */
}
#endif
