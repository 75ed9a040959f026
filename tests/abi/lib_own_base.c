// SPDX-License-Identifier: Apache-2.0
/* A library that writes the GS base: opened by own_base_dlopen.c. */
#include <stdint.h>

uintptr_t lib_get_base(void);
void lib_set_base(uintptr_t base);

#if defined(__x86_64__)
#include "base_insns.h"

uintptr_t lib_get_base(void)
{
	return get_base_by_insn();
}

void lib_set_base(uintptr_t base)
{
	set_base_by_insn(base);
}
#else
uintptr_t lib_get_base(void)
{
	return 0;
}

void lib_set_base(uintptr_t base)
{
	(void)base;
}
#endif
