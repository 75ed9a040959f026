// SPDX-License-Identifier: Apache-2.0
/*
 * The pool of trampolines, inside our own text: libraries are mapped near one another, so jumps
 * reach it; debuggers and unwinders know it as our code. Filled by patch.c at start-up.
 *
 * A trampoline, for a system call instruction at `site`:
 *
 *	copies of the instructions before it
 *   entry:
 *	lea -128(%rsp), %rsp		spare the red zone; unlike sub, lea leaves the flags alone
 *	lea site+2(%rip), %r11		r11 and rcx are lost in a system call anyway
 *	lea resume(%rip), %rcx
 *	jmp wf_arch_gate_entry		comes back with lea 128(%rsp), %rsp; jmp *%rcx
 *					(others in other modules than libc: enum wf_gate_entry)
 *   resume:
 *	copies of the instructions after it
 *	jmp back behind the window
 *
 * One rule cannot be exact for all of it. This one is, before the jump to the entry: the frame
 * seems to be called by the system call instruction. The copies at either end run with the
 * registers of the site, and whoever shows them to somebody maps their address back first
 * (wf_gate_from_tramp).
 */
	.text
	.balign 4096
	.globl wf_gate_pool_start
	.hidden wf_gate_pool_start
	.type wf_gate_pool_start, @function
wf_gate_pool_start:
	.cfi_startproc
	.cfi_def_cfa rsp, 128
	.cfi_register rip, r11
	.fill 131072, 1, 0xcc
	.cfi_endproc
	.size wf_gate_pool_start, . - wf_gate_pool_start
	.globl wf_gate_pool_end
	.hidden wf_gate_pool_end
wf_gate_pool_end:

	.section .note.GNU-stack, "", @progbits
