// SPDX-License-Identifier: Apache-2.0
/*
 * The length and the few properties of one x86-64 instruction, without disassembling it.
 *
 * Called by: sites.c, which walks the functions that contain system calls and decides what may be
 * moved.
 *
 * Invariant: whatever the decoder does not know for certain is an error (0), never a guess. Its
 * lengths are compared with Capstone's over the whole of libc by tests/unit/insn.c.
 *
 * Considered and dropped: a full disassembler at start-up. Capstone takes 350 to 500 ns an
 * instruction because it always prints, so the 33,000 instructions around the system calls of libc
 * would cost 12 ms, and its tables 1.5 MB.
 */
#ifndef WF_GATE_INSN_H
#define WF_GATE_INSN_H

#include <stdbool.h>
#include <stdint.h>

#define WF_INSN_MAX 15 /* bytes */

enum wf_insn_map {
	WF_MAP_ONE, /* one-byte opcodes */
	WF_MAP_0F,
	WF_MAP_0F38,
	WF_MAP_0F3A,
	WF_MAP_VEX, /* any VEX or EVEX encoding */
};

enum {
	WF_INSN_MODRM = 1,  /* modrm is valid */
	WF_INSN_RIPREL = 2, /* the operand is relative to the next instruction; disp_at is valid */
	WF_INSN_JUMP = 4,   /* direct jump, conditional or not: rel is valid */
	WF_INSN_INDIRECT = 8, /* jumps through a register or a table */
	WF_INSN_ENDS = 16,    /* what follows is not reached from here */
	WF_INSN_FIXED = 32,   /* must not be executed at another address */
	WF_INSN_SYSCALL = 64,
};

struct wf_insn {
	int32_t rel; /* displacement of a direct jump, from the end of the instruction */
	uint8_t len;
	uint8_t map; /* enum wf_insn_map */
	uint8_t opcode;
	uint8_t modrm;
	uint8_t rex;  /* the low four bits: W R X B */
	bool has_rex; /* byte registers 4 to 7 are spl.. and not ah.. */
	bool has_rep; /* an f3 prefix */
	uint8_t flags;
	uint8_t disp_at; /* where a rip-relative displacement lies in the instruction */
};

/* Decode the instruction at code, which must end before end. Returns its length, or 0. */
int wf_insn_decode(const uint8_t *code, const uint8_t *end, struct wf_insn *out);

/* True unless the instruction certainly leaves eax as it is. */
bool wf_insn_may_write_eax(const struct wf_insn *insn);

/* The constant that the instruction puts into eax, or -1. */
int64_t wf_insn_eax_constant(const uint8_t *code, const struct wf_insn *insn);

#endif
