// SPDX-License-Identifier: Apache-2.0
/* The sites of the libc of the build, without a search: see known.h. Calls no libc, as in modules.c. */
#include "gate/known.h"

#include "base/base.h"
#include "gate/table.h"
#include "sys/syscall.h"

#define NOTE_IS_PADDED 4ul

/* The notes of a module that is mapped lie in one of its segments. */
static bool is_mapped(const struct dl_phdr_info *module, uintptr_t at, size_t bytes, uint32_t flags)
{
	for (size_t i = 0; i < module->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &module->dlpi_phdr[i];
		uintptr_t start = module->dlpi_addr + ph->p_vaddr;

		if (ph->p_type == PT_LOAD && (ph->p_flags & flags) == flags && at >= start &&
		    bytes <= ph->p_filesz && at - start <= ph->p_filesz - bytes)
			return true;
	}
	return false;
}

static bool is_same(const void *a, const void *b, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		if (((const uint8_t *)a)[i] != ((const uint8_t *)b)[i])
			return false;
	return true;
}

static bool take_id(const uint8_t *p, const uint8_t *end, uint8_t out[WF_KNOWN_ID])
{
	while ((size_t)(end - p) >= sizeof(ElfW(Nhdr))) {
		const ElfW(Nhdr) *note = (const void *)p;
		size_t name_bytes = WF_ALIGN_UP((size_t)note->n_namesz, NOTE_IS_PADDED);
		size_t bytes = WF_ALIGN_UP((size_t)note->n_descsz, NOTE_IS_PADDED);

		p += sizeof(*note);
		if (name_bytes > (size_t)(end - p) || bytes > (size_t)(end - p) - name_bytes)
			return false;
		if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == sizeof(ELF_NOTE_GNU) &&
		    is_same(p, ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)) &&
		    note->n_descsz >= WF_KNOWN_ID) {
			for (size_t i = 0; i < WF_KNOWN_ID; i++)
				out[i] = p[name_bytes + i];
			return true;
		}
		p += name_bytes + bytes;
	}
	return false;
}

bool wf_known_id(const struct dl_phdr_info *module, uint8_t out[WF_KNOWN_ID])
{
	for (size_t i = 0; i < module->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &module->dlpi_phdr[i];
		uintptr_t start = module->dlpi_addr + ph->p_vaddr;

		if (ph->p_type == PT_NOTE && ph->p_align == NOTE_IS_PADDED &&
		    is_mapped(module, start, ph->p_filesz, PF_R) &&
		    take_id((const uint8_t *)start, (const uint8_t *)start + ph->p_filesz, out))
			return true;
	}
	return false;
}

/* FNV-1a. */
uint32_t wf_known_hash(uintptr_t base, const struct wf_known_site *site)
{
	const uint8_t *window = (const uint8_t *)base + site->addr - site->before;
	uint32_t hash = 0x811c9dc5u;

	for (size_t i = 0; i < site->len; i++)
		hash = (hash ^ window[i]) * 0x01000193u;
	return hash;
}

/* From its first window to its last one text of this module has all that is hashed. */
static bool is_text(const struct dl_phdr_info *module, const struct wf_known_site *sites, size_t nr)
{
	uintptr_t lo = sites[0].addr - sites[0].before;
	uintptr_t hi = sites[nr - 1].addr - sites[nr - 1].before + sites[nr - 1].len;

	return is_mapped(module, module->dlpi_addr + lo, hi - lo, PF_R | PF_X);
}

static const struct wf_known *find(const struct wf_known_table *t,
				   const struct dl_phdr_info *module, const void *glance)
{
	uint32_t offset = glance ? (uint32_t)((uintptr_t)glance - module->dlpi_addr) : 0;
	uint8_t id[WF_KNOWN_ID];

	if (!t->nr || !wf_known_id(module, id))
		return NULL;
	for (const struct wf_known *k = t->entries; k < t->entries + t->nr; k++)
		if (k->glance == offset && is_same(k->id, id, sizeof(id)))
			return is_text(module, t->sites + k->first, k->nr) ? k : NULL;
	return NULL;
}

/* False if the bytes are neither those that were searched nor ours. */
static bool list_site(uintptr_t base, const struct wf_known_site *s, struct wf_gate_counts *counts,
		      struct wf_site_list *list)
{
	struct wf_site site = { .addr = base + s->addr,
				.window = base + s->addr - s->before,
				.window_len = s->len,
				.nr = s->nr };

	if (wf_known_hash(base, s) == s->hash) {
		list->sites[list->nr++] = site;
		return true;
	}
	if (wf_gate_to_tramp(site.addr) == site.addr)
		return false;
	counts->found--;
	counts->wanted--;
	counts->unknown -= s->nr < 0;
	return true;
}

bool wf_known_find(const struct wf_known_table *t, const struct dl_phdr_info *module,
		   const struct wf_scan_wish *wish, struct wf_gate_counts *out_counts,
		   struct wf_site_list *out_list)
{
	const struct wf_known *k = find(t, module, wish->glance);
	struct wf_site_list list = { .nr = 0 };

	if (!k)
		return false;
	*out_counts = k->counts;
	list.bytes = WF_ALIGN_UP(k->nr * sizeof(*list.sites), WF_PAGE);
	list.sites = sys_map(list.bytes);
	if (!list.sites)
		return false;
	for (const struct wf_known_site *s = t->sites + k->first; s < t->sites + k->first + k->nr;
	     s++) {
		if (!list_site(module->dlpi_addr, s, out_counts, &list)) {
			wf_sites_free(&list);
			*out_counts = (struct wf_gate_counts){ .found = 0 };
			return false;
		}
		if (s->nr >= 0)
			(void)wish->wanted(s->nr);
	}
	*out_list = list;
	return true;
}
