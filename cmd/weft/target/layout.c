// SPDX-License-Identifier: Apache-2.0
/* The target's own description of its structures; see layout.h. */
#include "target/layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target/find.h"
#include "target/symbol.h"

#define MAX_ROWS 4096u
#define MAX_CANDIDATES 64 /* mappings that could be the library's first */
#define MAX_STRUCTURE (1u << 20)

static const char *const names[WF_L_NR] = {
#define WF_FIELD(id, name, inside) [WF_L_##id] = name,
#include "target/fields.h"
#undef WF_FIELD
};

static const enum wf_layout_field containers[WF_L_NR] = {
#define WF_FIELD(id, name, inside) [WF_L_##id] = WF_L_##inside,
#include "target/fields.h"
#undef WF_FIELD
};

static uint64_t find_table(const struct wf_target *t, bool *out_is_loaded)
{
	int tried = 0;

	for (size_t i = 0; i < t->nr_maps && tried < MAX_CANDIDATES; i++) {
		const struct wf_target_map *m = &t->maps[i];
		uint64_t address;

		if (m->offset || !wf_find_is_library(m->path))
			continue;
		*out_is_loaded = true;
		tried++;
		address = wf_symbol_find(t, m->start, WF_INSPECT_SYMBOL);
		if (address)
			return address;
	}
	return 0;
}

static bool fail(struct wf_target *t, const char *what)
{
	if (t->budget && t->budget->spent)
		return wf_target_fail(t,
				      "gave up looking for weft's description of itself: too much "
				      "to read (%s)",
				      t->budget->spent);
	if (t->is_core && t->core_bytes < t->core_wanted)
		return wf_target_fail(
			t,
			"the core file is cut after %llu of %llu bytes, and what describes the "
			"threads is not in it: was there a limit (ulimit -c), or no space left?",
			(unsigned long long)t->core_bytes, (unsigned long long)t->core_wanted);
	if (t->is_core)
		snprintf(t->error, sizeof(t->error), "the core file %s", what);
	else
		snprintf(t->error, sizeof(t->error), "process %d %s", t->pid, what);
	return false;
}

static void take_field(struct wf_layout *l, const struct wf_inspect_field *f)
{
	for (int i = 0; i < WF_L_NR; i++) {
		if (strncmp(f->name, names[i], sizeof(f->name)) == 0)
			l->field[i] = *f;
	}
}

static void take_root(struct wf_layout *l, const struct wf_inspect_root *r)
{
	uint64_t address = (uint64_t)r->address;

	if (strncmp(r->type, "wf_runtime", sizeof(r->type)) == 0)
		l->runtime = address;
	else if (strncmp(r->type, "wf_thread_table", sizeof(r->type)) == 0)
		l->table = address;
	else if (strncmp(r->type, "lx_process", sizeof(r->type)) == 0)
		l->process = address;
	else if (strncmp(r->type, "wf_trace", sizeof(r->type)) == 0)
		l->trace = address;
	else if (strncmp(r->type, "wf_tasks", sizeof(r->type)) == 0)
		l->tasks = address;
	else if (strncmp(r->type, "wf_fibers", sizeof(r->type)) == 0)
		l->fibers = address;
}

/* Every field inside of its structure, and no structure larger than what is set aside for its copy. */
static bool is_plausible(const struct wf_layout *l)
{
	for (int i = 0; i < WF_L_NR; i++) {
		const struct wf_inspect_field *f = &l->field[i], *in = &l->field[containers[i]];

		if (in == f ? f->size > MAX_STRUCTURE || f->offset
			    : (uint64_t)f->offset + f->size > in->size)
			return false;
	}
	return l->field[WF_L_THREAD].size <= WF_L_MAX_OBJECT &&
	       l->field[WF_L_KTHREAD].size <= WF_L_MAX_OBJECT &&
	       l->field[WF_L_WORKER].size <= WF_L_MAX_OBJECT &&
	       l->field[WF_L_SWITCH].size <= WF_L_MAX_OBJECT &&
	       l->field[WF_L_UC].size <= WF_L_MAX_OBJECT &&
	       l->field[WF_L_TRACE].size <= WF_L_MAX_OBJECT &&
	       l->field[WF_L_TR_FROZEN].size >= l->field[WF_L_TR_BEGAN].size &&
	       l->field[WF_L_EVENT].size && l->field[WF_L_EVENT].size <= WF_L_MAX_EVENT;
}

