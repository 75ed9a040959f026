// SPDX-License-Identifier: Apache-2.0
/*
 * The bytes behind the opcode of a plain instruction; see plain.h. An extract of insn.c's tables, which tests/unit/insn.c
 * compares with them at each byte of libc.
 */
#include "gate/x86_64/plain.h"

#define PLAIN_ALU(base)                                                                            \
	[(base) + 0 ...(base) + 3] = WF_PLAIN | WF_PLAIN_MODRM, [(base) + 4] = WF_PLAIN | 1,       \
				[(base) + 5] = WF_PLAIN | 4

const uint16_t wf_plain_one[256] = {
	PLAIN_ALU(0x00),
	PLAIN_ALU(0x08),
	PLAIN_ALU(0x10),
	PLAIN_ALU(0x18),
	PLAIN_ALU(0x20),
	PLAIN_ALU(0x28),
	PLAIN_ALU(0x30),
	PLAIN_ALU(0x38),
	[0x50 ... 0x5f] = WF_PLAIN,
	[0x63] = WF_PLAIN | WF_PLAIN_MODRM,
	[0x68] = WF_PLAIN | 4,
	[0x69] = WF_PLAIN | WF_PLAIN_MODRM | 4,
	[0x6a] = WF_PLAIN | 1,
	[0x6b] = WF_PLAIN | WF_PLAIN_MODRM | 1,
	[0x70 ... 0x7f] = WF_PLAIN | WF_PLAIN_JUMP | 1,
	[0x80] = WF_PLAIN | WF_PLAIN_MODRM | 1,
	[0x81] = WF_PLAIN | WF_PLAIN_MODRM | 4,
	[0x83] = WF_PLAIN | WF_PLAIN_MODRM | 1,
	[0x84 ... 0x8c] = WF_PLAIN | WF_PLAIN_MODRM,
	[0x8d] = WF_PLAIN | WF_PLAIN_MODRM | WF_PLAIN_NO_RIP,
	[0x90 ... 0x99] = WF_PLAIN,
	[0xa8] = WF_PLAIN | 1,
	[0xa9] = WF_PLAIN | 4,
	[0xb0 ... 0xb7] = WF_PLAIN | 1,
	[0xb8 ... 0xbf] = WF_PLAIN | WF_PLAIN_NARROW | 4,
	[0xc0 ... 0xc1] = WF_PLAIN | WF_PLAIN_MODRM | 1,
	[0xc3] = WF_PLAIN | WF_PLAIN_ENDS,
	[0xd0 ... 0xd3] = WF_PLAIN | WF_PLAIN_MODRM,
	[0xe8] = WF_PLAIN | 4,
	[0xe9] = WF_PLAIN | WF_PLAIN_JUMP | WF_PLAIN_ENDS | 4,
	[0xeb] = WF_PLAIN | WF_PLAIN_JUMP | WF_PLAIN_ENDS | 1,
};

const uint16_t wf_plain_two[256] = {
	[0x1f] = WF_PLAIN | WF_PLAIN_MODRM,
	[0x40 ... 0x4f] = WF_PLAIN | WF_PLAIN_MODRM,
	[0x80 ... 0x8f] = WF_PLAIN | WF_PLAIN_JUMP | 4,
	[0x90 ... 0x9f] = WF_PLAIN | WF_PLAIN_MODRM,
	[0xa3] = WF_PLAIN | WF_PLAIN_MODRM,
	[0xaf] = WF_PLAIN | WF_PLAIN_MODRM,
	[0xb0 ... 0xb1] = WF_PLAIN | WF_PLAIN_MODRM,
	[0xb6 ... 0xb7] = WF_PLAIN | WF_PLAIN_MODRM,
	[0xba] = WF_PLAIN | WF_PLAIN_MODRM | 1,
	[0xbe ... 0xbf] = WF_PLAIN | WF_PLAIN_MODRM,
};

/* ModRM, SIB and displacement, but for the SIB that has a displacement without a base. */
#define WITHOUT_SIB(len) (len), (len), (len), (len), (len) + 1, (len), (len), (len)
#define MOD_0 1, 1, 1, 1, 2, 5, 1, 1
#define EIGHT(...)                                                                                 \
	__VA_ARGS__, __VA_ARGS__, __VA_ARGS__, __VA_ARGS__, __VA_ARGS__, __VA_ARGS__, __VA_ARGS__, \
		__VA_ARGS__

const uint8_t wf_plain_modrm[256] = {
	EIGHT(MOD_0),
	EIGHT(WITHOUT_SIB(2)),
	EIGHT(WITHOUT_SIB(5)),
	EIGHT(1, 1, 1, 1, 1, 1, 1, 1),
};
