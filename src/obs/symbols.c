// SPDX-License-Identifier: Apache-2.0
/* Names of code; see symbols.h. */
#include "gate/modules.h"
#include "linux/abi.h"
#include "obs/symbols.h"
#include "sched/self.h"

#include <elf.h>
#include <linux/fcntl.h>
#include <linux/limits.h>

#define MAX_DYNAMIC 256u
#define MAX_SYMBOLS (1u << 20)
#define CHUNK_SYMBOLS 16u

extern char __ehdr_start[] WF_HIDDEN;

struct tables {
	uintptr_t symbols, strings, hash, gnu_hash;
};

static bool read(void *dst, uintptr_t src, size_t bytes)
{
	return wf_arch_copy(dst, (const void *)src, bytes) == 0;
}

static void copy_name(char *dst, uintptr_t src)
{
	size_t n = 0;

	while (n + 1 < WF_SYMBOLS_NAME_BYTES && read(dst + n, src + n, 1) && dst[n])
		n++;
	dst[n] = '\0';
	wf_symbols_clean(dst);
}

void wf_symbols_clean(char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			*text = '?';
}

static const char *base_of(const char *path)
{
	const char *base = path;

	for (; *path; path++)
		if (*path == '/')
			base = path + 1;
	return base;
}

static void name_module(char *dst, const char *name, bool may_ask)
{
	static char path[PATH_MAX]; /* the program ends: on whatever small stack that is */
	size_t n = 0;

	while (name && n + 1 < sizeof(path) && read(path + n, (uintptr_t)name + n, 1) && path[n])
		n++;
	path[n] = '\0';
	if (!n) { /* the program itself */
		long len = may_ask ? sys3(__NR_readlink, "/proc/self/exe", path, sizeof(path) - 1)
				   : 0;

		path[len > 0 ? len : 0] = '\0';
		if (len <= 0) {
			copy_name(dst, (uintptr_t) "program");
			return;
		}
	}
	copy_name(dst, (uintptr_t)base_of(path));
}

/* The loader has relocated the addresses in most tables, and not those of the vDSO. */
static uintptr_t place(uintptr_t base, uint64_t value)
{
	return value < base ? base + value : value;
}

static void find_tables(uintptr_t base, const void *dynamic, struct tables *out)
{
	Elf64_Dyn d;

	*out = (struct tables){ 0 };
	for (uint32_t i = 0; i < MAX_DYNAMIC; i++) {
		if (!read(&d, (uintptr_t)dynamic + i * sizeof(d), sizeof(d)) || d.d_tag == DT_NULL)
			return;
		if (d.d_tag == DT_SYMTAB)
			out->symbols = place(base, d.d_un.d_ptr);
		else if (d.d_tag == DT_STRTAB)
			out->strings = place(base, d.d_un.d_ptr);
		else if (d.d_tag == DT_HASH)
			out->hash = place(base, d.d_un.d_ptr);
		else if (d.d_tag == DT_GNU_HASH)
			out->gnu_hash = place(base, d.d_un.d_ptr);
	}
}

/* The table does not say how long it is; the index of names does, the younger one by its last chain. */
static uint32_t count_symbols(const struct tables *t)
{
	uint32_t head[4], last = 0, one = 0;
	uintptr_t buckets, chains;

	if (t->hash && read(head, t->hash, 2 * sizeof(head[0])))
		return head[1];
	if (!t->gnu_hash || !read(head, t->gnu_hash, sizeof(head)) || head[0] > MAX_SYMBOLS)
		return 0;
	buckets = t->gnu_hash + sizeof(head) + head[2] * sizeof(uint64_t);
	chains = buckets + head[0] * sizeof(uint32_t);
	for (uint32_t i = 0; i < head[0]; i++)
		if (read(&one, buckets + i * sizeof(one), sizeof(one)) && one > last)
			last = one;
	for (; last >= head[1] && last < MAX_SYMBOLS; last++)
		if (!read(&one, chains + (last - head[1]) * sizeof(one), sizeof(one)) || one & 1)
			return last + 1;
	return 0;
}

static bool is_function_at(const Elf64_Sym *s, uint64_t offset)
{
	uint8_t type = ELF64_ST_TYPE(s->st_info);

	return (type == STT_FUNC || type == STT_GNU_IFUNC) && s->st_shndx != SHN_UNDEF &&
	       offset - s->st_value < s->st_size;
}

static void find_function(uintptr_t base, const void *dynamic, struct wf_symbol *out)
{
	Elf64_Sym chunk[CHUNK_SYMBOLS];
	struct tables t;
	uint32_t nr;

	find_tables(base, dynamic, &t);
	if (!t.symbols || !t.strings)
		return;
	nr = WF_MIN(count_symbols(&t), MAX_SYMBOLS);
	for (uint32_t at = 0; at < nr; at += CHUNK_SYMBOLS) {
		uint32_t n = WF_MIN(nr - at, CHUNK_SYMBOLS);

		if (!read(chunk, t.symbols + at * sizeof(chunk[0]), n * sizeof(chunk[0])))
			return;
		for (uint32_t i = 0; i < n; i++)
			if (is_function_at(&chunk[i], out->offset)) {
				copy_name(out->name, t.strings + chunk[i].st_name);
				out->start = base + chunk[i].st_value;
				return;
			}
	}
}

bool wf_symbols_is_code(uintptr_t addr)
{
	static struct wf_modules_place last; /* most are in the same one */

	if (addr >= last.lo && addr < last.hi)
		return true;
	return wf_self_is_own_text(addr) || wf_modules_at(addr, &last);
}

bool wf_symbols_find(uintptr_t addr, bool may_ask, struct wf_symbol *out)
{
	struct wf_modules_place m;

	*out = (struct wf_symbol){ .offset = addr };
	if (wf_self_is_own_text(addr)) {
		copy_name(out->module, (uintptr_t) "libweft.so.0");
		out->offset = addr - (uintptr_t)__ehdr_start;
		return true;
	}
	if (!wf_modules_at(addr, &m))
		return false;
	out->offset = addr - m.base;
	name_module(out->module, m.name, may_ask);
	find_function(m.base, m.dynamic, out);
	return true;
}
