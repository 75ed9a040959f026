// SPDX-License-Identifier: Apache-2.0
/* The decoder of src/gate/insn.c against Capstone, where that is installed: all of the libc that runs this test. */
#include "gate/insn.c"

#include "gate.h"
#include "tap.h"

#include <dlfcn.h>

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
