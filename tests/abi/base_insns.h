// SPDX-License-Identifier: Apache-2.0
/* The instructions that own_base.c has itself, and own_base_dlopen.c only in a library. */
#ifndef WEFT_TESTS_ABI_BASE_INSNS_H
#define WEFT_TESTS_ABI_BASE_INSNS_H

#include <stdint.h>

static void set_base_by_insn(uintptr_t base)
{
	__asm__ volatile("wrgsbase %0" ::"r"(base) : "memory");
}

static uintptr_t get_base_by_insn(void)
{
	uintptr_t base;

	__asm__ volatile("rdgsbase %0" : "=r"(base));
	return base;
}

#endif
