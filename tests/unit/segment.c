// SPDX-License-Identifier: Apache-2.0
/* Finding the instructions for the GS base, and those that make filters, in code of its own and in libc. */
#include "gate/fde.c"
#include "gate/x86_64/insn.c"
#include "gate/x86_64/segment.c"

#include "gate.h"
#include "tap.h"

/* Code without tables. */
static bool search(bool (*has)(const struct dl_phdr_info *), const uint8_t *code, size_t bytes)
{
	const ElfW(Phdr) text = {
		.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = bytes, .p_memsz = bytes
	};

	return has(&(struct dl_phdr_info){
		.dlpi_addr = (uintptr_t)code, .dlpi_phdr = &text, .dlpi_phnum = 1 });
}

#define HAS(has, ...)                                                                              \
	({                                                                                         \
		const uint8_t code_[] = { 0x90, 0x55, __VA_ARGS__, 0xc3 };                         \
		search(has, code_, sizeof(code_));                                                 \
	})
#define HAS_BASE(...) HAS(wf_segment_has_base_insns, __VA_ARGS__)
#define HAS_FILTER(...) HAS(wf_segment_has_filters, __VA_ARGS__)

TEST(each_form_is_found)
{
	CHECK(HAS_BASE(0xf3, 0x48, 0x0f, 0xae, 0xdb));                   /* wrgsbase %rbx */
	CHECK(HAS_BASE(0xf3, 0x49, 0x0f, 0xae, 0xdf));                   /* wrgsbase %r15 */
	CHECK(HAS_BASE(0xf3, 0x0f, 0xae, 0xd8));                         /* wrgsbase %eax */
	CHECK(HAS_BASE(0xf3, 0x48, 0x0f, 0xae, 0xc8));                   /* rdgsbase %rax */
	CHECK(HAS_BASE(0x0f, 0xae, 0xf0, 0xf3, 0x48, 0x0f, 0xae, 0xdb)); /* behind a fence */
	CHECK(HAS_FILTER(0xbf, 0x3d, 0x01, 0x00, 0x00));                 /* mov $317, %edi */
	CHECK(HAS_FILTER(0xb8, 0x3d, 0x01, 0x00, 0x00));                 /* mov $317, %eax */
}

TEST(what_is_alike_is_not)
{
	CHECK(!HAS_BASE(0xf3, 0x48, 0x0f, 0xae, 0xd3)); /* wrfsbase %rbx */
	CHECK(!HAS_BASE(0xf3, 0x48, 0x0f, 0xae, 0xc3)); /* rdfsbase %rbx */
	CHECK(!HAS_BASE(0x0f, 0xae, 0xf0));             /* mfence */
	CHECK(!HAS_BASE(0x0f, 0xae, 0x18));             /* stmxcsr (%rax) */
	CHECK(!HAS_BASE(0xf3, 0x48, 0x0f, 0xae));       /* the end */
	/* in a constant */
	CHECK(!HAS_BASE(0x48, 0xb8, 0xf3, 0x48, 0x0f, 0xae, 0xdb, 0, 0, 0));
	CHECK(!HAS_FILTER(0x3d, 0x3d, 0x01, 0x00, 0x00)); /* cmp $317, %eax */
	CHECK(!HAS_FILTER(0xbf, 0x3d, 0x01, 0x01, 0x00)); /* mov $65853, %edi */
	CHECK(!HAS_FILTER(0x48, 0xb8, 0xbf, 0x3d, 0x01, 0, 0, 0, 0, 0));
}

TEST(bytes_are_found_as_one_by_one)
{
	static const uint8_t choice[] = { 0x0f, 0xae, 0x3d, 0x01, 0x05, 0x00 };
	uint8_t code[200];
	uint32_t random = 1;

	for (size_t i = 0; i < sizeof(code); i++) {
		random = random * 1664525u + 1013904223u;
		code[i] = choice[(random >> 24) % sizeof(choice)];
	}
	for (size_t start = 0; start < 70; start++) {
		for (size_t end = start; end <= sizeof(code); end++) {
			const uint8_t *p = code + start, *q = p;

			while (p < code + end &&
			       !(p + 1 < code + end && p[0] == 0x0f && p[1] == 0xae))
				p++;
			while (q < code + end &&
			       !(q + 1 < code + end && q[0] == 0x3d && q[1] == 0x01))
				q++;
			if (!CHECK(wf_find_0fae(code + start, code + end) == p) ||
			    !CHECK(wf_find_3d01(code + start, code + end) == q))
				return;
		}
	}
}

TEST(libc_has_none)
{
	struct dl_phdr_info m = libc_module();
	double start = now_ms();

	CHECK(!wf_segment_has_base_insns(&m));
	tap_note("looked through libc in %.2f ms", now_ms() - start);
}
