// SPDX-License-Identifier: Apache-2.0
/*
 * The length and the few properties of one x86-64 instruction: see insn.h.
 *
 * The tables say what follows an opcode: a ModRM byte, an immediate, both or nothing. All else
 * (prefixes, SIB, displacement) is regular. Opcodes that user programs have no business with are
 * marked as unknown on purpose.
 */
#include "gate/x86_64/insn.h"

#include "base/base.h"

enum {
	MODRM = 1,
	IMM8 = 2,
	IMMZ = 4, /* 32 bits, or 16 with the 66 prefix */
	IMM16 = 8,
	REL32 = 16,
	SPECIAL = 32,
	BAD = 64,
	PREFIX = 128,
	CLASS = 256, /* classify_*() has something to say */
};

#define ALU(base) [(base) + 0 ...(base) + 3] = MODRM, [(base) + 4] = IMM8, [(base) + 5] = IMMZ

static const uint16_t one_byte[256] = {
	ALU(0x00),
	[0x06 ... 0x07] = BAD,
	ALU(0x08),
	[0x0e] = BAD,
	[0x0f] = SPECIAL, /* the two-byte opcodes */
	ALU(0x10),
	[0x16 ... 0x17] = BAD,
	ALU(0x18),
	[0x1e ... 0x1f] = BAD,
	ALU(0x20),
	[0x26] = PREFIX,
	[0x27] = BAD,
	ALU(0x28),
	[0x2e] = PREFIX,
	[0x2f] = BAD,
	ALU(0x30),
	[0x36] = PREFIX,
	[0x37] = BAD,
	ALU(0x38),
	[0x3e] = PREFIX,
	[0x3f] = BAD,
	[0x40 ... 0x4f] = BAD, /* REX: taken before the table is asked */
	[0x60 ... 0x61] = BAD,
	[0x62] = SPECIAL, /* EVEX */
	[0x63] = MODRM,
	[0x64 ... 0x67] = PREFIX,
	[0x68] = IMMZ,
	[0x69] = MODRM | IMMZ,
	[0x6a] = IMM8,
	[0x6b] = MODRM | IMM8,
	[0x6c ... 0x6f] = BAD, /* ins, outs */
	[0x70 ... 0x7f] = IMM8 | CLASS,
	[0x80] = MODRM | IMM8,
	[0x81] = MODRM | IMMZ,
	[0x82] = BAD,
	[0x83] = MODRM | IMM8,
	[0x84 ... 0x8e] = MODRM,
	[0x8f] = MODRM | SPECIAL, /* pop, or AMD's XOP */
	[0x9a] = BAD,
	[0x9b] = CLASS,
	[0xa0 ... 0xa3] = SPECIAL, /* moffs: an address of full size */
	[0xa8] = IMM8,
	[0xa9] = IMMZ,
	[0xb0 ... 0xb7] = IMM8,
	[0xb8 ... 0xbf] = IMMZ | SPECIAL, /* the only 64-bit immediate */
	[0xc0 ... 0xc1] = MODRM | IMM8,
	[0xc2] = IMM16 | CLASS,
	[0xc3] = CLASS,
	[0xc4 ... 0xc5] = SPECIAL, /* VEX */
	[0xc6] = MODRM | IMM8 | CLASS,
	[0xc7] = MODRM | IMMZ | CLASS,
	[0xc8] = IMM16 | IMM8,
	[0xca] = IMM16 | CLASS,
	[0xcb ... 0xcc] = CLASS,
	[0xcd] = IMM8 | CLASS,
	[0xce] = BAD,
	[0xcf] = CLASS,
	[0xd0 ... 0xd3] = MODRM,
	[0xd4 ... 0xd6] = BAD,
	[0xd8 ... 0xdf] = MODRM,
	[0xe0 ... 0xe3] = IMM8 | CLASS,
	[0xe4 ... 0xe7] = BAD, /* in, out */
	[0xe8 ... 0xe9] = REL32 | CLASS,
	[0xea] = BAD,
	[0xeb] = IMM8 | CLASS,
	[0xec ... 0xef] = BAD,
	[0xf0] = PREFIX,
	[0xf1] = CLASS,
	[0xf2 ... 0xf3] = PREFIX,
	[0xf4] = CLASS,
	[0xf6] = MODRM | IMM8 | SPECIAL, /* the immediate belongs to test only */
	[0xf7] = MODRM | IMMZ | SPECIAL,
	[0xfa ... 0xfb] = BAD,
	[0xfe] = MODRM,
	[0xff] = MODRM | CLASS,
};

