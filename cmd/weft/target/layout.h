// SPDX-License-Identifier: Apache-2.0
/*
 * Where the fields of the runtime's structures are, as the target itself says (inspect.h, of src/obs/).
 *
 * Used by: all of this folder, and dump/. Invariant: no offset of the runtime is compiled into the command, and each that
 * came from the target lies inside of its structure, whose size has a bound: what wf_layout_get() reads lies
 * inside of a copy of the whole object. Names are plain words.
 */
#ifndef WF_TARGET_LAYOUT_H
#define WF_TARGET_LAYOUT_H

#include "target/target.h"
#include "inspect.h"

enum wf_layout_field {
#define WF_FIELD(id, name, inside) WF_L_##id,
#include "target/fields.h"
#undef WF_FIELD
	WF_L_NR
};

#define WF_L_MAX_OBJECT 65536u /* bytes of a thread, a kernel thread, a worker */
#define WF_L_MAX_EVENT 256u
#define WF_L_MAX_SMALL 1024u /* of a scope, the scopes of a thread, a group */

/* The fields from here to before those of tasks are there all, or taken for absent all; and so are those of tasks, and those of fibers. */
#define WF_L_FIRST_OPTIONAL WF_L_T_SCOPES
#define WF_L_FIRST_OF_TASKS WF_L_TASKS
#define WF_L_FIRST_OF_FIBERS WF_L_FIBERS

struct wf_layout {
	struct wf_inspect_field field[WF_L_NR];
	struct wf_inspect_value *values;
	uint32_t nr_values;
	uint64_t runtime, table, process, trace, tasks, fibers; /* addresses of the roots */
	bool has_groups; /* the optional fields: groups and scopes can be read */
	bool has_tasks;  /* those of tasks */
	bool has_fibers; /* those of fibers */
	/* Values of the enums "state" and "wait" that are asked for with every thread; UINT64_MAX: there is none. */
	uint64_t running, ready, parking, parked, waits_futex, waits_call;
};

/* Finds the table in t. False and t->error: not under weft, another version. */
bool wf_layout_read(struct wf_layout *out, struct wf_target *t);
void wf_layout_done(struct wf_layout *l);

/* A field of up to 8 bytes of the object that object[] is a copy of. */
uint64_t wf_layout_get(const struct wf_layout *l, const void *object, enum wf_layout_field f);
/* The same straight from the target; 0 when it cannot be read. */
uint64_t wf_layout_fetch(const struct wf_layout *l, const struct wf_target *t, uint64_t address,
			 enum wf_layout_field f);

/* A copy of the whole object of the structure's row type into out, which has room for WF_L_MAX_OBJECT. */
bool wf_layout_copy(const struct wf_layout *l, const struct wf_target *t, uint64_t address,
		    enum wf_layout_field type, void *out);

/* Name of a value of the enum set, or "?"; the value of a name, or fallback. */
const char *wf_layout_name(const struct wf_layout *l, const char *set, uint64_t value);
uint64_t wf_layout_value(const struct wf_layout *l, const char *set, const char *name,
			 uint64_t fallback);

#endif
