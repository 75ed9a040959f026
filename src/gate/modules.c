// SPDX-License-Identifier: Apache-2.0
/*
 * The loaded modules: see modules.h.
 *
 * The moment: the loader calls _dl_debug_state() when it has mapped new modules (up to glibc 2.40)
 * or has relocated them as well (2.41), and in both cases before it runs any code of theirs but
 * their IFUNC resolvers. It does so under its own lock, for every namespace, and every glibc has
 * the function, because debuggers set their breakpoint there. So its list of modules stands still
 * while we read it, and nobody runs the text that we write to.
 *
 * Considered and dropped: wrapping dlopen() (its result depends on who calls it, it has run the
 * constructors when it returns, and libc opens modules without it); LD_AUDIT (a second namespace
 * and slower calls in every program); the mmap() calls of the loader (a module is not yet whole
 * then).
 *
 * No libc: on the stack of whoever opens a module, and under the loader's lock.
 */
#include "gate/modules.h"
#include "gate/jump.h"
#include "linux/heir.h"

#include "base/base.h"
#include "gate/patch.h"
#include "gate/resident.h"
#include "gate/segment.h"
#include "gate/table.h"
#include "linux/abi.h"
#include "sched/self.h"
#include "sys/syscall.h"

#include <errno.h>

/* The namespaces of dlmopen() lie behind the first one, since glibc 2.35. */
struct debug_chain {
	struct r_debug base;
	const struct debug_chain *next;
};
#define CHAIN_VERSION 2

struct module {
	const struct link_map *map;
	const void *dynamic;
	uintptr_t base;
	uintptr_t lo, hi; /* all segments; both 0: nothing known */
	uint32_t name_space;
};

static const struct r_debug *debug;
static struct dl_phdr_info program;
static bool (*wanted)(int nr);
static bool (*wanted_first)(int nr);
static const struct wf_known_table *known;
static struct wf_modules_count count;
static bool is_base_shared; /* some module uses the GS base itself */
static uint32_t nr_changes; /* (a) */

/* In the order of the loader's lists, as they were at the last look. */
static struct module *modules;
static size_t nr_modules, modules_bytes;

void wf_gate_watch(void);
void wf_gate_changed(void);

/* --- one module --- */

static bool is_named(const struct link_map *map, const char *name)
{
	const char *base = map->l_name ? map->l_name : "";

	for (const char *p = base; *p; p++)
		if (*p == '/')
			base = p + 1;
	while (*name && *name == *base)
		name++, base++;
	return !*name;
}

static bool is_libc(const struct link_map *map)
{
	return is_named(map, "libc.so.6") || is_named(map, "libpthread.so.0");
}

static bool is_mapped(uintptr_t addr)
{
	unsigned char is_resident;

	return sys3(__NR_mincore, addr, WF_PAGE, &is_resident) == 0;
}

/* The program headers follow the file header, and both begin the first page that is mapped. */
static bool describe(const struct link_map *map, struct dl_phdr_info *out)
{
	const ElfW(Ehdr) *eh = (const void *)map->l_addr;

	if (map == debug->r_map) {
		*out = program;
		return true;
	}
	if (!map->l_addr || map->l_addr % WF_PAGE || !is_mapped(map->l_addr))
		return false;
	if (eh->e_ident[0] != 0x7f || eh->e_ident[1] != 'E' || eh->e_ident[2] != 'L' ||
	    eh->e_ident[3] != 'F' || eh->e_phentsize != sizeof(ElfW(Phdr)) ||
	    eh->e_phoff + eh->e_phnum * sizeof(ElfW(Phdr)) > WF_PAGE)
		return false;
	*out = (struct dl_phdr_info){ .dlpi_addr = map->l_addr,
				      .dlpi_name = map->l_name,
				      .dlpi_phdr = (const void *)(map->l_addr + eh->e_phoff),
				      .dlpi_phnum = eh->e_phnum };
	return true;
}

static void find_bounds(const struct dl_phdr_info *info, struct module *m)
{
	m->lo = UINTPTR_MAX;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + ph->p_vaddr;

		if (ph->p_type != PT_LOAD)
			continue;
		m->lo = WF_MIN(m->lo, start);
		m->hi = WF_MAX(m->hi, start + ph->p_memsz);
	}
}