static const uint16_t two_byte[256] = {
	[0x00 ... 0x03] = MODRM,
	[0x04] = BAD,
	[0x05] = CLASS,
	[0x06 ... 0x0a] = BAD,
	[0x0b] = CLASS,
	[0x0c] = BAD,
	[0x0d] = MODRM,
	[0x0e ... 0x0f] = BAD, /* 3DNow! */
	[0x10 ... 0x1d] = MODRM,
	[0x1e] = MODRM | CLASS,
	[0x1f] = MODRM,
	[0x20 ... 0x27] = BAD, /* control and debug registers */
	[0x28 ... 0x2f] = MODRM,
	[0x30] = BAD,
	[0x32 ... 0x3f] = BAD,
	[0x40 ... 0x6f] = MODRM,
	[0x70 ... 0x73] = MODRM | IMM8,
	[0x74 ... 0x76] = MODRM,
	[0x78 ... 0x7b] = BAD,
	[0x7c ... 0x7f] = MODRM,
	[0x80 ... 0x8f] = REL32 | CLASS,
	[0x90 ... 0x9f] = MODRM,
	[0xa3] = MODRM,
	[0xa4] = MODRM | IMM8,
	[0xa5] = MODRM,
	[0xa6 ... 0xa7] = BAD,
	[0xaa] = BAD,
	[0xab] = MODRM,
	[0xac] = MODRM | IMM8,
	[0xad ... 0xb8] = MODRM,
	[0xb9] = MODRM | CLASS,
	[0xba] = MODRM | IMM8,
	[0xbb ... 0xc1] = MODRM,
	[0xc2] = MODRM | IMM8,
	[0xc3] = MODRM,
	[0xc4 ... 0xc6] = MODRM | IMM8,
	[0xc7] = MODRM,
	[0xd0 ... 0xfe] = MODRM,
	[0xff] = MODRM | CLASS,
};

static bool vex_has_imm8(unsigned int map, uint8_t opcode)
{
	if (map == 3)
		return true;
	return map == 1 && ((opcode >= 0x70 && opcode <= 0x73) || opcode == 0xc2 ||
			    (opcode >= 0xc4 && opcode <= 0xc6));
}

/*
 * Bytes taken by ModRM, SIB and displacement; 0 when they do not fit. Notes a rip-relative operand.
 */
static int modrm_len(const uint8_t *code, const uint8_t *at, const uint8_t *end,
		     struct wf_insn *out)
{
	unsigned int mod;
	unsigned int rm;
	int len = 1;

	if (at >= end)
		return 0;
	out->modrm = *at;
	out->flags |= WF_INSN_MODRM;
	mod = *at >> 6;
	rm = *at & 7;
	if (mod == 3)
		return 1;
	if (mod == 0 && rm == 5) {
		out->flags |= WF_INSN_RIPREL;
		out->disp_at = (uint8_t)(at + 1 - code);
		return 5;
	}
	if (rm == 4) {
		if (at + 1 >= end)
			return 0;
		len = 2;
		if (mod == 0 && (at[1] & 7) == 5)
			return 6;
	}
	if (mod == 1)
		len += 1;
	if (mod == 2)
		len += 4;
	return len;
}

