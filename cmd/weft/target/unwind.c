// SPDX-License-Identifier: Apache-2.0
/* Unwinding and symbols through libdwfl; see unwind.h. */
#include "target/unwind.h"

#include "target/demangle.h"
#include "target/dwfl.h"
#include "target/file.h"
#include "target/object.h"
#include "target/sandbox.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define MAX_FRAMES 256
#define FIRST_FRAMES 16
#define ALL_FRAMES (16u << 20) /* of all threads: a million with 16 each */
#define MAX_SHAPES 512
#define MAX_MODULES 4096
#define NAME_PLACES (1u << 16) /* distinct addresses of code; a power of two */

/*
 * A stack that was walked: its frames, and how far above the first stack pointer each return address lay.
 * Thousands of threads wait in the same few ways. One whose stack holds the same return addresses in the
 * same places has the same frames, and needs no walk through the tables.
 */
struct shape {
	size_t nr;
	struct wf_dump_frame *frames;
	uint32_t *slots; /* of frames 1 to nr - 1 */
};

/* Looking up a symbol costs libdw some hundred microseconds: each address is looked up once. */
struct named {
	uint64_t pc; /* 0: free */
	bool is_exact;
	struct wf_unwind_name name;
};

/* The variable that was found last: thousands of locks may lie in one array. */
struct variable {
	uint64_t at, bytes;
	const char *name;
};

struct wf_unwind {
	Dwfl *dwfl; /* NULL: no libdw */
	Dwfl_Callbacks callbacks;
	char *debug_path;
	const struct wf_target *target;
	uint64_t
		gate_return; /* the gate keeps its return address so far below the caller's stack */
	struct wf_dump_thread *current; /* whose stack is being walked */
	uint64_t frame_pointer;         /* of the last frame that was found, 0: unknown */
	uint64_t stack_pointer;
	uint64_t stack_pointers[MAX_FRAMES]; /* of the frames of current */
	struct shape shapes[MAX_SHAPES];
	size_t nr_shapes;
	struct named *names; /* NAME_PLACES, open addressing */
	size_t nr_names;
	struct variable variable;
	size_t nr_frames; /* of all threads */
	char why[256];    /* there is no libdw */
};

static struct wf_dwfl dw;

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool read_stack(const struct wf_unwind *u, uint64_t address, void *out, size_t bytes)
{
	const struct wf_dump_thread *d = u->current;

	/* The first frame of a fiber leads to its parent, which is somewhere else by now. */
	if (d && d->is_fiber &&
	    (address < d->stack_low || address >= d->stack_high || bytes > d->stack_high - address))
		return false;
	if (d && address >= d->copy_at && bytes <= d->copy_bytes &&
	    address - d->copy_at <= d->copy_bytes - bytes) {
		memcpy(out, d->copy + (address - d->copy_at), bytes);
		return true;
	}
	return wf_target_read(u->target, address, out, bytes);
}

static bool on_memory_read(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *out, void *arg)
{
	return read_stack(arg, address, out, sizeof(*out));
}

static pid_t on_next_thread(Dwfl *dwfl, void *arg, void **thread_arg)
{
	struct wf_unwind *u = arg;

	/* One thread at a time, under a number that only we know. */
	if (*thread_arg)
		return 0;
	*thread_arg = u->current;
	return 1;
}

static bool on_get_thread(Dwfl *dwfl, pid_t tid, void *arg, void **thread_arg)
{
	struct wf_unwind *u = arg;

	*thread_arg = u->current;
	return true;
}

static bool on_registers(Dwfl_Thread *thread, void *arg)
{
	const struct wf_dump_thread *d = arg;

	for (int i = 0; i < WF_NR_REGS; i++) {
		Dwarf_Word value = d->regs.reg[i];

		if ((d->regs.known & (1u << i)) && !dw.thread_state_registers(thread, i, 1, &value))
			return false;
	}
	dw.thread_state_register_pc(thread, d->regs.reg[WF_REG_RIP]);
	return true;
}

static const Dwfl_Thread_Callbacks thread_callbacks = {
	.next_thread = on_next_thread,
	.get_thread = on_get_thread,
	.memory_read = on_memory_read,
	.set_initial_registers = on_registers,
};

/* Every object that has a mapping of its beginning. libdw gets descriptors: names would lead elsewhere by now. */
static void report_objects(struct wf_unwind *u)
{
	size_t nr = 0;

	for (size_t i = 0; i < u->target->nr_maps && nr < MAX_MODULES; i++) {
		const struct wf_target_map *m = &u->target->maps[i];
		char name[PATH_MAX + 64];
		int fd;

		if (!wf_object_begins(u->target, m))
			continue;
		nr++;
		fd = wf_object_open(u->target, m);
		if (fd < 0)
			continue;
		wf_object_name(u->target, m, name, sizeof(name));
		if (!dw.report_elf(u->dwfl, name, name, fd, m->start, false))
			close(fd);
	}
}