static bool take_set(struct wf_layout *l, int first, int end, bool is_there)
{
	for (int i = first; i < end; i++)
		is_there &= l->field[i].size != 0;
	for (int i = first; i < end && !is_there; i++)
		l->field[i].offset = l->field[i].size = 0;
	return is_there;
}

/* A runtime of before they were there, or one that lies about them, has no groups, no tasks, or no fibers. */
static void take_optional(struct wf_layout *l)
{
	const struct wf_inspect_field *f = l->field;
	bool has_groups = f[WF_L_SCOPE].size <= WF_L_MAX_SMALL &&
			  f[WF_L_SCOPES].size <= WF_L_MAX_SMALL &&
			  f[WF_L_GROUP].size <= WF_L_MAX_SMALL &&
			  f[WF_L_GROUP_SCOPE].size >= f[WF_L_SCOPE].size &&
			  f[WF_L_GROUP_LINK].size >= f[WF_L_SCOPES_GROUPS].size;

	l->has_groups = take_set(l, WF_L_FIRST_OPTIONAL, WF_L_FIRST_OF_TASKS, has_groups);
	l->has_tasks = take_set(l, WF_L_FIRST_OF_TASKS, WF_L_FIRST_OF_FIBERS,
				l->tasks && f[WF_L_TASKS].size <= WF_L_MAX_SMALL);
	l->has_fibers = take_set(l, WF_L_FIRST_OF_FIBERS, WF_L_NR,
				 l->fibers && f[WF_L_FIBERS].size <= WF_L_MAX_SMALL &&
					 f[WF_L_FPAGE].size <= WF_L_MAX_SMALL &&
					 f[WF_L_FIBER].size <= WF_L_MAX_SMALL);
}

/* Names are printed: the target does not choose what a terminal does. */
static void make_plain(char *name, size_t bytes)
{
	name[bytes - 1] = '\0';
	for (; *name; name++) {
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_- ",
			    *name))
			*name = '?';
	}
}

static bool read_values(struct wf_layout *out, const struct wf_target *t,
			const struct wf_inspect *head)
{
	out->nr_values = head->nr_values < MAX_ROWS ? head->nr_values : MAX_ROWS;
	out->values = calloc(out->nr_values + 1, sizeof(*out->values));
	if (!out->values)
		return false;
	if (!wf_target_read(t, (uint64_t)head->values, out->values,
			    out->nr_values * sizeof(*out->values)))
		out->nr_values = 0;
	for (uint32_t i = 0; i < out->nr_values; i++) {
		make_plain(out->values[i].set, sizeof(out->values[i].set));
		make_plain(out->values[i].name, sizeof(out->values[i].name));
	}
	out->running = wf_layout_value(out, "state", "running", UINT64_MAX);
	out->ready = wf_layout_value(out, "state", "ready", UINT64_MAX);
	out->parking = wf_layout_value(out, "state", "parking", UINT64_MAX);
	out->parked = wf_layout_value(out, "state", "parked", UINT64_MAX);
	out->waits_futex = wf_layout_value(out, "wait", "futex", UINT64_MAX);
	out->waits_call = wf_layout_value(out, "wait", "call", UINT64_MAX);
	return true;
}