/* One-byte opcodes, as far as the moving of code and the search for jump targets need to know them. */
static void classify_one_byte(struct wf_insn *out)
{
	unsigned int group = (out->modrm >> 3) & 7;

	switch (out->opcode) {
	case 0x70 ... 0x7f:
	case 0xe0 ... 0xe3:
		out->flags |= WF_INSN_JUMP | WF_INSN_FIXED;
		break;
	case 0xe9:
	case 0xeb:
		out->flags |= WF_INSN_JUMP | WF_INSN_FIXED | WF_INSN_ENDS;
		break;
	case 0xc2 ... 0xc3:
	case 0xca ... 0xcb:
	case 0xcf:
	case 0xf4:
		out->flags |= WF_INSN_FIXED | WF_INSN_ENDS;
		break;
	case 0x9b: /* fwait is a prefix of sorts */
	case 0xcc ... 0xcd:
	case 0xe8:
	case 0xf1:
		out->flags |= WF_INSN_FIXED;
		break;
	case 0xc7:
		if (out->modrm == 0xf8) /* xbegin */
			out->flags |= WF_INSN_JUMP | WF_INSN_FIXED;
		break;
	case 0xc6:
		if (out->modrm == 0xf8) /* xabort */
			out->flags |= WF_INSN_FIXED;
		break;
	case 0xff:
		if (group == 2 || group == 3)
			out->flags |= WF_INSN_FIXED;
		if (group == 4 || group == 5)
			out->flags |= WF_INSN_FIXED | WF_INSN_ENDS | WF_INSN_INDIRECT;
		break;
	default:
		break;
	}
}

static void classify_two_byte(struct wf_insn *out)
{
	switch (out->opcode) {
	case 0x05:
		out->flags |= WF_INSN_SYSCALL | WF_INSN_FIXED;
		break;
	case 0x0b:
	case 0xb9:
	case 0xff:
		out->flags |= WF_INSN_FIXED | WF_INSN_ENDS;
		break;
	case 0x1e:
		if (out->modrm == 0xfa) /* endbr64 */
			out->flags |= WF_INSN_FIXED;
		break;
	case 0x80 ... 0x8f:
		out->flags |= WF_INSN_JUMP | WF_INSN_FIXED;
		break;
	default:
		break;
	}
}

/*
 * The rest of a VEX or EVEX instruction; at points behind the 62, c4 or c5. Returns the total
 * length or 0.
 */
static int decode_vex(const uint8_t *code, const uint8_t *at, const uint8_t *end,
		      struct wf_insn *out)
{
	uint8_t kind = at[-1];
	unsigned int map = 1;
	int len;

	if (end - at < (kind == 0xc5 ? 2 : kind == 0xc4 ? 3 : 4))
		return 0;
	if (kind == 0xc4)
		map = *at & 0x1f;
	if (kind == 0x62)
		map = *at & 7;
	if (map == 0 || map == 4 || map > 6 || (kind != 0x62 && map > 3))
		return 0;
	at += kind == 0xc5 ? 1 : kind == 0xc4 ? 2 : 3;
	out->map = WF_MAP_VEX;
	out->opcode = *at++;
	if (map == 1 && out->opcode == 0x77 && kind != 0x62)
		return (int)(at - code); /* vzeroupper has no operand */
	len = modrm_len(code, at, end, out);
	if (!len)
		return 0;
	return (int)(at - code) + len + vex_has_imm8(map, out->opcode);
}

/* Immediates whose presence the table cannot say. */
static unsigned int special_form(unsigned int form, const struct wf_insn *out)
{
	switch (out->opcode) {
	case 0x8f:
		return (out->modrm & 0x38) == 0 ? form : BAD;
	case 0xf6 ... 0xf7:
		return (out->modrm & 0x38) <= 0x08 ? form : MODRM;
	default:
		return form;
	}
}

struct prefixes {
	bool has_66;
	bool has_67;
};

/* Skip the prefixes; the rare case, hence apart. */
static WF_NOINLINE const uint8_t *skip_prefixes(const uint8_t *at, const uint8_t *end,
						struct prefixes *prefixes, struct wf_insn *out)
{
	for (; at < end && (one_byte[*at] & PREFIX); at++) {
		prefixes->has_66 |= *at == 0x66;
		prefixes->has_67 |= *at == 0x67;
		out->has_rep |= *at == 0xf3;
	}
	return at;
}

