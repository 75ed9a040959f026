// SPDX-License-Identifier: Apache-2.0
/* Reading core files; see core.h. */
#include "target/core.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/procfs.h>
#include <sys/stat.h>
#include <sys/user.h>
#include <unistd.h>

#include "target/file.h"

#define MAX_SEGMENTS 4000000u
#define MAX_NOTE_BYTES (256u << 20) /* a million kernel threads have that many */

struct wf_target_segment {
	uint64_t start, end, offset; /* end: of what is in the file */
};

/* The mapped file that was read last. */
struct wf_core_file {
	const char *path; /* of the map's */
	int fd;
};

void wf_core_convert_regs(const struct user_regs_struct *r, struct wf_regs *out)
{
	*out = (struct wf_regs){
		.reg = { r->rax, r->rdx, r->rcx, r->rbx, r->rsi, r->rdi, r->rbp, r->rsp, r->r8,
			 r->r9, r->r10, r->r11, r->r12, r->r13, r->r14, r->r15, r->rip },
		.known = (1u << WF_NR_REGS) - 1,
	};
}

static bool read_at(int fd, uint64_t offset, void *out, size_t bytes)
{
	size_t done = 0;

	while (done < bytes) {
		ssize_t n = pread(fd, (char *)out + done, bytes - done, (off_t)(offset + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		done += (size_t)n;
	}
	return true;
}

/*
 * The names in a core are somebody else's: only what holds code is read, so no core has the contents of other
 * files shown as its own.
 */
static int open_object(const char *path)
{
	int fd = wf_file_open(path);

	if (fd < 0 || wf_file_is_elf(fd))
		return fd;
	close(fd);
	return -ENOEXEC;
}

/* Unmodified pages of mapped files are usually not in the core. */
static size_t read_mapped_file(const struct wf_target *t, uint64_t address, void *out, size_t bytes)
{
	const struct wf_target_map *m = wf_target_map_at(t, address);
	struct wf_core_file *last = t->last_file;

	if (!m || m->path[0] != '/')
		return 0;
	if (bytes > m->end - address)
		bytes = m->end - address;
	if (!last->path || strcmp(last->path, m->path) != 0) {
		if (last->fd >= 0)
			close(last->fd);
		*last = (struct wf_core_file){ .path = m->path, .fd = open_object(m->path) };
	}
	if (last->fd < 0 || !read_at(last->fd, m->offset + (address - m->start), out, bytes))
		return 0;
	return bytes;
}

static const struct wf_target_segment *segment_at(const struct wf_target *t, uint64_t address)
{
	size_t low = 0, high = t->nr_segments;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct wf_target_segment *s = &t->segments[middle];

		if (address < s->start)
			high = middle;
		else if (address >= s->end)
			low = middle + 1;
		else
			return s;
	}
	return NULL;
}

size_t wf_core_read(const struct wf_target *t, uint64_t address, void *out, size_t bytes)
{
	size_t done = 0;

	while (done < bytes) {
		const struct wf_target_segment *s = segment_at(t, address + done);
		size_t n = bytes - done;

		/* A forged core may have a segment for every byte. */
		if (done && t->budget && !wf_budget_take(t->budget, 0))
			break;
		if (s) {
			if (n > s->end - (address + done))
				n = s->end - (address + done);
			if (!read_at(t->memory_fd, s->offset + (address + done - s->start),
				     (char *)out + done, n))
				break;
		} else {
			n = read_mapped_file(t, address + done, (char *)out + done, n);
			if (!n)
				break;
		}
		done += n;
	}
	return done;
}

/* NT_FILE: count, page size, then (start, end, offset in pages) each, then the names. */
static bool take_files(struct wf_target *t, const char *d, size_t bytes)
{
	uint64_t head[2];
	const char *name, *end = d + bytes;

	if (bytes < sizeof(head))
		return true;
	memcpy(head, d, sizeof(head));
	if (head[0] > (bytes - sizeof(head)) / 24)
		return true;
	t->maps = calloc(head[0] ? head[0] : 1, sizeof(*t->maps));
	if (!t->maps)
		return wf_target_fail(t, "out of memory");
	name = d + sizeof(head) + head[0] * 24;
	for (uint64_t i = 0; i < head[0] && name < end; i++) {
		struct wf_target_map *m = &t->maps[t->nr_maps];
		size_t len = strnlen(name, (size_t)(end - name));
		uint64_t v[3];

		memcpy(v, d + sizeof(head) + i * 24, sizeof(v));
		*m = (struct wf_target_map){ .start = v[0],
					     .end = v[1],
					     .offset = v[2] * head[1],
					     .path = strndup(name, len),
					     .has_code = true };
		if (!m->path)
			return wf_target_fail(t, "out of memory");
		t->nr_maps++;
		name += len + 1;
	}
	return true;
}

static bool take_status(struct wf_target *t, const char *d, size_t bytes)
{
	struct elf_prstatus s;
	struct user_regs_struct r;
	struct wf_target_lwp *l;

	if (bytes < sizeof(s))
		return true;
	memcpy(&s, d, sizeof(s));
	memcpy(&r, &s.pr_reg, sizeof(r));
	l = wf_target_add_lwp(t);
	if (!l)
		return wf_target_fail(t, "out of memory");
	*l = (struct wf_target_lwp){ .tid = s.pr_pid,
				     .inner_tid = s.pr_pid,
				     .call = (long)r.orig_rax };
	if (t->nr_lwps == 1) {
		t->core_signal = s.pr_cursig;
		t->first_tid = s.pr_pid;
	}
	wf_core_convert_regs(&r, &l->regs);
	return true;
}

static void take_info(struct wf_target *t, const char *d, size_t bytes)
{
	struct elf_prpsinfo s;

	if (bytes < sizeof(s))
		return;
	memcpy(&s, d, sizeof(s));
	t->pid = t->inner_pid = s.pr_pid;
	snprintf(t->program, sizeof(t->program), "%.*s", (int)sizeof(s.pr_fname), s.pr_fname);
}

static void take_auxv(struct wf_target *t, const char *d, size_t bytes)
{
	for (size_t i = 0; i + sizeof(Elf64_auxv_t) <= bytes; i += sizeof(Elf64_auxv_t)) {
		Elf64_auxv_t a;

		memcpy(&a, d + i, sizeof(a));
		if (a.a_type == AT_ENTRY)
			t->entry = a.a_un.a_val;
	}
}

static bool take_notes(struct wf_target *t, const char *d, size_t bytes)
{
	size_t at = 0;

	while (bytes - at >= sizeof(Elf64_Nhdr)) {
		const char *desc;
		Elf64_Nhdr n;
		size_t name_bytes, desc_bytes;
		bool is_ok = true;

		memcpy(&n, d + at, sizeof(n));
		at += sizeof(n);
		name_bytes = ((size_t)n.n_namesz + 3) & ~(size_t)3;
		desc_bytes = ((size_t)n.n_descsz + 3) & ~(size_t)3;
		if (name_bytes > bytes - at || desc_bytes > bytes - at - name_bytes)
			break;
		desc = d + at + name_bytes;
		if (n.n_type == NT_PRSTATUS)
			is_ok = take_status(t, desc, n.n_descsz);
		else if (n.n_type == NT_PRPSINFO)
			take_info(t, desc, n.n_descsz);
		else if (n.n_type == NT_FILE && !t->maps)
			is_ok = take_files(t, desc, n.n_descsz);
		else if (n.n_type == NT_AUXV)
			take_auxv(t, desc, n.n_descsz);
		if (!is_ok)
			return false;
		at += name_bytes + desc_bytes;
	}
	return true;
}

/* *left: bytes of notes that may still be read. A core has one piece of them; a forged one, 60,000 that overlap. */
static bool take_header(struct wf_target *t, const Elf64_Phdr *p, uint64_t *left)
{
	char *notes;
	bool is_ok;

	if (p->p_offset + p->p_filesz > t->core_wanted && p->p_offset + p->p_filesz > p->p_offset)
		t->core_wanted = p->p_offset + p->p_filesz;

	if (p->p_type == PT_LOAD && p->p_filesz && p->p_vaddr + p->p_filesz > p->p_vaddr) {
		t->segments[t->nr_segments++] = (struct wf_target_segment){
			p->p_vaddr, p->p_vaddr + p->p_filesz, p->p_offset
		};
		return true;
	}
	if (p->p_type != PT_NOTE)
		return true;
	if (p->p_filesz > *left)
		return wf_target_fail(t, t->core_wanted > t->core_bytes
						 ? "the core file is cut within its notes, which "
						   "hold the registers"
						 : "the core file is damaged: it has more notes "
						   "than bytes");
	*left -= p->p_filesz;
	notes = malloc(p->p_filesz + 1);
	if (!notes)
		return wf_target_fail(t, "out of memory");
	is_ok = !read_at(t->memory_fd, p->p_offset, notes, p->p_filesz) ||
		take_notes(t, notes, p->p_filesz);
	free(notes);
	return is_ok;
}

static int by_inner_tid(const void *a, const void *b)
{
	const struct wf_target_lwp *x = a, *y = b;

	return (x->inner_tid > y->inner_tid) - (x->inner_tid < y->inner_tid);
}

static int by_map_start(const void *a, const void *b)
{
	const struct wf_target_map *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static int by_start(const void *a, const void *b)
{
	const struct wf_target_segment *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* More than 65,534 segments: the number stands in the first section header. */
static bool nr_headers(struct wf_target *t, const Elf64_Ehdr *e, uint64_t *out)
{
	Elf64_Shdr s;

	*out = e->e_phnum;
	if (e->e_phnum != PN_XNUM)
		return true;
	if (!read_at(t->memory_fd, e->e_shoff, &s, sizeof(s)))
		return false;
	*out = s.sh_info;
	return true;
}

/* The program's own file: the one mapped at its entry point. */
static void name_program(struct wf_target *t, const char *exe)
{
	const struct wf_target_map *at = wf_target_map_at(t, t->entry);
	char *old = at ? at->path : NULL;

	if (!old)
		return;
	snprintf(t->program, sizeof(t->program), "%s", exe ? exe : old);
	if (!exe)
		return;
	old = strdup(old);
	t->last_file->path = NULL; /* may be one of those */
	for (size_t i = 0; old && i < t->nr_maps; i++) {
		char *copy;

		if (strcmp(t->maps[i].path, old) != 0)
			continue;
		copy = strdup(exe);
		if (!copy)
			break;
		free(t->maps[i].path);
		t->maps[i].path = copy;
	}
	free(old);
}

static bool open_file(struct wf_target *t, const char *file)
{
	struct stat s;

	t->memory_fd = wf_file_open(file);
	if (t->memory_fd == -EMEDIUMTYPE)
		return wf_target_fail(t, "%s is not a regular file", file);
	if (t->memory_fd < 0)
		return wf_target_fail(t, "cannot open %s: %s", file, strerror(-t->memory_fd));
	if (fstat(t->memory_fd, &s) < 0)
		return wf_target_fail(t, "cannot read %s: %s", file, strerror(errno));
	t->core_bytes = (uint64_t)s.st_size;
	t->last_file = malloc(sizeof(*t->last_file));
	if (!t->last_file)
		return wf_target_fail(t, "out of memory");
	*t->last_file = (struct wf_core_file){ .fd = -1 };
	return true;
}

static bool take_headers(struct wf_target *t, const Elf64_Ehdr *e, uint64_t nr, const char *file)
{
	uint64_t left = t->core_bytes < MAX_NOTE_BYTES ? t->core_bytes : MAX_NOTE_BYTES;

	if (e->e_phoff > t->core_bytes || nr > (t->core_bytes - e->e_phoff) / sizeof(Elf64_Phdr))
		return wf_target_fail(t, "%s is cut after %llu bytes, within its table of segments",
				      file, (unsigned long long)t->core_bytes);
	t->segments = calloc(nr ? nr : 1, sizeof(*t->segments));
	if (!t->segments)
		return wf_target_fail(t, "out of memory");
	for (uint64_t i = 0; i < nr; i++) {
		Elf64_Phdr p;

		if (!read_at(t->memory_fd, e->e_phoff + i * sizeof(p), &p, sizeof(p)))
			return wf_target_fail(t, "%s is cut short", file);
		if (!take_header(t, &p, &left))
			return false;
	}
	qsort(t->segments, t->nr_segments, sizeof(*t->segments), by_start);
	return true;
}

bool wf_target_open_core(struct wf_target *t, const char *file, const char *exe,
			 struct wf_budget *budget)
{
	Elf64_Ehdr e;
	uint64_t nr;

	*t = (struct wf_target){ .is_core = true, .memory_fd = -1, .budget = budget };
	if (!open_file(t, file))
		return false;
	if (!read_at(t->memory_fd, 0, &e, sizeof(e)) || memcmp(e.e_ident, ELFMAG, SELFMAG) != 0 ||
	    e.e_type != ET_CORE || e.e_machine != EM_X86_64 ||
	    e.e_phentsize != sizeof(Elf64_Phdr) || !nr_headers(t, &e, &nr) || nr > MAX_SEGMENTS)
		return wf_target_fail(t, "%s is not a core file of this kind of machine", file);
	if (!take_headers(t, &e, nr, file))
		return false;
	if (!t->nr_lwps)
		return wf_target_fail(t,
				      t->core_bytes < t->core_wanted
					      ? "%s is cut after %llu of %llu bytes, before the "
						"registers of threads"
					      : "%s holds no registers of threads",
				      file, (unsigned long long)t->core_bytes,
				      (unsigned long long)t->core_wanted);
	if (!t->maps)
		return wf_target_fail(t, "%s does not say which files were mapped", file);
	qsort(t->lwps, t->nr_lwps, sizeof(*t->lwps), by_inner_tid);
	if (t->nr_maps)
		qsort(t->maps, t->nr_maps, sizeof(*t->maps), by_map_start);
	name_program(t, exe);
	return true;
}

void wf_core_done(struct wf_target *t)
{
	if (t->last_file && t->last_file->fd >= 0)
		close(t->last_file->fd);
	free(t->last_file);
	free(t->segments);
}
