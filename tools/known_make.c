// SPDX-License-Identifier: Apache-2.0
/*
 * Writes the table of known.h, for the libc and the loader that this very program runs on. Part of the build alone.
 *
 * A fresh copy of the file is searched: the one that runs may hold somebody's jumps already, our own under weft run.
 * Where anything is not as expected the table is without that file, which is then searched as any other.
 */
#include "base/base.h"
#include "gate/known.h"
#include "linux/dispatch.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_ENTRIES 8

static struct wf_known entries[MAX_ENTRIES];
static size_t nr_entries;
static uint32_t nr_sites;

/* The file's segments as they lie in memory, neither relocated nor run. */
static bool map_fresh(const struct dl_phdr_info *module, struct dl_phdr_info *out)
{
	int fd = open(module->dlpi_name, O_RDONLY | O_CLOEXEC);
	size_t span = 0;
	uint8_t *base;
	bool is_good = fd >= 0;

	for (size_t i = 0; i < module->dlpi_phnum; i++)
		if (module->dlpi_phdr[i].p_type == PT_LOAD)
			span = module->dlpi_phdr[i].p_vaddr + module->dlpi_phdr[i].p_memsz;
	base = mmap(NULL, span, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (base == MAP_FAILED)
		is_good = false;
	for (size_t i = 0; is_good && i < module->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &module->dlpi_phdr[i];

		if (ph->p_type == PT_LOAD)
			is_good = pread(fd, base + ph->p_vaddr, ph->p_filesz,
					(off_t)ph->p_offset) == (ssize_t)ph->p_filesz;
	}
	if (fd >= 0)
		close(fd);
	*out = *module;
	out->dlpi_addr = (uintptr_t)base;
	return is_good;
}

/* A line for each. */
static void write_sites(uintptr_t base, const struct wf_site_list *list)
{
	for (size_t i = 0; i < list->nr; i++) {
		const struct wf_site *s = &list->sites[i];
		struct wf_known_site known = { .addr = (uint32_t)(s->addr - base),
					       .before = (uint8_t)(s->addr - s->window),
					       .len = s->window_len };

		printf("\t{ 0x%x, %d, %u, %u, 0x%x },\n", known.addr, s->nr, known.before,
		       known.len, wf_known_hash(base, &known));
	}
}

static void add(const struct dl_phdr_info *fresh, const struct wf_scan_wish *wish)
{
	struct wf_known k = { .first = nr_sites };
	struct wf_site_list list;

	if (nr_entries == MAX_ENTRIES || !wf_known_id(fresh, k.id) ||
	    wf_sites_find(fresh, wish, &k.counts, &list) != 0)
		return;
	if (list.nr) {
		write_sites(fresh->dlpi_addr, &list);
		if (wish->glance)
			k.glance = (uint32_t)((uintptr_t)wish->glance - fresh->dlpi_addr);
		k.nr = (uint32_t)list.nr;
		nr_sites += k.nr;
		entries[nr_entries++] = k;
	}
	wf_sites_free(&list);
}

static int take(struct dl_phdr_info *module, size_t size, void *arg)
{
	const char *slash = module->dlpi_name ? strrchr(module->dlpi_name, '/') : NULL;
	const char *name = slash ? slash + 1 : "";
	bool is_libc = strcmp(name, "libc.so.6") == 0;
	struct dl_phdr_info fresh;

	(void)size;
	(void)arg;
	if (!is_libc && strcmp(name, "ld-linux-x86-64.so.2") != 0)
		return 0;
	if (!map_fresh(module, &fresh))
		return 0;
	if (is_libc) {
		uintptr_t function = (uintptr_t)dlsym(RTLD_DEFAULT, "syscall");

		if (function)
			add(&fresh, &(struct wf_scan_wish){
					    .wanted = lx_wants_at_start,
					    .glance = (const void *)(function - module->dlpi_addr +
								     fresh.dlpi_addr) });
	}
	add(&fresh, &(struct wf_scan_wish){ .wanted = lx_wants });
	return 0;
}

static void write_entry(const struct wf_known *k)
{
	const struct wf_gate_counts *c = &k->counts;

	printf("\t{ { ");
	for (size_t i = 0; i < WF_KNOWN_ID; i++)
		printf("0x%02x, ", k->id[i]);
	printf("}, 0x%x, { %u, %u, %u, %u, %u, %u }, %u, %u },\n", k->glance, c->found, c->unknown,
	       c->wanted, c->patched, c->left, c->doubtful, k->first, k->nr);
}

int main(int argc, char **argv)
{
	if (argc != 2 || !freopen(argv[1], "w", stdout)) {
		fprintf(stderr, "usage: known_make OUTPUT\n");
		return 2;
	}
	printf("#include \"gate/known.h\"\n\nstatic const struct wf_known_site sites[] = {\n");
	dl_iterate_phdr(take, NULL);
	printf("\t{ .nr = 0 }\n};\n\nstatic const struct wf_known entries[] = {\n");
	for (size_t i = 0; i < nr_entries; i++)
		write_entry(&entries[i]);
	printf("\t{ .nr = 0 }\n};\n\nconst struct wf_known_table wf_known_table = { entries, %zu, sites };\n",
	       nr_entries);
	return fflush(stdout) != 0 || ferror(stdout);
}