/* Read the opcode behind a 0f. Returns what follows it, or BAD. */
static unsigned int two_byte_form(const uint8_t **at, const uint8_t *end, struct wf_insn *out)
{
	if (*at >= end)
		return BAD;
	out->map = WF_MAP_0F;
	out->opcode = *(*at)++;
	if (out->opcode != 0x38 && out->opcode != 0x3a)
		return two_byte[out->opcode];
	if (*at >= end)
		return BAD;
	out->map = out->opcode == 0x38 ? WF_MAP_0F38 : WF_MAP_0F3A;
	out->opcode = *(*at)++;
	return out->map == WF_MAP_0F38 ? MODRM : MODRM | IMM8;
}

static int immediate_len(unsigned int form, const struct prefixes *prefixes,
			 const struct wf_insn *out)
{
	int len = 0;

	if (form & IMM8)
		len += 1;
	if (form & IMM16)
		len += 2;
	if (form & IMMZ)
		len += prefixes->has_66 && !(out->rex & 8) ? 2 : 4;
	if (form & REL32)
		len += 4;
	if (form == (IMMZ | SPECIAL) && (out->rex & 8))
		len += 4;
	if (form == SPECIAL)
		len += prefixes->has_67 ? 4 : 8;
	return len;
}

static void read_rel(const uint8_t *code, int len, struct wf_insn *out)
{
	if (out->map == WF_MAP_ONE && out->opcode != 0xe9 && out->opcode != 0xc7)
		out->rel = (int8_t)code[len - 1];
	else
		__builtin_memcpy(&out->rel, code + len - 4, sizeof(out->rel));
}

int wf_insn_decode(const uint8_t *code, const uint8_t *end, struct wf_insn *out)
{
	struct prefixes prefixes = { false, false };
	const uint8_t *at = code;
	unsigned int form;
	int len;

	*out = (struct wf_insn){ .map = WF_MAP_ONE };
	if (at < end && (one_byte[*at] & PREFIX))
		at = skip_prefixes(at, end, &prefixes, out);
	if (at < end && (*at & 0xf0) == 0x40) {
		out->has_rex = true;
		out->rex = *at++ & 0xf;
	}
	if (at >= end || at - code > 13)
		return 0;
	out->opcode = *at++;
	form = one_byte[out->opcode];
	if (out->opcode == 0x0f)
		form = two_byte_form(&at, end, out);
	len = (int)(at - code);
	if (form & MODRM) {
		int more = modrm_len(code, at, end, out);

		if (!more)
			return 0;
		len += more;
	}
	if (form & SPECIAL) {
		if (out->opcode == 0x62 || out->opcode == 0xc4 || out->opcode == 0xc5) {
			len = out->has_rex ? 0 : decode_vex(code, at, end, out);
			form = 0;
		} else {
			form = special_form(form, out);
		}
	}
	/* With 66 alone Intel and AMD disagree about the size of a long jump. */
	if ((form & (BAD | PREFIX)) || ((form & REL32) && prefixes.has_66 && !(out->rex & 8)))
		return 0;
	len += immediate_len(form, &prefixes, out);
	if (!len || len > 15 || len > end - code)
		return 0;
	if (form & CLASS) {
		if (out->map == WF_MAP_ONE)
			classify_one_byte(out);
		else
			classify_two_byte(out);
		if (out->flags & WF_INSN_JUMP)
			read_rel(code, len, out);
	}
	/* With a 32-bit address size the operand wraps at 4 GiB: leave such code alone. */
	if (prefixes.has_67 && (out->flags & WF_INSN_RIPREL))
		out->flags |= WF_INSN_FIXED;
	out->len = (uint8_t)len;
	return len;
}

static bool reg_is_eax(const struct wf_insn *insn)
{
	return (insn->modrm & 0x38) == 0 && !(insn->rex & 4);
}

static bool rm_is_eax(const struct wf_insn *insn)
{
	return (insn->modrm & 0xc7) == 0xc0 && !(insn->rex & 1);
}

/* The same for operands of one byte, where number 4 means ah. */
static bool byte_reg_is_eax(const struct wf_insn *insn)
{
	return reg_is_eax(insn) || (!insn->has_rex && (insn->modrm & 0x38) == 0x20);
}

static bool byte_rm_is_eax(const struct wf_insn *insn)
{
	return rm_is_eax(insn) || (!insn->has_rex && (insn->modrm & 0xc7) == 0xc4);
}

