// SPDX-License-Identifier: Apache-2.0
/*
 * Reader for untrusted ELF files.
 *
 * Called by: program.c, libraries.c, report.c. Invariant: see binary.h; tests/cmd/binary_fuzz.c cuts
 * and flips files to keep it.
 *
 * Considered and dropped: mmap, because a file that somebody truncates meanwhile ends in SIGBUS; libelf,
 * because it gives no promise about damaged files and the command shall need nothing but libc.
 */
#include "binary.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The kernel refuses more program headers than this, so nothing that runs has them. */
#define MAX_PHDR_BYTES 65536

#define LOOK_BACK 24 /* bytes before a system call where its number may be loaded */

/* The largest programs known (browsers with all symbols exported) stay far below. */
#define MAX_TABLE_BYTES (256u << 20)

static bool is_inside(const struct wf_binary *b, uint64_t offset, uint64_t len)
{
	return offset <= b->bytes && len <= b->bytes - offset;
}

static int read_at(const struct wf_binary *b, uint64_t offset, void *out, size_t len)
{
	size_t done = 0;

	if (!is_inside(b, offset, len))
		return -ENOEXEC;
	while (done < len) {
		ssize_t got = pread(b->fd, (char *)out + done, len - done, (off_t)(offset + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			return -ENOEXEC; /* somebody cut the file meanwhile */
		done += (size_t)got;
	}
	return 0;
}

/* Reads a table into memory of its own, with spare zero bytes behind it. */
static int load(const struct wf_binary *b, uint64_t offset, uint64_t len, size_t spare, void **out)
{
	char *mem;
	int ret;

	if (len > MAX_TABLE_BYTES || !is_inside(b, offset, len))
		return -ENOEXEC;
	mem = malloc(len + spare + 1);
	if (!mem)
		return -ENOMEM;
	ret = read_at(b, offset, mem, len);
	if (ret < 0) {
		free(mem);
		return ret;
	}
	memset(mem + len, 0, spare + 1);
	*out = mem;
	return 0;
}

/* The file offset of a virtual address, and how many bytes of the file follow it in its segment. */
static int offset_of(const struct wf_binary *b, uint64_t addr, uint64_t *out_offset,
		     uint64_t *out_left)
{
	for (size_t i = 0; i < b->nr_phdrs; i++) {
		const Elf64_Phdr *p = &b->phdrs[i];

		if (p->p_type != PT_LOAD || addr < p->p_vaddr || addr - p->p_vaddr >= p->p_filesz)
			continue;
		if (!is_inside(b, p->p_offset, p->p_filesz))
			return -ENOEXEC;
		*out_offset = p->p_offset + (addr - p->p_vaddr);
		*out_left = p->p_filesz - (addr - p->p_vaddr);
		return 0;
	}
	return -ENOEXEC;
}

static const char *string_at(const struct wf_binary *b, uint64_t index)
{
	return index < b->strings_bytes ? b->strings + index : NULL;
}

static const Elf64_Phdr *find_phdr(const struct wf_binary *b, uint32_t type)
{
	for (size_t i = 0; i < b->nr_phdrs; i++) {
		if (b->phdrs[i].p_type == type)
			return &b->phdrs[i];
	}
	return NULL;
}

/* Section headers with their names: optional, so anything odd about them means "none". */
struct sections {
	Elf64_Shdr *headers;
	size_t nr;
	char *names;
	uint64_t names_bytes;
};

static struct sections load_sections(const struct wf_binary *b, const Elf64_Ehdr *e)
{
	struct sections s = { 0 };
	uint64_t bytes;

	if (e->e_shentsize != sizeof(Elf64_Shdr) || e->e_shnum == 0 || e->e_shstrndx >= e->e_shnum)
		return s;
	bytes = (uint64_t)e->e_shnum * sizeof(Elf64_Shdr);
	if (load(b, e->e_shoff, bytes, 0, (void **)&s.headers) < 0)
		return (struct sections){ 0 };
	s.nr = e->e_shnum;
	if (load(b, s.headers[e->e_shstrndx].sh_offset, s.headers[e->e_shstrndx].sh_size, 0,
		 (void **)&s.names) == 0)
		s.names_bytes = s.headers[e->e_shstrndx].sh_size;
	return s;
}

static bool has_section(const struct sections *s, const char *name)
{
	for (size_t i = 0; i < s->nr; i++) {
		if (s->headers[i].sh_name < s->names_bytes &&
		    strcmp(s->names + s->headers[i].sh_name, name) == 0)
			return true;
	}
	return false;
}

/* A Go binary keeps its build ID in a note of the owner "Go", also when its sections are stripped. */
static bool has_go_note(const struct wf_binary *b)
{
	for (size_t i = 0; i < b->nr_phdrs; i++) {
		const Elf64_Phdr *p = &b->phdrs[i];
		uint64_t at = p->p_offset, left = p->p_filesz;
		Elf64_Nhdr note;
		char owner[4];

		if (p->p_type != PT_NOTE || !is_inside(b, at, left))
			continue;
		while (left >= sizeof(note) && read_at(b, at, &note, sizeof(note)) == 0) {
			uint64_t step = sizeof(note) + (((uint64_t)note.n_namesz + 3) & ~3ull) +
					(((uint64_t)note.n_descsz + 3) & ~3ull);

			if (note.n_namesz == 4 && note.n_type == 4 &&
			    read_at(b, at + sizeof(note), owner, 4) == 0 && !memcmp(owner, "Go", 3))
				return true;
			if (step > left)
				break;
			at += step;
			left -= step;
		}
	}
	return false;
}

/*
 * The dynamic section gives no count of symbols. The section header does; where it was stripped the old
 * hash table does, and else we use that linkers put the strings somewhere behind the symbols.
 */
static uint64_t count_symbols(const struct wf_binary *b, const struct sections *s, uint64_t symtab,
			      uint64_t hash, uint64_t strtab)
{
	uint64_t offset, left;
	uint32_t header[2];

	for (size_t i = 0; i < s->nr; i++) {
		if (s->headers[i].sh_type == SHT_DYNSYM && s->headers[i].sh_addr == symtab)
			return s->headers[i].sh_size / sizeof(Elf64_Sym);
	}
	if (hash && offset_of(b, hash, &offset, &left) == 0 && left >= sizeof(header) &&
	    read_at(b, offset, header, sizeof(header)) == 0)
		return header[1];
	return strtab > symtab ? (strtab - symtab) / sizeof(Elf64_Sym) : 0;
}

static int load_symbols(struct wf_binary *b, uint64_t symtab, uint64_t nr)
{
	uint64_t offset, left;
	int ret;

	if (symtab == 0 || nr == 0)
		return 0;
	ret = offset_of(b, symtab, &offset, &left);
	if (ret < 0)
		return ret;
	if (nr > left / sizeof(Elf64_Sym))
		nr = left / sizeof(Elf64_Sym);
	ret = load(b, offset, nr * sizeof(Elf64_Sym), 0, (void **)&b->symbols);
	if (ret == 0)
		b->nr_symbols = nr;
	return ret;
}

static int load_strings(struct wf_binary *b, uint64_t strtab, uint64_t bytes)
{
	uint64_t offset, left;
	int ret;

	if (strtab == 0)
		return 0;
	ret = offset_of(b, strtab, &offset, &left);
	if (ret < 0)
		return ret;
	if (bytes > left)
		return -ENOEXEC;
	ret = load(b, offset, bytes, 1, (void **)&b->strings);
	if (ret == 0)
		b->strings_bytes = bytes;
	return ret;
}

static int read_dynamic(struct wf_binary *b, const struct sections *s)
{
	const Elf64_Phdr *p = find_phdr(b, PT_DYNAMIC);
	uint64_t value[DT_FLAGS + 1] = { 0 };
	uint64_t flags_1 = 0;
	Elf64_Dyn *dyn = NULL;
	size_t nr, last, nr_needed = 0;
	int ret;

	if (!p)
		return 0;
	b->has_dynamic = true;
	ret = load(b, p->p_offset, p->p_filesz, 0, (void **)&dyn);
	if (ret < 0)
		return ret;
	nr = p->p_filesz / sizeof(*dyn);
	for (last = 0; last < nr && dyn[last].d_tag != DT_NULL; last++) {
		if (dyn[last].d_tag == DT_NEEDED)
			nr_needed++;
		else if (dyn[last].d_tag == DT_FLAGS_1)
			flags_1 = dyn[last].d_un.d_val;
		else if (dyn[last].d_tag > 0 && dyn[last].d_tag <= DT_FLAGS)
			value[dyn[last].d_tag] = dyn[last].d_un.d_val;
	}
	b->flags = value[DT_FLAGS];
	b->flags_1 = flags_1;
	ret = load_strings(b, value[DT_STRTAB], value[DT_STRSZ]);
	if (ret < 0)
		goto out;
	b->needed = calloc(nr_needed + 1, sizeof(*b->needed));
	if (!b->needed) {
		ret = -ENOMEM;
		goto out;
	}
	for (size_t i = 0; i < last; i++) {
		const char *name = string_at(b, dyn[i].d_un.d_val);

		if (dyn[i].d_tag == DT_NEEDED && name)
			b->needed[b->nr_needed++] = name;
	}
	b->soname = value[DT_SONAME] ? string_at(b, value[DT_SONAME]) : NULL;
	b->rpath = value[DT_RPATH] ? string_at(b, value[DT_RPATH]) : NULL;
	b->runpath = value[DT_RUNPATH] ? string_at(b, value[DT_RUNPATH]) : NULL;
	ret = load_symbols(b, value[DT_SYMTAB],
			   count_symbols(b, s, value[DT_SYMTAB], value[DT_HASH], value[DT_STRTAB]));
out:
	free(dyn);
	return ret;
}

static int read_interp(struct wf_binary *b)
{
	const Elf64_Phdr *p = find_phdr(b, PT_INTERP);
	int ret;

	if (!p)
		return 0;
	/* The same bounds as the kernel's: at least one character, and the NUL is inside. */
	if (p->p_filesz < 2 || p->p_filesz > sizeof(b->interp))
		return -ENOEXEC;
	ret = read_at(b, p->p_offset, b->interp, p->p_filesz);
	if (ret < 0 || b->interp[p->p_filesz - 1] != '\0')
		return ret < 0 ? ret : -ENOEXEC;
	b->has_interp = true;
	return 0;
}

/* Where the bytes of a segment are not in the file, the file was cut. */
static bool are_segments_inside(const struct wf_binary *b)
{
	for (size_t i = 0; i < b->nr_phdrs; i++) {
		const Elf64_Phdr *p = &b->phdrs[i];

		if (p->p_type == PT_LOAD && p->p_filesz > 0 &&
		    !is_inside(b, p->p_offset, p->p_filesz))
			return false;
	}
	return true;
}

static int read_native(struct wf_binary *b, const Elf64_Ehdr *e, const char **out_damage)
{
	uint64_t phdr_bytes = (uint64_t)e->e_phnum * sizeof(Elf64_Phdr);
	const Elf64_Phdr *tls;
	struct sections s;
	int ret;

	*out_damage = "program headers";
	if (e->e_phentsize != sizeof(Elf64_Phdr) || e->e_phnum == 0 || phdr_bytes > MAX_PHDR_BYTES)
		return -ENOEXEC;
	ret = load(b, e->e_phoff, phdr_bytes, 0, (void **)&b->phdrs);
	if (ret < 0)
		return ret;
	b->nr_phdrs = e->e_phnum;
	*out_damage = "a segment reaches behind the end";
	if (!are_segments_inside(b))
		return -ENOEXEC;
	*out_damage = "name of the loader";
	ret = read_interp(b);
	if (ret < 0)
		return ret;
	tls = find_phdr(b, PT_TLS);
	b->tls_bytes = tls ? tls->p_memsz : 0;

	s = load_sections(b, e);
	b->is_go = has_section(&s, ".go.buildinfo") || has_section(&s, ".note.go.buildid") ||
		   has_go_note(b);
	*out_damage = "dynamic section";
	ret = read_dynamic(b, &s);
	free(s.headers);
	free(s.names);
	return ret;
}

int wf_binary_open(struct wf_binary *out_b, int fd, const char **out_damage)
{
	Elf64_Ehdr e;
	struct stat st;
	int ret;

	*out_b = (struct wf_binary){ .fd = fd };
	*out_damage = "size";
	if (fstat(fd, &st) < 0)
		return -errno;
	out_b->bytes = (uint64_t)st.st_size;
	out_b->head_len = out_b->bytes < sizeof(out_b->head) ? out_b->bytes : sizeof(out_b->head);
	ret = read_at(out_b, 0, out_b->head, out_b->head_len);
	if (ret < 0)
		return ret;
	if (out_b->head_len < SELFMAG || memcmp(out_b->head, ELFMAG, SELFMAG) != 0)
		return 0;
	*out_damage = "header";
	if (out_b->head_len < sizeof(Elf32_Ehdr))
		return -ENOEXEC;
	memcpy(&e, out_b->head, sizeof(e)); /* head is larger, and zero behind head_len */
	out_b->is_elf = true;
	out_b->is_64bit = e.e_ident[EI_CLASS] == ELFCLASS64;
	out_b->is_little_endian = e.e_ident[EI_DATA] == ELFDATA2LSB;
	/* Both classes have these two at the same place. */
	out_b->type = out_b->is_little_endian ? e.e_type : __builtin_bswap16(e.e_type);
	out_b->machine = out_b->is_little_endian ? e.e_machine : __builtin_bswap16(e.e_machine);
	if (!out_b->is_64bit || !out_b->is_little_endian || out_b->machine != EM_X86_64)
		return 0;
	if (out_b->type != ET_EXEC && out_b->type != ET_DYN)
		return 0; /* an object file has no program headers */
	if (out_b->head_len < sizeof(e))
		return -ENOEXEC;
	return read_native(out_b, &e, out_damage);
}

void wf_binary_close(struct wf_binary *b)
{
	if (b->fd >= 0)
		(void)close(b->fd);
	free(b->phdrs);
	free(b->strings);
	free(b->needed);
	free(b->symbols);
	*b = (struct wf_binary){ .fd = -1 };
}

void wf_binary_imports(const struct wf_binary *b, void (*visit)(const char *name, void *data),
		       void *data)
{
	for (size_t i = 0; i < b->nr_symbols; i++) {
		const char *name = string_at(b, b->symbols[i].st_name);

		if (b->symbols[i].st_shndx == SHN_UNDEF && name && *name)
			visit(name, data);
	}
}

bool wf_binary_defines(const struct wf_binary *b, const char *wanted)
{
	for (size_t i = 0; i < b->nr_symbols; i++) {
		const char *name = string_at(b, b->symbols[i].st_name);

		if (b->symbols[i].st_shndx != SHN_UNDEF && name && strcmp(name, wanted) == 0)
			return true;
	}
	return false;
}

/* The number that the nearest `mov $number, %eax` before the pair at at loads, or -1. */
static int number_before(const unsigned char *buf, size_t at)
{
	for (size_t back = 5; back <= LOOK_BACK && back <= at; back++) {
		const unsigned char *p = buf + at - back;

		if (p[0] == 0xb8 && p[2] < 4 && p[3] == 0 && p[4] == 0)
			return p[1] | p[2] << 8;
	}
	return -1;
}

/*
 * Calls look for each piece of the executable segments: what is in buf from `kept` on is new, and up to LOOK_BACK bytes before
 * it were shown before.
 */
static int read_code(const struct wf_binary *b,
		     void (*look)(const unsigned char *buf, size_t kept, size_t len, void *data),
		     void *data)
{
	static unsigned char buf[LOOK_BACK + 65536];

	for (size_t i = 0; i < b->nr_phdrs; i++) {
		const Elf64_Phdr *p = &b->phdrs[i];
		size_t kept =
			0; /* of what was read before: what is looked for may lie across two reads */

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X))
			continue;
		for (uint64_t done = 0; done < p->p_filesz;) {
			uint64_t left = p->p_filesz - done;
			size_t len = left < sizeof(buf) - LOOK_BACK ? left
								    : sizeof(buf) - LOOK_BACK;
			int ret = read_at(b, p->p_offset + done, buf + kept, len);

			if (ret < 0)
				return ret;
			done += len;
			len += kept;
			look(buf, kept, len, data);
			kept = len < LOOK_BACK ? len : LOOK_BACK;
			memmove(buf, buf + len - kept, kept);
		}
	}
	return 0;
}