/* The loader may not have relocated it yet, and would write over our jumps. */
static bool has_text_relocations(const struct link_map *map)
{
	for (const ElfW(Dyn) *d = map->l_ld; d && d->d_tag != DT_NULL; d++)
		if (d->d_tag == DT_TEXTREL || (d->d_tag == DT_FLAGS && d->d_un.d_val & DF_TEXTREL))
			return true;
	return false;
}

/* libc reads clocks through the vDSO, which makes a call of its own for those of threads. */
static bool is_clock_call(int nr)
{
	return nr == __NR_clock_gettime || nr == __NR_clock_getres;
}

static int patch_module(const struct link_map *map, struct module *m, bool is_relocated)
{
	const struct wf_scan_wish wish = {
		.wanted = wanted,
		.entry = is_libc(map) || is_named(map, "ld-linux-x86-64.so.2") ? WF_ENTRY_LIBC
									       : WF_ENTRY_KEEPING,
		.known = known
	};
	struct wf_gate_counts counts = { .found = 0 };
	struct dl_phdr_info info;
	int ret;

	if (map->l_ld == _DYNAMIC || !describe(map, &info))
		return 0;
	find_bounds(&info, m);
	if (is_named(map, "linux-vdso")) {
		/* A place there that cannot be patched costs the clocks of threads, and nothing else. */
		(void)wf_gate_patch_module(
			&info,
			&(struct wf_scan_wish){ .entry = WF_ENTRY_CLOCK, .wanted = is_clock_call },
			&counts);
		return 0;
	}
	/* The loader is in the list of every namespace. */
	for (size_t i = 0; i < nr_modules; i++)
		if (modules[i].dynamic == map->l_ld)
			return 0;
	if (!is_base_shared && !is_libc(map) && wf_segment_has_base_insns(&info)) {
		is_base_shared = true;
		lx_share_base();
	}
	if (!is_relocated && has_text_relocations(map))
		return 0;
	ret = wf_gate_patch_module(&info, &wish, &counts);
	count.modules++;
	count.patched += counts.patched;
	count.left += counts.left;
	return ret;
}

/* Horspool's search: it looks at one byte in 24 or so of a table of many megabytes. */
static bool contains(const char *text, size_t bytes, const char *word)
{
	uint8_t skip[256];
	size_t n = 0;

	while (word[n])
		n++;
	for (size_t i = 0; i < sizeof(skip); i++)
		skip[i] = (uint8_t)n;
	for (size_t i = 0; i + 1 < n; i++)
		skip[(uint8_t)word[i]] = (uint8_t)(n - 1 - i);
	for (size_t at = 0; at + n <= bytes; at += skip[(uint8_t)text[at + n - 1]]) {
		size_t i = 0;

		while (i < n && text[at + i] == word[i])
			i++;
		if (i == n)
			return true;
	}
	return false;
}

/* The names that the module wants of others, or has for them; NULL: none. */
static const char *strings_of(const struct link_map *map, size_t *out_bytes)
{
	uintptr_t text = 0;
	size_t bytes = 0;

	for (const ElfW(Dyn) *d = map->l_ld; d && d->d_tag != DT_NULL; d++) {
		if (d->d_tag == DT_STRTAB)
			text = d->d_un.d_ptr;
		else if (d->d_tag == DT_STRSZ)
			bytes = d->d_un.d_val;
	}
	if (text && text < map->l_addr) /* not relocated */
		text += map->l_addr;
	*out_bytes = text ? bytes : 0;
	return (const char *)text;
}

static bool names(const struct link_map *map, const char *word)
{
	size_t bytes;
	const char *text = strings_of(map, &bytes);

	return contains(text, bytes, word);
}

/* Makes robust locks, or goes on with those of the dead. */
static bool knows_robust_locks(const struct link_map *map)
{
	return names(map, "pthread_mutexattr_setrobust") || names(map, "pthread_mutex_consistent");
}

/* These make threads for those who ask them to. */
static bool is_passive(const struct link_map *map)
{
	static const char *const passive[] = { "libc.so.6",   "libpthread.so.0", "librt.so.1",
					       "libanl.so.1", "libstdc++.so.6",  "libselinux.so.1",
					       "libweft" };

	for (size_t i = 0; i < ARRAY_LEN(passive); i++)
		if (is_named(map, passive[i]))
			return true;
	return false;
}

/* --- all of them --- */