static bool alu_writes_eax(const struct wf_insn *insn)
{
	if (insn->opcode >= 0x38) /* cmp */
		return false;
	switch (insn->opcode & 7) {
	case 0:
		return byte_rm_is_eax(insn);
	case 1:
		return rm_is_eax(insn);
	case 2:
		return byte_reg_is_eax(insn);
	case 3:
		return reg_is_eax(insn);
	default:
		return true;
	}
}

static bool one_byte_writes_eax(const struct wf_insn *insn)
{
	unsigned int group = (insn->modrm >> 3) & 7;

	switch (insn->opcode) {
	case 0x00 ... 0x3d:
		return alu_writes_eax(insn);
	case 0x50 ... 0x57:
	case 0x68:
	case 0x6a:
	case 0x70 ... 0x7f:
	case 0x84 ... 0x85:
	case 0x8e:
	case 0x99:
	case 0xa2 ... 0xa9:
	case 0xaa ... 0xab:
	case 0xae ... 0xaf:
	case 0xe3:
		return false;
	case 0x58 ... 0x5f:
	case 0xb8 ... 0xbf:
		return (insn->opcode & 7) == 0 && !(insn->rex & 1);
	case 0x63:
	case 0x69:
	case 0x6b:
	case 0x8b:
	case 0x8d:
		return reg_is_eax(insn);
	case 0x80:
		return group != 7 && byte_rm_is_eax(insn);
	case 0x81:
	case 0x83:
		return group != 7 && rm_is_eax(insn);
	case 0x88:
	case 0xc6:
		return byte_rm_is_eax(insn);
	case 0x89:
	case 0xc1:
	case 0xc7:
	case 0xd1:
	case 0xd3:
		return rm_is_eax(insn);
	case 0x8a:
		return byte_reg_is_eax(insn);
	case 0x90:
		return insn->rex & 1;
	case 0xb0 ... 0xb7:
		return insn->opcode == 0xb0 || insn->opcode == 0xb4;
	case 0xf6 ... 0xf7:
		return group > 1 && (group > 3 || byte_rm_is_eax(insn));
	case 0xfe:
		return byte_rm_is_eax(insn);
	case 0xff:
		return group != 6 && (group > 1 || rm_is_eax(insn));
	default:
		return true;
	}
}

static bool two_byte_writes_eax(const struct wf_insn *insn)
{
	switch (insn->opcode) {
	case 0x0d:
	case 0x10 ... 0x1f:
	case 0x28 ... 0x2b:
	case 0x2e ... 0x2f:
	case 0x51 ... 0x76:
	case 0x7f:
	case 0x80 ... 0x8f:
	case 0xa3:
	case 0xc6:
	case 0xd4:
	case 0xd6:
	case 0xef:
		return false;
	case 0x7e:
		return !insn->has_rep;
	case 0x40 ... 0x4f:
	case 0xaf:
	case 0xb6 ... 0xb7:
	case 0xbe ... 0xbf:
		return reg_is_eax(insn);
	case 0x90 ... 0x9f:
		return byte_rm_is_eax(insn);
	default:
		return true;
	}
}

bool wf_insn_may_write_eax(const struct wf_insn *insn)
{
	switch (insn->map) {
	case WF_MAP_ONE:
		return one_byte_writes_eax(insn);
	case WF_MAP_0F:
		return two_byte_writes_eax(insn);
	default:
		return true;
	}
}

int64_t wf_insn_eax_constant(const uint8_t *code, const struct wf_insn *insn)
{
	uint32_t imm;

	if (insn->map != WF_MAP_ONE)
		return -1;
	if ((insn->opcode == 0x31 || insn->opcode == 0x33) && insn->modrm == 0xc0 &&
	    !(insn->rex & 5))
		return 0;
	if ((insn->opcode == 0xb8 && !(insn->rex & 9) && insn->len >= 5) ||
	    (insn->opcode == 0xc7 && insn->modrm == 0xc0 && !(insn->rex & 1) && insn->len >= 6)) {
		__builtin_memcpy(&imm, code + insn->len - 4, sizeof(imm));
		return imm;
	}
	return -1;
}
