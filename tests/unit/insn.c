// SPDX-License-Identifier: Apache-2.0
/* The decoder of src/gate/x86_64/insn.c against Capstone, where that is installed: all of the libc that runs this test. */
#include "gate/x86_64/insn.c"
#include "gate/x86_64/plain.c"

#include "gate.h"
#include "gate/bytes.h"
#include "tap.h"

#include <dlfcn.h>

/* Instructions of which libc has few or none. */
static const struct row {
	const char *name;
	uint8_t code[15];
	int len; /* 0: refused */
	int writes_eax;
	int64_t constant; /* in eax; -1: none */
} rows[] = {
	{ "test $1,%al, as /0", { 0xf6, 0xc0, 1 }, 3, 0, -1 },
	{ "test $1,%al, as /1", { 0xf6, 0xc8, 1 }, 3, 0, -1 },
	{ "not %al", { 0xf6, 0xd0 }, 2, 1, -1 },
	{ "neg %cl", { 0xf6, 0xd9 }, 2, 0, -1 },
	{ "mul %cl", { 0xf6, 0xe1 }, 2, 1, -1 },
	{ "test $1,%eax, as /1", { 0xf7, 0xc8, 1, 0, 0, 0 }, 6, 0, -1 },
	{ "test $1,%ax", { 0x66, 0xf7, 0xc0, 1, 0 }, 5, 0, -1 },
	{ "test $1,%rax", { 0x48, 0xf7, 0xc0, 1, 0, 0, 0 }, 7, 0, -1 },
	{ "idiv %ecx", { 0xf7, 0xf9 }, 2, 1, -1 },
	{ "mov $60,%eax", { 0xb8, 60, 0, 0, 0 }, 5, 1, 60 },
	{ "mov $60,%r8d", { 0x41, 0xb8, 60, 0, 0, 0 }, 6, 0, -1 },
	{ "mov $60,%ax", { 0x66, 0xb8, 60, 0 }, 4, 1, -1 },
	{ "mov $60,%rax", { 0x48, 0xb8, 60, 0, 0, 0, 0, 0, 0, 0 }, 10, 1, -1 },
	{ "mov $60,%rax, sign-extended", { 0x48, 0xc7, 0xc0, 60, 0, 0, 0 }, 7, 1, 60 },
	{ "mov $60,%r8", { 0x49, 0xc7, 0xc0, 60, 0, 0, 0 }, 7, 0, -1 },
	{ "mov $60,%ecx", { 0xb9, 60, 0, 0, 0 }, 5, 0, -1 },
	{ "xor %eax,%eax", { 0x31, 0xc0 }, 2, 1, 0 },
	{ "xor %r8d,%eax", { 0x44, 0x31, 0xc0 }, 3, 1, -1 },
	{ "xor %r8d,%r8d", { 0x45, 0x31, 0xc0 }, 3, 0, -1 },
	{ "mov %al,%spl", { 0x40, 0x88, 0xc4 }, 3, 0, -1 },
	{ "mov %al,%ah", { 0x88, 0xc4 }, 2, 1, -1 },
	{ "mov 8(%rsp),%eax", { 0x8b, 0x44, 0x24, 8 }, 4, 1, -1 },
	{ "mov 0x100(,%rax,8),%ecx", { 0x8b, 0x0c, 0xc5, 0, 1, 0, 0 }, 7, 0, -1 },
	{ "mov 0x100(%r13),%eax", { 0x41, 0x8b, 0x85, 0, 1, 0, 0 }, 7, 1, -1 },
	{ "mov 0(%rip),%eax", { 0x8b, 0x05, 0, 0, 0, 0 }, 6, 1, -1 },
	{ "movabs 0x1,%eax", { 0xa1, 1, 0, 0, 0, 0, 0, 0, 0 }, 9, 1, -1 },
	{ "the same with a short address", { 0x67, 0xa1, 1, 0, 0, 0 }, 6, 1, -1 },
	{ "enter $16,$1", { 0xc8, 16, 0, 1 }, 4, 1, -1 },
	{ "cmp $1,%eax", { 0x83, 0xf8, 1 }, 3, 0, -1 },
	{ "add $1,%eax", { 0x83, 0xc0, 1 }, 3, 1, -1 },
	{ "xchg %rax,%r8", { 0x49, 0x90 }, 2, 1, -1 },
	{ "nop", { 0x90 }, 1, 0, -1 },
	{ "pop %rax", { 0x58 }, 1, 1, -1 },
	{ "pop %r8", { 0x41, 0x58 }, 2, 0, -1 },
	{ "setne %al", { 0x0f, 0x95, 0xc0 }, 3, 1, -1 },
	{ "cmove %ecx,%eax", { 0x0f, 0x44, 0xc1 }, 3, 1, -1 },
	{ "movd %xmm0,%eax", { 0x66, 0x0f, 0x7e, 0xc0 }, 4, 1, -1 },
	{ "movq %xmm1,%xmm0", { 0xf3, 0x0f, 0x7e, 0xc1 }, 4, 0, -1 },
	{ "pshufb", { 0x66, 0x0f, 0x38, 0x00, 0xc1 }, 5, 1, -1 },
	{ "palignr", { 0x66, 0x0f, 0x3a, 0x0f, 0xc1, 4 }, 6, 1, -1 },
	{ "vzeroupper", { 0xc5, 0xf8, 0x77 }, 3, 1, -1 },
	{ "vpshufd $1", { 0xc5, 0xf9, 0x70, 0xc1, 1 }, 5, 1, -1 },
	{ "vpermq $1", { 0xc4, 0xe3, 0xfd, 0x00, 0xc1, 1 }, 6, 1, -1 },
	{ "vmovdqu64 (%rax),%zmm0", { 0x62, 0xf1, 0xfe, 0x48, 0x6f, 0x00 }, 6, 1, -1 },
	{ "je, with the size of its operand changed", { 0x66, 0x0f, 0x84, 0, 0, 0, 0 }, 0, 0, -1 },
	{ "pop by AMD's XOP", { 0x8f, 0xe8, 0, 0 }, 0, 0, -1 },
	{ "in", { 0xe4, 0x60 }, 0, 0, -1 },
	{ "a REX behind which nothing is", { 0x48 }, 0, 0, -1 },
};