/* Objects are reported with their files: nothing is left to be found. */
static int on_find_elf(Dwfl_Module *m, void **arg, const char *name, Dwarf_Addr base, char **file,
		       Elf **elf)
{
	return -1;
}

/* One descriptor for each object, and some are for us. */
static void allow_descriptors(void)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) == 0 && l.rlim_cur < l.rlim_max) {
		l.rlim_cur = l.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &l);
	}
}

static void begin_libdw(struct wf_unwind *u, const char **out_why)
{
	const char *why;

	if (!wf_dwfl_load(&dw, &why)) {
		snprintf(u->why, sizeof(u->why), "libdw cannot be loaded: %s", why);
		*out_why = u->why;
		return;
	}
	/* A dump must not wait for a server on the network. */
	unsetenv("DEBUGINFOD_URLS");
	wf_file_guard_libraries();
	allow_descriptors();
	wf_sandbox_enter();
	u->callbacks = (Dwfl_Callbacks){
		.find_elf = on_find_elf,
		.find_debuginfo = dw.standard_find_debuginfo,
		.debuginfo_path = &u->debug_path,
	};
	u->dwfl = dw.begin(&u->callbacks);
	if (u->dwfl) {
		dw.report_begin(u->dwfl);
		report_objects(u);
		(void)dw.report_end(u->dwfl, NULL, NULL);
	}
	if (!u->dwfl || !dw.attach_state(u->dwfl, NULL, u->target->pid, &thread_callbacks, u)) {
		snprintf(u->why, sizeof(u->why), "no file with code could be read: %s",
			 dw.errmsg(-1));
		*out_why = u->why;
		if (u->dwfl)
			dw.end(u->dwfl);
		u->dwfl = NULL;
	}
}

struct wf_unwind *wf_unwind_new(const struct wf_target *t, const struct wf_layout *l,
				const char **out_why)
{
	struct wf_unwind *u = calloc(1, sizeof(*u));

	*out_why = NULL;
	if (!u)
		return NULL;
	u->target = t;
	u->gate_return = wf_layout_value(l, "const", "gate_return", 8);
	u->names = calloc(NAME_PLACES, sizeof(*u->names));
	if (!u->names) {
		free(u);
		return NULL;
	}
	begin_libdw(u, out_why);
	return u;
}

void wf_unwind_free(struct wf_unwind *u)
{
	if (!u)
		return;
	if (u->dwfl)
		dw.end(u->dwfl);
	for (size_t i = 0; i < u->nr_shapes; i++) {
		free(u->shapes[i].frames);
		free(u->shapes[i].slots);
	}
	free(u->names);
	free(u);
	wf_demangle_done();
}

/* Room for so many more frames; false, and said in the output, when there are too many. */
static bool may_keep(struct wf_unwind *u, size_t nr)
{
	if (nr <= ALL_FRAMES - u->nr_frames) {
		u->nr_frames += nr;
		return true;
	}
	if (u->target->budget)
		u->target->budget->was_spent = "frames";
	return false;
}

static bool add_frame(struct wf_unwind *u, struct wf_dump_thread *d, const struct wf_dump_frame *f)
{
	if (d->nr_frames == MAX_FRAMES) {
		d->is_cut = true;
		return false;
	}
	if (!may_keep(u, 1))
		return false;
	if (d->nr_frames == 0 ||
	    (d->nr_frames >= FIRST_FRAMES && (d->nr_frames & (d->nr_frames - 1)) == 0)) {
		size_t room = d->nr_frames ? d->nr_frames * 2 : FIRST_FRAMES;
		void *p = realloc(d->frames, room * sizeof(*d->frames));

		if (!p)
			return false;
		d->frames = p;
	}
	d->frames[d->nr_frames++] = *f;
	return true;
}

static int on_frame(Dwfl_Frame *state, void *arg)
{
	struct wf_unwind *u = arg;
	struct wf_dump_frame f = { 0 };
	Dwarf_Word rbp = 0, rsp = 0;

	if (u->target->budget && !wf_budget_take(u->target->budget, 0))
		return DWARF_CB_ABORT;
	if (!dw.frame_pc(state, &f.pc, &f.is_exact))
		return DWARF_CB_ABORT;
	if (!f.pc)
		return DWARF_CB_ABORT;
	/* A thread that left its CPU by a call will go on behind that call. */
	if (!u->current->nr_frames && !u->current->is_on_cpu && !u->current->is_preempted)
		f.is_exact = false;
	u->frame_pointer = dw.frame_reg(state, WF_REG_RBP, &rbp) == 0 ? rbp : 0;
	u->stack_pointer = dw.frame_reg(state, WF_REG_RSP, &rsp) == 0 ? rsp : 0;
	if (u->current->nr_frames < MAX_FRAMES)
		u->stack_pointers[u->current->nr_frames] = u->stack_pointer;
	return add_frame(u, u->current, &f) ? DWARF_CB_OK : DWARF_CB_ABORT;
}

