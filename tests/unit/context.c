// SPDX-License-Identifier: Apache-2.0
/* arch/x86_64/switch.S and context.c: what a switch keeps. */
#include "arch/arch.h"

#include <stdint.h>
#include <sys/mman.h>

#include "tap.h"

#define STACK_BYTES 65536

/*
 * wf_arch_switch(save, to) with mark in every register that a function keeps for its caller. Returns 0 when all of them
 * have it still when somebody has switched back.
 */
uint64_t switch_marked(void **save, void *to, uint64_t mark);
__asm__(".text\n"
	".type switch_marked, @function\n"
	"switch_marked:\n"
	"	pushq %rbx\n"
	"	pushq %rbp\n"
	"	pushq %r12\n"
	"	pushq %r13\n"
	"	pushq %r14\n"
	"	pushq %r15\n"
	"	pushq %rdx\n"
	"	.irp reg, rbx, rbp, r12, r13, r14, r15\n"
	"	movq %rdx, %\\reg\n"
	"	.endr\n"
	"	call wf_arch_switch\n"
	"	popq %rdx\n"
	"	xorl %eax, %eax\n"
	"	.irp reg, rbx, rbp, r12, r13, r14, r15\n"
	"	xorq %rdx, %\\reg\n"
	"	orq %\\reg, %rax\n"
	"	.endr\n"
	"	popq %r15\n"
	"	popq %r14\n"
	"	popq %r13\n"
	"	popq %r12\n"
	"	popq %rbp\n"
	"	popq %rbx\n"
	"	ret\n"
	".size switch_marked, . - switch_marked\n");

static void *main_sp, *other_sp, *given;
static uint64_t nr_bad;
static char stack[STACK_BYTES] __attribute__((aligned(64)));

static uint32_t mxcsr(void)
{
	uint32_t value;

	__asm__ volatile("stmxcsr %0" : "=m"(value));
	return value & 0xffc0; /* without the flags that operations raise */
}

static uint16_t x87cw(void)
{
	uint16_t value;

	__asm__ volatile("fnstcw %0" : "=m"(value));
	return value;
}

static void set_modes(uint32_t sse, uint16_t x87)
{
	__asm__ volatile("ldmxcsr %0" : : "m"(sse));
	__asm__ volatile("fldcw %0" : : "m"(x87));
}

static void begin(void (*fn)(void *), void *arg)
{
	nr_bad = 0;
	other_sp = wf_arch_make_context(stack + STACK_BYTES, fn, arg);
}

static void other_marks(void *arg)
{
	given = arg;
	for (uint64_t i = 1;; i++)
		nr_bad += switch_marked(&other_sp, main_sp, i * 0x1111111111111111ull) != 0;
}

TEST(registers_are_kept)
{
	begin(other_marks, &nr_bad);
	for (uint64_t i = 1; i < 8; i++)
		nr_bad += switch_marked(&main_sp, other_sp, i * 0x2222222222222222ull) != 0;
	CHECK_EQ(nr_bad, 0);
	CHECK(given == &nr_bad);
}

static uint32_t sse_of_other;
static uint16_t x87_of_other;

static void other_modes(void *arg)
{
	(void)arg;
	/* a new context begins with the usual ones, whoever switches to it */
	nr_bad += mxcsr() != 0x1f80;
	nr_bad += x87cw() != 0x37f;
	for (;;) {
		const uint32_t sse = sse_of_other;
		const uint16_t x87 = x87_of_other;

		set_modes(sse, x87);
		(void)switch_marked(&other_sp, main_sp, 1);
		nr_bad += mxcsr() != sse;
		nr_bad += x87cw() != x87;
	}
}

/* Where both differ, and where only one of the two does. */
TEST(rounding_modes_are_kept)
{
	static const struct {
		uint32_t sse, other_sse;
		uint16_t x87, other_x87;
	} rows[] = {
		{ 0x1f80, 0x1f80, 0x37f, 0x37f }, { 0x1f80, 0x3f80, 0x37f, 0x37f },
		{ 0x1f80, 0x1f80, 0x37f, 0x77f }, { 0x5f80, 0x3f80, 0xb7f, 0x77f },
		{ 0x9f80, 0x1f80, 0x37f, 0x37f }, { 0x1f80, 0x1f80, 0x27f, 0x37f },
	};

	set_modes(0x7f80, 0xf7f);
	begin(other_modes, NULL);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		sse_of_other = rows[i].other_sse;
		x87_of_other = rows[i].other_x87;
		set_modes(rows[i].sse, rows[i].x87);
		(void)switch_marked(&main_sp, other_sp, 2);
		nr_bad += mxcsr() != rows[i].sse;
		nr_bad += x87cw() != rows[i].x87;
	}
	set_modes(0x1f80, 0x37f);
	CHECK_EQ(nr_bad, 0);
}
