// SPDX-License-Identifier: Apache-2.0
/*
 * The jump that replaces instructions: five bytes, with a displacement of 32 bits.
 *
 * Used by: patch.c, which writes it, table.c, which looks whether it is still there, modules.c, sites.c, tramp.c.
 */
#ifndef WF_GATE_X86_64_JUMP_H
#define WF_GATE_X86_64_JUMP_H

#include "base/base.h"
#include "base/san.h"
#include "gate/bytes.h"

#define WF_JUMP_BYTES 5
#define WF_JUMP_OPCODE 0xe9
#define WF_JUMP_TRAP 0xcc /* what is left of the instructions: nothing may run it */

/* Over [at, at + bytes), which is writable. Calls nothing: libc may be what is being written. */
static WF_SAN_PLAIN void wf_jump_write(uintptr_t at, size_t bytes, uintptr_t to)
{
	volatile uint8_t *p = (volatile uint8_t *)at;
	uint32_t rel = (uint32_t)(to - (at + WF_JUMP_BYTES));

	p[0] = WF_JUMP_OPCODE;
	for (size_t byte = 0; byte < 4; byte++)
		p[1 + byte] = (uint8_t)(rel >> (8 * byte));
	for (size_t rest = WF_JUMP_BYTES; rest < bytes; rest++)
		p[rest] = WF_JUMP_TRAP;
}

/* Where these bytes jump to from the address at; 0: they are no such jump. */
WF_INLINE uintptr_t wf_jump_target(const uint8_t code[WF_JUMP_BYTES], uintptr_t at)
{
	return code[0] == WF_JUMP_OPCODE
		       ? at + WF_JUMP_BYTES + (uintptr_t)(intptr_t)load32(code + 1)
		       : 0;
}

/* The function at p does nothing, and has room for a jump. */
bool wf_jump_has_room(const uint8_t *p);

#endif