static bool is_code(struct wf_unwind *u, const struct wf_dump_frame *f)
{
	struct wf_unwind_name n;

	wf_unwind_name(u, f, &n);
	return n.function;
}

/* From where libdw lost the trail: code without tables that keeps frame pointers. */
static void follow_frame_pointers(struct wf_unwind *u)
{
	uint64_t at = u->frame_pointer, below = u->stack_pointer;

	while (at && at > below && at % 8 == 0) {
		struct wf_dump_frame f = { .is_guessed = true };
		uint64_t w[2];

		if (!read_stack(u, at, w, sizeof(w)))
			return;
		f.pc = w[1];
		if (!is_code(u, &f) || !add_frame(u, u->current, &f))
			return;
		below = at;
		at = w[0];
	}
}

/* The outermost frames of a thread have no caller; a walk that ends in one of them lost nothing. */
static bool is_outermost(struct wf_unwind *u, const struct wf_dump_thread *d)
{
	static const char *const names[] = { "clone",
					     "__clone",
					     "clone3",
					     "__clone3",
					     "_start",
					     "wf_arch_gate_thread_start",
					     "wf_arch_context_start",
					     "wf_arch_spawn_raw" };
	struct wf_dump_frame last = { 0 };
	struct wf_unwind_name n;

	if (!d->nr_frames)
		return true;
	last.pc = d->frames[d->nr_frames - 1].pc;
	wf_unwind_name(u, &last, &n);
	for (size_t i = 0; n.function && i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(n.function, names[i]) == 0)
			return true;
	}
	return false;
}

static bool is_runtime(struct wf_unwind *u, uint64_t pc)
{
	Dwfl_Module *m = dw.addrmodule(u->dwfl, pc);
	const char *name = m ? dw.module_info(m, NULL, NULL, NULL, NULL, NULL, NULL, NULL) : NULL;

	return name && strncmp(base_name(name), "libweft", 7) == 0;
}

static bool holds(const struct wf_unwind *u, uint64_t address, uint64_t value)
{
	uint64_t word;

	return read_stack(u, address, &word, sizeof(word)) && word == value;
}

static void keep_shape(struct wf_unwind *u, const struct wf_dump_thread *d)
{
	struct shape *s = &u->shapes[u->nr_shapes];
	uint64_t sp = d->regs.reg[WF_REG_RSP];

	if (u->nr_shapes == MAX_SHAPES || d->is_on_cpu || d->is_preempted || d->is_cut ||
	    d->nr_frames < 2)
		return;
	*s = (struct shape){ .nr = d->nr_frames,
			     .frames = calloc(d->nr_frames, sizeof(*s->frames)),
			     .slots = calloc(d->nr_frames, sizeof(*s->slots)) };
	for (size_t i = 1; s->frames && s->slots && i < s->nr; i++) {
		uint64_t above = u->stack_pointers[i], pc = d->frames[i].pc;
		uint64_t at = above - (holds(u, above - 8, pc) ? 8 : u->gate_return);

		/* A signal frame, or one found through the frame pointer: such a stack is always walked. */
		if (d->frames[i].is_guessed || at < sp || at - sp > UINT32_MAX || !holds(u, at, pc))
			goto out_drop;
		s->slots[i] = (uint32_t)(at - sp);
	}
	if (s->frames && s->slots) {
		memcpy(s->frames, d->frames, s->nr * sizeof(*s->frames));
		u->nr_shapes++;
		return;
	}
out_drop:
	free(s->frames);
	free(s->slots);
}

static bool take_shape(struct wf_unwind *u, struct wf_dump_thread *d)
{
	uint64_t sp = d->regs.reg[WF_REG_RSP];

	if (d->is_on_cpu || d->is_preempted)
		return false;
	for (size_t i = 0; i < u->nr_shapes; i++) {
		const struct shape *s = &u->shapes[i];
		size_t nr = 1;

		if (s->frames[0].pc != d->regs.reg[WF_REG_RIP])
			continue;
		while (nr < s->nr && holds(u, sp + s->slots[nr], s->frames[nr].pc))
			nr++;
		if (nr < s->nr)
			continue;
		d->frames = may_keep(u, s->nr) ? malloc(s->nr * sizeof(*s->frames)) : NULL;
		if (!d->frames)
			return true; /* nor would a walk have room for them */
		memcpy(d->frames, s->frames, s->nr * sizeof(*s->frames));
		d->nr_frames = s->nr;
		return true;
	}
	return false;
}