static bool make_room(void)
{
	size_t bytes = modules_bytes ? modules_bytes * 2 : WF_PAGE;
	void *p;

	if ((nr_modules + 1) * sizeof(*modules) <= modules_bytes)
		return true;
	p = modules ? wf_grow_pages(modules, modules_bytes, bytes) : sys_map(bytes);
	if (!p)
		return false;
	modules = p;
	modules_bytes = bytes;
	return true;
}

/* The entries [from, to) are of modules that are no longer in the list. */
static void forget(size_t from, size_t to)
{
	for (size_t i = from; i < to; i++)
		if (modules[i].lo < modules[i].hi)
			wf_gate_forget(modules[i].lo, modules[i].hi);
	for (size_t i = to; i < nr_modules; i++)
		modules[i - (to - from)] = modules[i];
	nr_modules -= to - from;
}

static bool is_same(const struct module *m, const struct link_map *map)
{
	return m->map == map && m->dynamic == map->l_ld && m->base == map->l_addr;
}

/* Is it among the entries of its namespace from i on? Returns its place, or nr_modules. */
static size_t find_from(size_t i, const struct link_map *map, uint32_t name_space)
{
	for (; i < nr_modules && modules[i].name_space == name_space; i++)
		if (is_same(&modules[i], map))
			return i;
	return nr_modules;
}

static size_t end_of_space(size_t i, uint32_t name_space)
{
	while (i < nr_modules && modules[i].name_space == name_space)
		i++;
	return i;
}

static int add(size_t at, const struct link_map *map, uint32_t name_space, bool is_relocated)
{
	struct module m = {
		.map = map, .dynamic = map->l_ld, .base = map->l_addr, .name_space = name_space
	};
	struct wf_resident resident = { 0 };
	struct dl_phdr_info info;
	int ret;

	if (!make_room())
		return -ENOMEM;
	if (describe(map, &info))
		wf_resident_note(&resident, &info);
	ret = patch_module(map, &m, is_relocated);
	for (size_t i = nr_modules; i > at; i--)
		modules[i] = modules[i - 1];
	modules[at] = m;
	nr_modules++;
	if (m.lo < m.hi && !is_libc(map) && knows_robust_locks(map))
		lx_heir_expect();
	wf_resident_restore(&resident);
	return ret;
}

/*
 * Compare the loader's list of one namespace with what we know of it, which begins at *i. New
 * modules are at the end of the list, and what is missing from it was closed.
 */
static int look_at_space(const struct link_map *map, uint32_t name_space, bool is_relocated,
			 size_t *i)
{
	int ret = 0;

	for (; map; map = map->l_next) {
		size_t known = find_from(*i, map, name_space);
		bool is_new = known == nr_modules;
		int failed = 0;

		forget(*i, is_new ? end_of_space(*i, name_space) : known);
		if (is_new)
			failed = add(*i, map, name_space, is_relocated);
		if (failed && name_space == 0 && is_libc(map))
			ret = failed;
		(*i)++;
	}
	forget(*i, end_of_space(*i, name_space));
	return ret;
}

static int look(bool is_relocated)
{
	const struct debug_chain *chain = (const void *)debug;
	bool has_more = debug->r_version >= CHAIN_VERSION;
	size_t i = 0;
	int ret = 0;

	for (uint32_t n = 0; chain; n++, chain = has_more ? chain->next : NULL) {
		int failed = 0;

		/* In the middle of a change: we are told when it is over. */
		if (chain->base.r_state == RT_CONSISTENT)
			failed = look_at_space(chain->base.r_map, n, is_relocated, &i);
		else
			i = end_of_space(i, n);
		ret = failed ? failed : ret;
	}
	return ret;
}

/*
 * One of the first namespace may set filters: it has the number of seccomp(), and prctl(), without which nobody may who is not
 * root. Before there is a thread: the list stands still.
 */
static bool sets_filters(void)
{
	for (size_t i = 0; i < nr_modules && modules[i].name_space == 0; i++) {
		struct dl_phdr_info info;

		if (modules[i].lo < modules[i].hi && !is_libc(modules[i].map) &&
		    names(modules[i].map, "prctl") && describe(modules[i].map, &info) &&
		    wf_segment_has_filters(&info))
			return true;
	}
	return false;
}

/* --- being told --- */

/* Somebody else's breakpoint is there: the jump would be undone, or undo it. */
static bool watch(void)
{
	uintptr_t brk = debug->r_brk;

	return brk && wf_jump_has_room((const uint8_t *)brk) &&
	       wf_gate_redirect(brk, (uintptr_t)wf_gate_watch) == 0;
}

