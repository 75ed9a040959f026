// SPDX-License-Identifier: Apache-2.0
/* Unwinding and symbols through libdwfl; see dump_unwind.h. */
#include "dump_unwind.h"

#include "dump_dwfl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_FRAMES 256
#define FIRST_FRAMES 16
#define MAX_SHAPES 64
#define GATE_RETURN                                                                                \
	136 /* where the gate's entry keeps its return address, below the caller's stack */

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

struct wf_unwind {
	Dwfl *dwfl;
	Dwfl_Callbacks callbacks;
	char *debug_path;
	const struct wf_target *target;
	struct wf_threads *threads;
	struct wf_dump_thread *current; /* whose stack is being walked */
	uint64_t frame_pointer;         /* of the last frame that was found, 0: unknown */
	uint64_t stack_pointer;
	uint64_t stack_pointers[MAX_FRAMES]; /* of the frames of current */
	struct shape shapes[MAX_SHAPES];
	size_t nr_shapes;
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

/* Every object that has a mapping of its beginning; the paths come from the core file. */
static void report_core(struct wf_unwind *u)
{
	for (size_t i = 0; i < u->target->nr_maps; i++) {
		const struct wf_target_map *m = &u->target->maps[i];

		if (m->offset || m->path[0] != '/')
			continue;
		(void)dw.report_elf(u->dwfl, m->path, m->path, -1, m->start, false);
	}
}

struct wf_unwind *wf_unwind_new(struct wf_target *t, struct wf_threads *s)
{
	struct wf_unwind *u;
	const char *why;

	if (!wf_dwfl_load(&dw, &why)) {
		snprintf(t->error, sizeof(t->error), "cannot unwind without libdw: %s", why);
		return NULL;
	}
	u = calloc(1, sizeof(*u));
	if (!u) {
		snprintf(t->error, sizeof(t->error), "out of memory");
		return NULL;
	}
	/* A dump must not wait for a server on the network. */
	unsetenv("DEBUGINFOD_URLS");
	u->target = t;
	u->threads = s;
	u->callbacks = (Dwfl_Callbacks){
		.find_elf = t->is_core ? dw.build_id_find_elf : dw.linux_proc_find_elf,
		.find_debuginfo = dw.standard_find_debuginfo,
		.debuginfo_path = &u->debug_path,
	};
	u->dwfl = dw.begin(&u->callbacks);
	if (u->dwfl) {
		dw.report_begin(u->dwfl);
		if (t->is_core)
			report_core(u);
		else
			(void)dw.linux_proc_report(u->dwfl, t->pid);
		(void)dw.report_end(u->dwfl, NULL, NULL);
	}
	if (!u->dwfl || !dw.attach_state(u->dwfl, NULL, t->pid, &thread_callbacks, u)) {
		snprintf(t->error, sizeof(t->error), "cannot read the symbols of %s: %s",
			 t->program, dw.errmsg(-1));
		wf_unwind_free(u);
		return NULL;
	}
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
	free(u);
}

static bool add_frame(struct wf_dump_thread *d, const struct wf_dump_frame *f)
{
	if (d->nr_frames == MAX_FRAMES) {
		d->is_cut = true;
		return false;
	}
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
	return add_frame(u->current, &f) ? DWARF_CB_OK : DWARF_CB_ABORT;
}

static bool is_code(struct wf_unwind *u, uint64_t pc)
{
	Dwfl_Module *m = dw.addrmodule(u->dwfl, pc);

	return m && dw.module_addrname(m, pc);
}

/* From where libdw lost the trail: code without tables that keeps frame pointers. */
static void follow_frame_pointers(struct wf_unwind *u)
{
	uint64_t at = u->frame_pointer, below = u->stack_pointer;

	while (at && at > below && at % 8 == 0) {
		struct wf_dump_frame f = { .is_guessed = true };
		uint64_t w[2];

		if (!read_stack(u, at, w, sizeof(w)) || !is_code(u, w[1]))
			return;
		f.pc = w[1];
		if (!add_frame(u->current, &f))
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
	const char *name = NULL;
	Dwfl_Module *m;

	if (!d->nr_frames)
		return true;
	m = dw.addrmodule(u->dwfl, d->frames[d->nr_frames - 1].pc - 1);
	if (m)
		name = dw.module_addrname(m, d->frames[d->nr_frames - 1].pc - 1);
	for (size_t i = 0; name && i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(name, names[i]) == 0)
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
		uint64_t at = above - (holds(u, above - 8, pc) ? 8 : GATE_RETURN);

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
		d->frames = malloc(s->nr * sizeof(*s->frames));
		if (!d->frames)
			return false;
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
		(void)add_frame(d, &f);
	}
	if (!d->is_cut && !is_outermost(u, d))
		follow_frame_pointers(u);
	keep_shape(u, d);
}

void wf_unwind_thread(struct wf_unwind *u, struct wf_dump_thread *d)
{
	if (!(d->regs.known & (1u << WF_REG_RIP)))
		return;
	u->current = d;
	if (!take_shape(u, d))
		walk(u, d);
	while (d->nr_runtime < d->nr_frames && is_runtime(u, d->frames[d->nr_runtime].pc))
		d->nr_runtime++;
	u->current = NULL;
}

void wf_unwind_name(struct wf_unwind *u, const struct wf_dump_frame *f, struct wf_unwind_name *out)
{
	/* A return address may be the first byte of the next function: the call is what counts. */
	uint64_t pc = f->is_exact ? f->pc : f->pc - 1;
	Dwfl_Module *m = dw.addrmodule(u->dwfl, pc);
	Dwarf_Addr start = 0;
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
	line = dw.module_getsrc(m, pc);
	if (line)
		out->file = dw.lineinfo(line, NULL, &out->line, NULL, NULL, NULL);
	if (out->file)
		out->file = base_name(out->file);
}

bool wf_unwind_data(struct wf_unwind *u, uint64_t address, const char **out_name,
		    uint64_t *out_offset)
{
	Dwfl_Module *m = dw.addrmodule(u->dwfl, address);
	GElf_Off offset;
	GElf_Sym sym;

	if (!m)
		return false;
	*out_name = dw.module_addrinfo(m, address, &offset, &sym, NULL, NULL, NULL);
	/* The nearest symbol below says nothing unless the address is inside of it. */
	if (!*out_name || offset >= sym.st_size)
		return false;
	*out_offset = offset;
	return true;
}