static void walk(struct wf_unwind *u, struct wf_dump_thread *d)
{
	u->frame_pointer = u->stack_pointer = 0;
	memset(u->stack_pointers, 0, sizeof(u->stack_pointers));
	if (dw.getthread_frames(u->dwfl, 1, on_frame, u) < 0 && !d->nr_frames) {
		const struct wf_dump_frame f = { .pc = d->regs.reg[WF_REG_RIP], .is_exact = true };

		u->frame_pointer = d->regs.reg[WF_REG_RBP];
		u->stack_pointer = d->regs.reg[WF_REG_RSP];
		(void)add_frame(u, d, &f);
	}
	if (!d->is_cut && !is_outermost(u, d))
		follow_frame_pointers(u);
	keep_shape(u, d);
}

void wf_unwind_thread(struct wf_unwind *u, struct wf_dump_thread *d)
{
	if (!u->dwfl || !(d->regs.known & (1u << WF_REG_RIP)))
		return;
	u->current = d;
	if (!take_shape(u, d))
		walk(u, d);
	while (d->nr_runtime < d->nr_frames && is_runtime(u, d->frames[d->nr_runtime].pc))
		d->nr_runtime++;
	u->current = NULL;
}

static void look_up(struct wf_unwind *u, const struct wf_dump_frame *f, struct wf_unwind_name *out)
{
	/* A return address may be the first byte of the next function: the call is what counts. */
	uint64_t pc = f->is_exact ? f->pc : f->pc - 1;
	Dwfl_Module *m = u->dwfl ? dw.addrmodule(u->dwfl, pc) : NULL;
	Dwarf_Addr start = 0;
	const char *plain;
	Dwfl_Line *line;
	GElf_Off offset;
	GElf_Sym sym;

	*out = (struct wf_unwind_name){ 0 };
	if (!m)
		return;
	out->object = base_name(dw.module_info(m, NULL, &start, NULL, NULL, NULL, NULL, NULL));
	out->is_runtime = strncmp(out->object, "libweft", 7) == 0;
	out->function = dw.module_addrinfo(m, pc, &offset, &sym, NULL, NULL, NULL);
	out->offset = out->function ? offset + (f->pc - pc) : f->pc - start;
	plain = out->function ? wf_demangle(out->function) : NULL;
	if (plain) {
		out->symbol = out->function;
		out->function = plain;
	}
	line = dw.module_getsrc(m, pc);
	if (line)
		out->file = dw.lineinfo(line, NULL, &out->line, NULL, NULL, NULL);
	if (out->file)
		out->file = base_name(out->file);
}

void wf_unwind_name(struct wf_unwind *u, const struct wf_dump_frame *f, struct wf_unwind_name *out)
{
	size_t i = (size_t)(f->pc * 0x9e3779b97f4a7c15u >> 48) & (NAME_PLACES - 1);

	while (u->names[i].pc && (u->names[i].pc != f->pc || u->names[i].is_exact != f->is_exact))
		i = (i + 1) & (NAME_PLACES - 1);
	if (u->names[i].pc) {
		*out = u->names[i].name;
		return;
	}
	look_up(u, f, out);
	/* Half of the places stay free, so that the next search ends soon. */
	if (f->pc && u->nr_names < NAME_PLACES / 2) {
		u->names[i] = (struct named){ f->pc, f->is_exact, *out };
		u->nr_names++;
	}
}

bool wf_unwind_data(struct wf_unwind *u, uint64_t address, const char **out_name,
		    uint64_t *out_offset)
{
	struct variable *v = &u->variable;
	Dwfl_Module *m;
	const char *plain;
	GElf_Off offset;
	GElf_Sym sym;

	if (address - v->at < v->bytes) {
		*out_name = v->name;
		*out_offset = address - v->at;
		return true;
	}
	m = u->dwfl ? dw.addrmodule(u->dwfl, address) : NULL;
	if (!m)
		return false;
	*out_name = dw.module_addrinfo(m, address, &offset, &sym, NULL, NULL, NULL);
	/* The nearest symbol below says nothing unless the address is inside of it. */
	if (!*out_name || offset >= sym.st_size)
		return false;
	plain = wf_demangle(*out_name);
	if (plain)
		*out_name = plain;
	*v = (struct variable){ address - offset, sym.st_size, *out_name };
	*out_offset = offset;
	return true;
}
