// SPDX-License-Identifier: Apache-2.0
/*
 * Looking through code for a few bytes, 64 at a time.
 *
 * Runs in a hook as well, where vector registers belong to the program: what is used is put back. It lies in
 * the red zone meanwhile, which is ours here.
 */
#include "arch/asm.h"

	.text

	.macro SAVE_XMM
	.irp n,0,1,2,3,4,5,6
	movups	%xmm\n, -16 - 16 * \n(%rsp)
	.endr
	.endm

	.macro RESTORE_XMM
	.irp n,0,1,2,3,4,5,6
	movups	-16 - 16 * \n(%rsp), %xmm\n
	.endr
	.endm

	.macro ALL_BYTES value xmm
	movl	$0x01010101 * \value, %eax
	movd	%eax, \xmm
	pshufd	$0, \xmm, \xmm
	.endm

	/* const uint8_t *name(const uint8_t *p, const uint8_t *end): the next first and second, or end. */
	.macro FIND name first second
FUNC(\name)
	.cfi_startproc
	SAVE_XMM
	ALL_BYTES \first, %xmm4
	ALL_BYTES \second, %xmm5
	/* The bytes behind each block are looked at, too. */
1:	leaq	65(%rdi), %rax
	cmpq	%rsi, %rax
	ja	3f
	pxor	%xmm6, %xmm6
	.irp at,0,32
	movdqu	\at(%rdi), %xmm0
	movdqu	\at + 1(%rdi), %xmm1
	movdqu	\at + 16(%rdi), %xmm2
	movdqu	\at + 17(%rdi), %xmm3
	pcmpeqb	%xmm4, %xmm0
	pcmpeqb	%xmm5, %xmm1
	pcmpeqb	%xmm4, %xmm2
	pcmpeqb	%xmm5, %xmm3
	pand	%xmm1, %xmm0
	pand	%xmm3, %xmm2
	por	%xmm0, %xmm6
	por	%xmm2, %xmm6
	.endr
	pmovmskb %xmm6, %eax
	testl	%eax, %eax
	jnz	2f
	addq	$64, %rdi
	jmp	1b
2:	cmpw	$(\second << 8 | \first), (%rdi)	/* there is one: no end to test */
	je	4f
	incq	%rdi
	jmp	2b
3:	leaq	2(%rdi), %rax
	cmpq	%rsi, %rax
	ja	5f
	cmpw	$(\second << 8 | \first), (%rdi)
	je	4f
	incq	%rdi
	jmp	3b
5:	movq	%rsi, %rdi
4:	movq	%rdi, %rax
	RESTORE_XMM
	ret
	.cfi_endproc
END_FUNC(\name)
	.endm

FIND wf_find_syscall 0x0f 0x05
/* rdgsbase, wrgsbase, and fences. */
FIND wf_find_0fae 0x0f 0xae
/* The number of seccomp(). */
FIND wf_find_3d01 0x3d 0x01

/*
 * void wf_find_jumps(const uint8_t *p, size_t nr, uint64_t *out): for each of nr blocks of 64 bytes, a bit
 * for every byte that could begin a jump with a 32-bit displacement: e9, or 0f 80 to 0f 8f. Reads one byte more.
 */
FUNC(wf_find_jumps)
	.cfi_startproc
	SAVE_XMM
	ALL_BYTES 0xe9, %xmm3
	ALL_BYTES 0x0f, %xmm4
	ALL_BYTES 0xf0, %xmm5
	ALL_BYTES 0x80, %xmm6
	leaq	(%rdx,%rsi,8), %r8
1:	cmpq	%r8, %rdx
	je	2f
	xorl	%ecx, %ecx
	.irp at,48,32,16,0
	movdqu	\at + 1(%rdi), %xmm2
	movdqu	\at(%rdi), %xmm0
	pand	%xmm5, %xmm2
	movdqa	%xmm0, %xmm1
	pcmpeqb	%xmm6, %xmm2
	pcmpeqb	%xmm4, %xmm0
	pcmpeqb	%xmm3, %xmm1
	pand	%xmm2, %xmm0
	por	%xmm1, %xmm0
	pmovmskb %xmm0, %eax
	shlq	$16, %rcx
	orq	%rax, %rcx
	.endr
	movq	%rcx, (%rdx)
	addq	$64, %rdi
	addq	$8, %rdx
	jmp	1b
2:	RESTORE_XMM
	ret
	.cfi_endproc
END_FUNC(wf_find_jumps)

/*
 * uint64_t wf_find_short_jumps(const uint8_t *p): a bit for each of 64 bytes that could begin a jump with a displacement of
 * 8 bits: 70 to 7f, e0 to e3, eb.
 */
FUNC(wf_find_short_jumps)
	.cfi_startproc
	SAVE_XMM
	ALL_BYTES 0xf0, %xmm3
	ALL_BYTES 0x70, %xmm4
	ALL_BYTES 0xfc, %xmm5
	ALL_BYTES 0xe0, %xmm6
	xorl	%ecx, %ecx
	.irp at,48,32,16,0
	movdqu	\at(%rdi), %xmm0
	movdqa	%xmm0, %xmm1
	movdqa	%xmm0, %xmm2
	pand	%xmm3, %xmm1
	pand	%xmm5, %xmm2
	pcmpeqb	%xmm4, %xmm1
	pcmpeqb	%xmm6, %xmm2
	por	%xmm2, %xmm1
	pmovmskb %xmm1, %edx
	shlq	$16, %rcx
	orq	%rdx, %rcx
	.endr
	ALL_BYTES 0xeb, %xmm4
	xorl	%esi, %esi
	.irp at,48,32,16,0
	movdqu	\at(%rdi), %xmm0
	pcmpeqb	%xmm4, %xmm0
	pmovmskb %xmm0, %edx
	shlq	$16, %rsi
	orq	%rdx, %rsi
	.endr
	RESTORE_XMM
	movq	%rcx, %rax
	orq	%rsi, %rax
	ret
	.cfi_endproc
END_FUNC(wf_find_short_jumps)

NO_EXEC_STACK
