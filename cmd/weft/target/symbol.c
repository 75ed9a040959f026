// SPDX-License-Identifier: Apache-2.0
/* Dynamic symbols, from the target's memory; see symbol.h. */
#include "target/symbol.h"

#include <string.h>

#define MAX_DYNAMIC 256
#define MAX_CHAIN 1000 /* symbols of one bucket */

/* The hash table that the dynamic linker uses, read as it does; every number in it is the target's. */
static uint64_t lookup(const struct wf_target *t, uint64_t base, uint64_t hash, uint64_t symbols,
		       uint64_t strings, const char *name)
{
	uint32_t head[4], h = 5381, index, chain;
	size_t bytes = strlen(name) + 1;
	uint64_t buckets;
	char text[64];

	for (const char *c = name; *c; c++)
		h = h * 33 + (unsigned char)*c;
	if (bytes > sizeof(text) || !wf_target_read(t, hash, head, sizeof(head)) || !head[0])
		return 0;
	buckets = hash + sizeof(head) + (uint64_t)head[2] * 8;
	if (!wf_target_read(t, buckets + (uint64_t)(h % head[0]) * 4, &index, 4) || index < head[1])
		return 0;
	for (int steps = 0; steps < MAX_CHAIN; steps++, index++) {
		Elf64_Sym s;

		if (!wf_target_read(t, buckets + ((uint64_t)head[0] + index - head[1]) * 4, &chain,
				    4))
			return 0;
		if ((chain | 1) == (h | 1) &&
		    wf_target_read(t, symbols + (uint64_t)index * sizeof(s), &s, sizeof(s)) &&
		    s.st_shndx != SHN_UNDEF &&
		    wf_target_read(t, strings + s.st_name, text, bytes) &&
		    memcmp(text, name, bytes) == 0)
			return base + s.st_value;
		if (chain & 1)
			break;
	}
	return 0;
}

bool wf_symbol_read_headers(const struct wf_target *t, uint64_t start, Elf64_Ehdr *e,
			    Elf64_Phdr out[WF_SYMBOL_HEADERS])
{
	return wf_target_read(t, start, e, sizeof(*e)) &&
	       memcmp(e->e_ident, ELFMAG, SELFMAG) == 0 && e->e_ident[EI_CLASS] == ELFCLASS64 &&
	       e->e_phentsize == sizeof(*out) && e->e_phnum <= WF_SYMBOL_HEADERS &&
	       wf_target_read(t, start + e->e_phoff, out, e->e_phnum * sizeof(*out));
}

/* Where the object's addresses count from, and its dynamic section: false when it is no such object. */
static bool read_headers(const struct wf_target *t, uint64_t start, uint64_t *out_base,
			 uint64_t *out_dynamic)
{
	Elf64_Phdr p[WF_SYMBOL_HEADERS];
	Elf64_Ehdr e;
	bool has_base = false;

	if (!wf_symbol_read_headers(t, start, &e, p))
		return false;
	*out_base = start;
	*out_dynamic = 0;
	for (int i = 0; i < e.e_phnum; i++) {
		if (p[i].p_type == PT_LOAD && !has_base) {
			*out_base = start - (p[i].p_vaddr & -(uint64_t)4096);
			has_base = true;
		}
		if (p[i].p_type == PT_DYNAMIC)
			*out_dynamic = p[i].p_vaddr;
	}
	return *out_dynamic;
}

uint64_t wf_symbol_find(const struct wf_target *t, uint64_t start, const char *name)
{
	uint64_t base, dynamic, hash = 0, symbols = 0, strings = 0;

	if (!read_headers(t, start, &base, &dynamic))
		return 0;
	for (int i = 0; i < MAX_DYNAMIC; i++) {
		Elf64_Dyn d;
		uint64_t at;

		if (!wf_target_read(t, base + dynamic + (uint64_t)i * sizeof(d), &d, sizeof(d)) ||
		    d.d_tag == DT_NULL)
			break;
		/* The dynamic linker makes some of these absolute in place. */
		at = d.d_un.d_ptr < base ? base + d.d_un.d_ptr : d.d_un.d_ptr;
		if (d.d_tag == DT_GNU_HASH)
			hash = at;
		else if (d.d_tag == DT_SYMTAB)
			symbols = at;
		else if (d.d_tag == DT_STRTAB)
			strings = at;
	}
	return hash && symbols && strings ? lookup(t, base, hash, symbols, strings, name) : 0;
}
