// SPDX-License-Identifier: Apache-2.0
/*
 * A program that makes system calls without libc, from its own text: with and without call frame information,
 * with numbers that are known before and that are not.
 */
#include "check.h"
#include "lib_syscalls.c"

#include <linux/futex.h>

#define NR 6

static unsigned word;
static int nr_waiting, fds[2];

static void check_identity(void)
{
	CHECK_EQ(lib_gettid(), gettid());
	CHECK_EQ(lib_gettid_bare(), gettid());
	CHECK_EQ(lib_call(SYS_gettid, 0, 0, 0, 0), gettid());
}

static void *waits(void *arg)
{
	check_identity();
	ADD(&nr_waiting, 1);
	while (LOAD(&word) == 0)
		(void)lib_futex_wait(&word, 0);
	return arg;
}

static void *reads(void *arg)
{
	char c = 0;

	CHECK_EQ(lib_read(fds[0], &c, 1), 1);
	return arg;
}

/* A system call changes rax, rcx and r11, and no other register. */
static void *keeps_registers(void *arg)
{
#if defined(__x86_64__)
	static const long numbers[] = { SYS_gettid, SYS_getppid, SYS_sched_yield };

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		long ret, di = 101, si = 102, dx = 103, bx = 107, kept = 0;
		register long r10 __asm__("r10") = 104;
		register long r8 __asm__("r8") = 105;
		register long r9 __asm__("r9") = 106;
		register long r12 __asm__("r12") = 108;
		register long r13 __asm__("r13") = 109;
		register long r14 __asm__("r14") = 110;
		register long r15 __asm__("r15") = 111;

		__asm__ volatile("syscall"
				 : "=a"(ret), "+D"(di), "+S"(si), "+d"(dx), "+b"(bx), "+r"(r10),
				   "+r"(r8), "+r"(r9), "+r"(r12), "+r"(r13), "+r"(r14), "+r"(r15)
				 : "a"(numbers[i])
				 : "rcx", "r11", "memory");
		kept = di == 101 && si == 102 && dx == 103 && r10 == 104 && r8 == 105 &&
		       r9 == 106 && bx == 107 && r12 == 108 && r13 == 109 && r14 == 110 &&
		       r15 == 111;
		CHECK(kept);
		CHECK(ret >= 0);
	}
#endif
	return arg;
}

int main(void)
{
	pthread_t t[NR];

	CHECK_EQ(lib_gettid_at_load(), gettid());
	for (int i = 0; i < NR; i++)
		t[i] = start(waits, NULL);
	while (LOAD(&nr_waiting) < NR)
		sched_yield();
	let_others_block();
	STORE(&word, 1);
	CHECK_SYS(syscall(SYS_futex, &word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, NR));
	for (int i = 0; i < NR; i++)
		join(t[i]);
	ok("futex wait");
	CHECK_SYS(pipe(fds));
	for (int i = 0; i < NR; i++)
		t[i] = start(reads, NULL);
	let_others_block();
	CHECK_EQ(write(fds[1], "123456", NR), NR);
	for (int i = 0; i < NR; i++)
		join(t[i]);
	check_identity();
	ok("read");
	for (int i = 0; i < NR; i++)
		t[i] = start(keeps_registers, NULL);
	for (int i = 0; i < NR; i++)
		join(t[i]);
	ok("registers");
	return finish();
}