TEST(what_is_rare_is_known)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *r = &rows[i];
		const uint8_t *end = r->code + (r->len ? (size_t)r->len : sizeof(r->code));
		struct wf_insn insn;
		int len;

		if (i + 1 == sizeof(rows) / sizeof(rows[0]))
			end = r->code + 1;
		len = wf_insn_decode(r->code, end, &insn);
		if (!CHECK_EQ(len, r->len))
			tap_note("%s", r->name);
		if (len != r->len || !len)
			continue;
		if (!CHECK_EQ(wf_insn_may_write_eax(&insn), r->writes_eax) ||
		    !CHECK_EQ(wf_insn_eax_constant(r->code, &insn), r->constant))
			tap_note("%s", r->name);
		if (!CHECK_EQ(wf_insn_decode(r->code, end - 1, &insn), 0))
			tap_note("%s, without its last byte", r->name);
	}
}

/* At each byte, whether an instruction begins there or not. */
TEST(plain_is_the_same_in_short)
{
	const struct dl_phdr_info m = libc_module();
	size_t nr_plain = 0, nr = 0, nr_wrong = 0;

	for (size_t i = 0; i < m.dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &m.dlpi_phdr[i];
		const uint8_t *p = (const uint8_t *)(m.dlpi_addr + ph->p_vaddr);
		const uint8_t *end = p + ph->p_filesz;

		if (ph->p_type != PT_LOAD || !(ph->p_flags & PF_X))
			continue;
		for (; end - p >= WF_INSN_MAX; p++, nr++) {
			struct wf_insn insn;
			unsigned int form, len = wf_plain_len(p, &form);
			int whole = wf_insn_decode(p, end, &insn);
			bool is_jump = insn.flags & WF_INSN_JUMP;

			if (!len)
				continue;
			nr_plain++;
			if ((int)len == whole && is_jump == !!(form & WF_PLAIN_JUMP) &&
			    !(insn.flags & WF_INSN_ENDS) == !(form & WF_PLAIN_ENDS) &&
			    !(insn.flags & (WF_INSN_INDIRECT | WF_INSN_SYSCALL)) &&
			    !(insn.opcode == 0x8d && insn.flags & WF_INSN_RIPREL) &&
			    (!is_jump ||
			     insn.rel == ((form & WF_PLAIN_IMM) == 1 ? (int8_t)p[len - 1]
								     : load32(p + len - 4))))
				continue;
			if (nr_wrong++ < 10)
				tap_note("%02x %02x %02x %02x: %u, decoded %d", p[0], p[1], p[2],
					 p[3], len, whole);
		}
	}
	tap_note("%zu of %zu plain", nr_plain, nr);
	CHECK_EQ(nr_wrong, 0);
	CHECK(nr_plain > nr / 2);
}

