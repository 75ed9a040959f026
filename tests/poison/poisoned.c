// SPDX-License-Identifier: Apache-2.0
/*
 * A build with -Dpoison=true must really destroy what it claims to: run under weft, every vector register comes
 * back from a system call of libc as all ones. Run natively it must fail: the kernel preserves them all.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NR 32

static struct {
	uint64_t word[8];
} seen[NR] __attribute__((aligned(64)));

#define CLOBBERS                                                                                   \
	"rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc", "xmm0",       \
		"xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",   \
		"xmm11", "xmm12", "xmm13", "xmm14", "xmm15"

/* libc's syscall() has one system call instruction and touches no vector register. */
static void call_with_ymm(void)
{
	__asm__ volatile(".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
			 "vpxor %%ymm\\n, %%ymm\\n, %%ymm\\n\n"
			 ".endr\n"
			 "movl %1, %%edi\n"
			 "call *%2\n"
			 ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
			 "vmovdqa %%ymm\\n, 64*\\n(%0)\n"
			 ".endr\n"
			 "vzeroupper\n"
			 :
			 : "b"(seen), "i"(SYS_gettid), "r"(&syscall)
			 : CLOBBERS);
}

__attribute__((target("avx512f"))) static void call_with_zmm(void)
{
	__asm__ volatile(".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,"
			 "25,26,27,28,29,30,31\n"
			 "vpxorq %%zmm\\n, %%zmm\\n, %%zmm\\n\n"
			 ".endr\n"
			 "movl %1, %%edi\n"
			 "call *%2\n"
			 ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,"
			 "25,26,27,28,29,30,31\n"
			 "vmovdqa64 %%zmm\\n, 64*\\n(%0)\n"
			 ".endr\n"
			 "vzeroupper\n"
			 :
			 : "b"(seen), "i"(SYS_gettid), "r"(&syscall)
			 : CLOBBERS, "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22",
			   "xmm23", "xmm24", "xmm25", "xmm26", "xmm27", "xmm28", "xmm29", "xmm30",
			   "xmm31");
}

static int nr_kept(int nr_registers, int nr_words)
{
	int kept = 0;

	for (int i = 0; i < nr_registers; i++)
		for (int j = 0; j < nr_words; j++)
			kept += seen[i].word[j] != UINT64_MAX;
	return kept;
}

static void *runs(void *out_kept)
{
	if (!__builtin_cpu_supports("avx2"))
		return NULL;
	memset(seen, 0, sizeof(seen));
	call_with_ymm();
	*(int *)out_kept = nr_kept(16, 4);
	if (!__builtin_cpu_supports("avx512f"))
		return NULL;
	memset(seen, 0, sizeof(seen));
	call_with_zmm();
	*(int *)out_kept += nr_kept(NR, 8);
	return NULL;
}

int main(void)
{
	int kept = 0;
	pthread_t t;

	/* The gate passes everything through until the first thread is made. */
	if (pthread_create(&t, NULL, runs, &kept) || pthread_join(t, NULL))
		return 2;
	printf("1..1\n%sok 1 - system calls destroy every vector register\n", kept ? "not " : "");
	if (kept)
		printf("# %d words of 64 bits were kept\n", kept);
	return kept != 0;
}
