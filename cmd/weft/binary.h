// SPDX-License-Identifier: Apache-2.0
/*
 * Reads an ELF file's own description: just enough to decide whether it can run under weft.
 *
 * Used by: program.c (may it run?), libraries.c (what does it pull in?), report.c, tests/cmd.
 *
 * Invariant: the file is not trusted. Every offset and length from it is checked against the size of
 * the file before it is used, all strings end, and no loop is longer than the file.
 */
#ifndef WF_BINARY_H
#define WF_BINARY_H

#include <elf.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wf_binary {
	int fd;
	uint64_t bytes; /* size of the file */
	bool is_elf;    /* false: only fd, bytes and head are valid */
	bool is_64bit, is_little_endian;
	unsigned int machine; /* EM_* */
	unsigned int type;    /* ET_* */
	bool is_go;
	bool has_interp, has_dynamic;
	char interp[PATH_MAX];                /* "" without PT_INTERP */
	uint64_t tls_bytes;                   /* PT_TLS in memory */
	uint64_t flags, flags_1;              /* DT_FLAGS, DT_FLAGS_1 */
	const char *soname, *rpath, *runpath; /* NULL, or in strings */
	const char **needed;                  /* into strings */
	size_t nr_needed;
	char head[256]; /* first bytes, as much as the kernel looks at for #! */
	size_t head_len;

	Elf64_Phdr *phdrs;
	size_t nr_phdrs;
	char *strings; /* DT_STRTAB with a NUL of ours behind it */
	uint64_t strings_bytes;
	Elf64_Sym *symbols; /* DT_SYMTAB */
	size_t nr_symbols;
};

/*
 * Reads fd, which then belongs to *out_b, also on failure.
 * Returns 0 (see is_elf: a file that is no ELF file at all is no failure), or -errno where reading
 * failed, or -ENOEXEC with *out_damage naming what is broken. Files of other machines, classes and types
 * are only identified, not read further.
 */
int wf_binary_open(struct wf_binary *out_b, int fd, const char **out_damage);
void wf_binary_close(struct wf_binary *b);

/* Calls visit for each name that b leaves for others to define. */
void wf_binary_imports(const struct wf_binary *b, void (*visit)(const char *name, void *data),
		       void *data);

/* Does b define this name for others? */
bool wf_binary_defines(const struct wf_binary *b, const char *name);

/*
 * How often the bytes 0f 05 (`syscall`) stand in executable segments, aligned or not; or -errno. visit gets the
 * number that is loaded shortly before each of them, or -1.
 */
int64_t wf_binary_syscall_pairs(const struct wf_binary *b, void (*visit)(int nr, void *data),
				void *data);

/* Traits of its code as they seem, by bytes alone. */
#define WF_BINARY_USES_BASE 1u /* reads or writes the GS base: rdgsbase, wrgsbase */
#define WF_BINARY_FILTERS 2u   /* sets filters for system calls: seccomp() */
int wf_binary_traits(const struct wf_binary *b, unsigned int *out_traits);

#endif