#if __has_include(<capstone/capstone.h>)
#include <capstone/capstone.h>

/* Opened at run time: this is the only test that wants it. */
struct capstone {
	cs_err (*open)(cs_arch, cs_mode, csh *);
	bool (*disasm_iter)(csh, const uint8_t **, size_t *, uint64_t *, cs_insn *);
	cs_insn *(*malloc)(csh);
	void (*free)(cs_insn *, size_t);
	cs_err (*close)(csh *);
	csh handle;
	cs_insn *insn;
};

static bool open_capstone(struct capstone *c)
{
	void *lib = dlopen("libcapstone.so.4", RTLD_NOW);

	if (!lib)
		return false;
	c->open = (cs_err(*)(cs_arch, cs_mode, csh *))dlsym(lib, "cs_open");
	c->disasm_iter = (bool (*)(csh, const uint8_t **, size_t *, uint64_t *, cs_insn *))dlsym(
		lib, "cs_disasm_iter");
	c->malloc = (cs_insn * (*)(csh)) dlsym(lib, "cs_malloc");
	c->free = (void (*)(cs_insn *, size_t))dlsym(lib, "cs_free");
	c->close = (cs_err(*)(csh *))dlsym(lib, "cs_close");
	if (!c->open || !c->disasm_iter || !c->malloc || !c->free || !c->close ||
	    c->open(CS_ARCH_X86, CS_MODE_64, &c->handle) != CS_ERR_OK)
		return false;
	c->insn = c->malloc(c->handle);
	return c->insn != NULL;
}

struct verdict {
	size_t nr;
	size_t nr_of_other_length;
	size_t nr_refused;
};

static void compare_function(struct capstone *c, const uint8_t *p, const uint8_t *end,
			     struct verdict *v)
{
	while (p < end) {
		const uint8_t *code = p;
		size_t left = (size_t)(end - p);
		uint64_t address = 0;
		struct wf_insn insn;
		int len = wf_insn_decode(p, end, &insn);

		if (!c->disasm_iter(c->handle, &code, &left, &address, c->insn))
			break;
		v->nr++;
		if (len == 0 && v->nr_refused++ < 10)
			tap_note("refused: %s %s", c->insn->mnemonic, c->insn->op_str);
		if (len != 0 && len != c->insn->size && v->nr_of_other_length++ < 10)
			tap_note("%02x %02x %02x %02x %02x: %d, capstone %d %s %s", p[0], p[1],
				 p[2], p[3], p[4], len, c->insn->size, c->insn->mnemonic,
				 c->insn->op_str);
		p = code;
	}
}

static void compare_module(struct capstone *c, const struct dl_phdr_info *m, struct verdict *v)
{
	for (size_t i = 0; i < m->dlpi_phnum; i++) {
		const uint8_t *hdr = (const uint8_t *)(m->dlpi_addr + m->dlpi_phdr[i].p_vaddr);
		const int32_t *table = (const int32_t *)(hdr + 12);

		if (m->dlpi_phdr[i].p_type != PT_GNU_EH_FRAME)
			continue;
		for (uint32_t f = 0; f + 1 < ((const uint32_t *)hdr)[2]; f++)
			compare_function(c, hdr + table[2 * f], hdr + table[2 * f + 2], v);
	}
}

TEST(lengths_agree_with_capstone_on_all_of_libc)
{
	struct dl_phdr_info m = libc_module();
	struct verdict v = { 0 };
	struct capstone c;
	double start;

	if (!open_capstone(&c))
		SKIP("no libcapstone");
	start = now_ms();
	compare_module(&c, &m, &v);
	tap_note("%zu instructions in %.1f ms, refused %zu, of other length %zu", v.nr,
		 now_ms() - start, v.nr_refused, v.nr_of_other_length);
	c.free(c.insn, 1);
	c.close(&c.handle);
	CHECK(v.nr > 200000);
	CHECK_EQ(v.nr_of_other_length, 0);
	CHECK(v.nr_refused < v.nr / 1000);
}
#else
TEST(lengths_agree_with_capstone_on_all_of_libc)
{
	SKIP("built without the headers of libcapstone");
}
#endif
