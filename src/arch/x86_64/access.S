// SPDX-License-Identifier: Apache-2.0
/*
 * Program memory, which may not be there.
 *
 * A fault between two labels ..._begin and ..._end is ended at wf_arch_copy_fault by the fault handler (linux/sigfault.c).
 */
#include "arch/asm.h"

	.text

/*
 * long wf_arch_copy(void *dst, const void *src, size_t n): copy from or to program memory; 0, or -EFAULT
 * when the fault handler found rip between the two labels.
 */
FUNC(wf_arch_copy)
	.cfi_startproc
	movq	%rdx, %rcx
LABEL(wf_arch_copy_begin)
	cmpq	$128, %rcx		# a string instruction takes as long to start as all of this
	ja	3f
1:	subq	$8, %rcx
	jb	2f
	movq	(%rsi), %rax
	movq	%rax, (%rdi)
	addq	$8, %rsi
	addq	$8, %rdi
	jmp	1b
2:	testb	$4, %cl			# the low bits are those of what is left
	jz	4f
	movl	(%rsi), %eax
	movl	%eax, (%rdi)
	addq	$4, %rsi
	addq	$4, %rdi
4:	andl	$3, %ecx
	jz	5f
3:	rep movsb
5:
LABEL(wf_arch_copy_end)
	xorl	%eax, %eax
	ret
LABEL(wf_arch_copy_fault)
	movq	$-14, %rax
	ret
	.cfi_endproc
END_FUNC(wf_arch_copy)

/* long wf_arch_load32(const uint32_t *p, uint32_t *out): as above, one aligned load. */
FUNC(wf_arch_load32)
	.cfi_startproc
LABEL(wf_arch_load32_begin)
	movl	(%rdi), %eax
LABEL(wf_arch_load32_end)
	movl	%eax, (%rsi)
	xorl	%eax, %eax
	ret
	.cfi_endproc
END_FUNC(wf_arch_load32)

/* long wf_arch_cas32(uint32_t *p, uint32_t *expected, uint32_t desired): as above; *expected = old value. */
FUNC(wf_arch_cas32)
	.cfi_startproc
	movl	(%rsi), %eax
LABEL(wf_arch_cas32_begin)
	lock cmpxchgl %edx, (%rdi)
LABEL(wf_arch_cas32_end)
	movl	%eax, (%rsi)
	xorl	%eax, %eax
	ret
	.cfi_endproc
END_FUNC(wf_arch_cas32)

NO_EXEC_STACK
