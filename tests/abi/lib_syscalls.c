// SPDX-License-Identifier: Apache-2.0
/*
 * A library that makes system calls without libc, in its constructor too: opened by dlopen_*.c, and linked
 * in other ways (text relocations, executable stack, more text than one likes to search).
 */
#include <stddef.h>
#include <sys/syscall.h>

long lib_gettid(void);
long lib_gettid_bare(void);
long lib_gettid_at_load(void);
long lib_call(long nr, long a, long b, long c, long d);
long lib_futex_wait(unsigned *word, unsigned expected);
long lib_read(int fd, void *p, size_t n);

static long tid_at_load;

static inline long call4(long nr, long a, long b, long c, long d)
{
	register long r10 __asm__("r10") = d;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "0"(nr), "D"(a), "S"(b), "d"(c), "r"(r10)
			 : "rcx", "r11", "memory");
	return ret;
}

__attribute__((constructor)) static void load(void)
{
	tid_at_load = call4(SYS_gettid, 0, 0, 0, 0);
}

long lib_gettid_at_load(void)
{
	return tid_at_load;
}

long lib_gettid(void)
{
	return call4(SYS_gettid, 0, 0, 0, 0);
}

long lib_call(long nr, long a, long b, long c, long d)
{
	return call4(nr, a, b, c, d);
}

/* FUTEX_WAIT_PRIVATE, without end. */
long lib_futex_wait(unsigned *word, unsigned expected)
{
	return call4(SYS_futex, (long)word, 128, (long)expected, 0);
}

long lib_read(int fd, void *p, size_t n)
{
	return call4(SYS_read, fd, (long)p, (long)n, 0);
}

/* A function as people write them who do not know of call frame information. */
__asm__(".text\n"
	".globl lib_gettid_bare\n"
	".type lib_gettid_bare, @function\n"
	"lib_gettid_bare:\n"
	"	movl $186, %eax\n"
	"	syscall\n"
	"	ret\n"
	".size lib_gettid_bare, . - lib_gettid_bare\n");

#ifdef LIB_BIG
__asm__(".text\n"
	".balign 16\n"
	".globl lib_padding\n"
	"lib_padding:\n"
	".fill 3 << 20, 1, 0x90\n"
	"ret\n");
#endif

#ifdef LIB_TEXT_RELOCATION
/* The address is written into the instruction behind the system call, by the loader. */
long lib_address(void);
__asm__(".text\n"
	".globl lib_address\n"
	"lib_address:\n"
	"	movl $186, %eax\n"
	"	syscall\n"
	"	movabsq $lib_address, %rax\n"
	"	ret\n");
#endif
