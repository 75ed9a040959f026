// SPDX-License-Identifier: Apache-2.0
/* The target's own description of its structures; see dump_layout.h. */
#include "dump_layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ROWS 4096u

static const char *const names[WF_L_NR] = {
#define WF_FIELD(id, name) [WF_L_##id] = name,
#include "dump_fields.h"
#undef WF_FIELD
};

static bool is_weft(const char *path)
{
	const char *base = strrchr(path, '/');

	return base && strncmp(base + 1, "libweft", 7) == 0;
}

static uint64_t find_table(const struct wf_target *t, bool *out_is_loaded)
{
	for (size_t i = 0; i < t->nr_maps; i++) {
		const struct wf_target_map *m = &t->maps[i];
		uint64_t address;

		if (m->offset || !is_weft(m->path))
			continue;
		*out_is_loaded = true;
		address = wf_target_symbol(t, m, WF_INSPECT_SYMBOL);
		if (address)
			return address;
	}
	return 0;
}

static bool fail(struct wf_target *t, const char *what)
{
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
}

/* Bounded by what a machine can hold, so that a damaged target costs no more than a message. */
static bool is_plausible(const struct wf_layout *l)
{
	return l->field[WF_L_THREAD].size >= 64 && l->field[WF_L_THREAD].size <= 65536 &&
	       l->field[WF_L_KTHREAD].size <= 65536 && l->field[WF_L_WORKER].size <= 65536;
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
		if (!wf_target_read(t, (uint64_t)(head.fields + i), &f, sizeof(f)))
			return fail(t, t->is_core ? "lacks a part of weft's description of itself"
						  : "is only just starting; ask again");
		take_field(out, &f);
	}
	for (uint32_t i = 0; i < head.nr_roots && i < MAX_ROWS; i++) {
		struct wf_inspect_root r;

		if (wf_target_read(t, (uint64_t)(head.roots + i), &r, sizeof(r)))
			take_root(out, &r);
	}
	for (int i = 0; i < WF_L_NR; i++) {
		if (out->field[i].size)
			continue;
		snprintf(text, sizeof(text), "runs under another build of weft, which has no %s",
			 names[i]);
		return fail(t, text);
	}
	if (!out->runtime || !out->table || !is_plausible(out))
		return fail(t, "runs under another build of weft");
	out->nr_values = head.nr_values < MAX_ROWS ? head.nr_values : MAX_ROWS;
	out->values = calloc(out->nr_values + 1, sizeof(*out->values));
	if (!out->values)
		return fail(t, "cannot be read: out of memory");
	if (!wf_target_read(t, (uint64_t)head.values, out->values,
			    out->nr_values * sizeof(*out->values)))
		out->nr_values = 0;
	return true;
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

const char *wf_layout_name(const struct wf_layout *l, const char *set, uint64_t value)
{
	for (uint32_t i = 0; i < l->nr_values; i++) {
		if (strncmp(l->values[i].set, set, sizeof(l->values[i].set)) == 0 &&
		    l->values[i].value == value) {
			l->values[i].name[sizeof(l->values[i].name) - 1] = '\0';
			return l->values[i].name;
		}
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
