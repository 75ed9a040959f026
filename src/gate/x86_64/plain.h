// SPDX-License-Identifier: Apache-2.0
/*
 * The length of the nine instructions in ten that are easily described: no prefix but REX, no VEX, and nothing in them that a search
 * for system calls asks about but where they jump to. It takes a third of the time of wf_insn_decode().
 *
 * Called by: scan.c.
 *
 * Invariant: what is plain has the same length here as there.
 */
#ifndef WF_GATE_X86_64_PLAIN_H
#define WF_GATE_X86_64_PLAIN_H

#include "base/base.h"
#include "gate/x86_64/insn.h"

enum {
	WF_PLAIN_IMM = 7, /* bytes of the immediate */
	WF_PLAIN_MODRM = 8,
	WF_PLAIN_NARROW = 16, /* not with REX.W */
	WF_PLAIN_NO_RIP = 32, /* not with an operand relative to the next instruction */
	WF_PLAIN_JUMP = 64,   /* the immediate is its displacement */
	WF_PLAIN_ENDS = 128,  /* what follows is not reached from here */
	WF_PLAIN = 256,
};

extern const uint16_t wf_plain_one[256], wf_plain_two[256]; /* of these, by opcode */
extern const uint8_t wf_plain_modrm[256]; /* bytes, but for a SIB with a displacement and no base */

/* Returns the length, or 0: ask wf_insn_decode(). Reads up to WF_INSN_MAX bytes. Few branches: no processor foretells them. */
WF_INLINE unsigned int wf_plain_len(const uint8_t *p, unsigned int *out_form)
{
	unsigned int rex = (*p & 0xf0) == 0x40;
	const uint8_t *at = p + rex;
	unsigned int form = wf_plain_one[*at];
	unsigned int len;

	if (*at == 0x0f)
		form = wf_plain_two[*++at];
	*out_form = form;
	if (!(form & WF_PLAIN) || (form & WF_PLAIN_NARROW && rex && *p & 8) ||
	    (form & WF_PLAIN_NO_RIP && (at[1] & 0xc7) == 0x05))
		return 0;
	len = (unsigned int)(at + 1 - p) + (form & WF_PLAIN_IMM);
	len += wf_plain_modrm[at[1]] & -(form / WF_PLAIN_MODRM & 1);
	if (form & WF_PLAIN_MODRM && (at[1] & 0xc7) == 0x04 && (at[2] & 7) == 5)
		len += 4;
	return len;
}

#endif