struct pairs {
	int64_t nr;
	void (*visit)(int nr, void *data);
	void *data;
};

static void look_for_pairs(const unsigned char *buf, size_t kept, size_t len, void *data)
{
	struct pairs *pairs = data;

	for (size_t k = kept ? kept : 1; k < len; k++) {
		if (buf[k - 1] != 0x0f || buf[k] != 0x05)
			continue;
		pairs->nr++;
		pairs->visit(number_before(buf, k - 1), pairs->data);
	}
}

int64_t wf_binary_syscall_pairs(const struct wf_binary *b, void (*visit)(int nr, void *data),
				void *data)
{
	struct pairs pairs = { .visit = visit, .data = data };
	int ret = read_code(b, look_for_pairs, &pairs);

	return ret < 0 ? ret : pairs.nr;
}

static void look_for_traits(const unsigned char *buf, size_t kept, size_t len, void *data)
{
	static const unsigned char number[] = { 0x3d, 0x01, 0, 0 }; /* of seccomp() */
	unsigned int *traits = data;

	for (size_t k = kept > 4 ? kept : 4; k < len; k++) {
		const unsigned char *p = buf + k - 4;

		if (p[0] == 0xf3 && (p[1] & 0xfe) == 0x48 && p[2] == 0x0f && p[3] == 0xae &&
		    (p[4] & 0xe8) == 0xc8)
			*traits |= WF_BINARY_USES_BASE;
		if ((p[0] == 0xbf || p[0] == 0xb8) && memcmp(p + 1, number, sizeof(number)) == 0)
			*traits |= WF_BINARY_FILTERS;
	}
}

int wf_binary_traits(const struct wf_binary *b, unsigned int *out_traits)
{
	*out_traits = 0;
	return read_code(b, look_for_traits, out_traits);
}