/* From watch.S. The loader's lock is held. */
void wf_gate_changed(void)
{
	(void)wf_self_come_in();
	(void)look(false);
	(void)wf_fetch_add(&nr_changes, 1u);
}

/* --- for attach.c --- */

struct link_map *wf_modules_find(const struct r_debug *r, const char *name)
{
	struct link_map *map = r->r_map;

	while (map && !is_named(map, name))
		map = map->l_next;
	return map;
}

bool wf_modules_program_needs(const struct r_debug *r, const char *soname)
{
	size_t bytes;
	const char *text = strings_of(r->r_map, &bytes);

	for (const ElfW(Dyn) *d = r->r_map->l_ld; text && d && d->d_tag != DT_NULL; d++) {
		const char *a = soname, *b = text + d->d_un.d_val;

		if (d->d_tag != DT_NEEDED)
			continue;
		while (*a && *a == *b)
			a++, b++;
		if (*a == *b)
			return true;
	}
	return false;
}

bool wf_modules_make_threads(const struct r_debug *r)
{
	for (const struct link_map *map = r->r_map; map; map = map->l_next)
		if (!is_passive(map) &&
		    (names(map, "pthread_create") || names(map, "thrd_create") ||
		     names(map, "_ZNSt6thread15_M_start_thread")))
			return true;
	return false;
}

void wf_modules_init(const struct r_debug *r, const struct dl_phdr_info *p, bool (*wants)(int nr),
		     bool (*wants_first)(int nr), const struct wf_known_table *table)
{
	debug = r;
	known = table;
	program = *p;
	wanted = wants;
	wanted_first = wants_first;
}

/* Before glibc 2.34 there are two of them. Neither is ever closed. */
static struct {
	uintptr_t lo, hi;
} libc[2];

static void find_libc(void)
{
	static const char *const names[] = { "libc.so.6", "libpthread.so.0" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const struct link_map *map = wf_modules_find(debug, names[i]);
		struct dl_phdr_info info;
		struct module m = { .map = map };

		if (!map || !describe(map, &info))
			continue;
		find_bounds(&info, &m);
		libc[i].lo = m.lo;
		libc[i].hi = m.hi;
	}
}

bool wf_modules_in_libc(uintptr_t addr)
{
	return (addr >= libc[0].lo && addr < libc[0].hi) ||
	       (addr >= libc[1].lo && addr < libc[1].hi);
}

static bool has_clone, has_clone3;

static bool note_first(int nr)
{
	has_clone |= nr == __NR_clone;
	has_clone3 |= nr == __NR_clone3;
	return wanted_first(nr);
}

int wf_modules_patch_first(const void *function)
{
	const struct wf_scan_wish wish = { .wanted = note_first,
					   .glance = function,
					   .known = known };
	const struct link_map *map = wf_modules_find(debug, "libc.so.6");
	struct wf_gate_counts counts;
	struct dl_phdr_info info;
	int ret;

	if (!map || !describe(map, &info))
		return -ENOENT;
	find_libc();
	ret = wf_gate_patch_module(&info, &wish, &counts);
	/* A libc whose clone() is written in another way: look at all of it. */
	if (ret == 0 && (!has_clone || !has_clone3 || counts.left))
		ret = wf_modules_patch_all();
	return ret;
}

int wf_modules_patch_all(void)
{
	int ret;

	if (debug->r_state != RT_CONSISTENT)
		return -EBUSY;
	ret = look(true);
	if (!count.is_watching)
		count.is_watching = watch();
	return ret;
}

bool wf_modules_at(uintptr_t addr, struct wf_modules_place *out)
{
	struct link_map map;
	struct module m;

	for (size_t i = 0; i < nr_modules; i++) {
		if (wf_arch_copy(&m, &modules[i], sizeof(m)) < 0)
			return false;
		if (addr < m.lo || addr >= m.hi)
			continue;
		*out = (struct wf_modules_place){
			.base = m.base, .lo = m.lo, .hi = m.hi, .dynamic = m.dynamic
		};
		if (wf_arch_copy(&map, m.map, sizeof(map)) == 0)
			out->name = map.l_name;
		return true;
	}
	return false;
}

bool wf_modules_filter_shared(void)
{
	return is_base_shared && sets_filters();
}

uint32_t wf_modules_changes(void)
{
	return wf_load_acquire(&nr_changes);
}

struct wf_modules_count wf_modules_count(void)
{
	return count;
}
