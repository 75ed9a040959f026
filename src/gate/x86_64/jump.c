// SPDX-License-Identifier: Apache-2.0
/* Where a jump may go without being in the way; see jump.h. */
#include "gate/x86_64/jump.h"

#include "gate/x86_64/insn.h"

#define ENDBR_LEN 4

/* A function that does nothing, with room for a jump: ret and padding, or endbr64 and ret. */
bool wf_jump_has_room(const uint8_t *p)
{
	const uint8_t *end = p + WF_JUMP_BYTES;
	struct wf_insn insn;
	bool is_nop;

	if (p[0] == 0xf3 && p[1] == 0x0f && p[2] == 0x1e && p[3] == 0xfa)
		return p[ENDBR_LEN] == 0xc3;
	if (*p++ != 0xc3)
		return false;
	for (; p < end; p += insn.len) {
		if (!wf_insn_decode(p, p + 16, &insn))
			return false;
		is_nop = (insn.map == WF_MAP_ONE && insn.opcode == 0x90) ||
			 (insn.map == WF_MAP_0F && insn.opcode == 0x1f);
		if (!is_nop)
			return false;
	}
	return true;
}