bool wf_layout_read(struct wf_layout *out, struct wf_target *t)
{
	struct wf_inspect head;
	bool is_loaded = false;
	uint64_t address = find_table(t, &is_loaded);
	char text[160];

	*out = (struct wf_layout){ 0 };
	if (!address && is_loaded)
		return fail(t,
			    "runs under a weft that does not describe itself; its library and this "
			    "command are of different versions");
	if (!address)
		return fail(t, t->is_core ? "is of a program that ran without weft; use gdb"
					  : "runs without weft, so its threads are the kernel's: "
					    "use gdb -p or eu-stack -p");
	if (!wf_target_read(t, address, &head, sizeof(head)) ||
	    memcmp(head.magic, WF_INSPECT_MAGIC, sizeof(head.magic)) != 0)
		return fail(
			t, "does not let itself be read: where weft's description of itself should "
			   "be, there is something else");
	if (head.version != WF_INSPECT_VERSION) {
		snprintf(text, sizeof(text),
			 "runs under a weft with layout version %u; this command "
			 "knows version %u",
			 head.version, WF_INSPECT_VERSION);
		return fail(t, text);
	}
	for (uint32_t i = 0; i < head.nr_fields && i < MAX_ROWS; i++) {
		struct wf_inspect_field f;

		/* Until the dynamic loader has relocated it, the table has no addresses. */
		if (!wf_target_read(t, (uint64_t)head.fields + i * sizeof(f), &f, sizeof(f)))
			return fail(t, t->is_core ? "lacks a part of weft's description of itself"
						  : "is only just starting; ask again");
		take_field(out, &f);
	}
	for (uint32_t i = 0; i < head.nr_roots && i < MAX_ROWS; i++) {
		struct wf_inspect_root r;

		if (wf_target_read(t, (uint64_t)head.roots + i * sizeof(r), &r, sizeof(r)))
			take_root(out, &r);
	}
	for (int i = 0; i < WF_L_FIRST_OPTIONAL; i++) {
		if (out->field[i].size)
			continue;
		snprintf(text, sizeof(text), "runs under another build of weft, which has no %s",
			 names[i]);
		return fail(t, text);
	}
	take_optional(out);
	if (!out->runtime || !out->table || !is_plausible(out))
		return fail(t, "runs under another build of weft, or describes itself wrongly");
	return read_values(out, t, &head) || fail(t, "cannot be read: out of memory");
}

void wf_layout_done(struct wf_layout *l)
{
	free(l->values);
	*l = (struct wf_layout){ 0 };
}

uint64_t wf_layout_get(const struct wf_layout *l, const void *object, enum wf_layout_field f)
{
	uint64_t value = 0;
	size_t bytes = l->field[f].size < sizeof(value) ? l->field[f].size : sizeof(value);

	memcpy(&value, (const char *)object + l->field[f].offset, bytes);
	return value;
}

uint64_t wf_layout_fetch(const struct wf_layout *l, const struct wf_target *t, uint64_t address,
			 enum wf_layout_field f)
{
	uint64_t value = 0;
	size_t bytes = l->field[f].size < sizeof(value) ? l->field[f].size : sizeof(value);

	return wf_target_read(t, address + l->field[f].offset, &value, bytes) ? value : 0;
}

bool wf_layout_copy(const struct wf_layout *l, const struct wf_target *t, uint64_t address,
		    enum wf_layout_field type, void *out)
{
	return wf_target_read(t, address, out, l->field[type].size);
}

const char *wf_layout_name(const struct wf_layout *l, const char *set, uint64_t value)
{
	for (uint32_t i = 0; i < l->nr_values; i++) {
		if (strncmp(l->values[i].set, set, sizeof(l->values[i].set)) == 0 &&
		    l->values[i].value == value)
			return l->values[i].name;
	}
	return "?";
}

uint64_t wf_layout_value(const struct wf_layout *l, const char *set, const char *name,
			 uint64_t fallback)
{
	for (uint32_t i = 0; i < l->nr_values; i++) {
		if (strncmp(l->values[i].set, set, sizeof(l->values[i].set)) == 0 &&
		    strncmp(l->values[i].name, name, sizeof(l->values[i].name)) == 0)
			return l->values[i].value;
	}
	return fallback;
}
