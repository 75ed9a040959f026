// SPDX-License-Identifier: Apache-2.0
/* Loops that wait, as their authors mark them for the processor; see arch.h. */
#include "arch/arch.h"

bool wf_arch_has_pause(const unsigned char *code, size_t n)
{
	for (size_t i = 0; i + 1 < n; i++)
		if (code[i] == 0xf3 && code[i + 1] == 0x90)
			return true;
	return false;
}
