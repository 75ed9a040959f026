// SPDX-License-Identifier: Apache-2.0
/*
 * The one data symbol that a reader outside of the process needs to find its threads: `weft_inspect`.
 *
 * Read by: `weft dump` and tools/weft-gdb.py, from a live process or from a core file. They know no
 * structure of the runtime but the ones below; every offset comes from the target itself.
 *
 * Invariant: WF_INSPECT_VERSION grows when a name below changes its meaning or goes away. New names do not
 * change it: a reader skips what it does not know, and says so when it misses something that it needs.
 */
#ifndef WF_OBS_INSPECT_H
#define WF_OBS_INSPECT_H

#include <stdint.h>

#define WF_INSPECT_SYMBOL "weft_inspect"
#define WF_INSPECT_MAGIC "weftview"
#define WF_INSPECT_VERSION 3u
#define WF_INSPECT_NAME_BYTES 40

/* Field "struct.member"; the row "struct" alone has offset 0 and the structure's size. */
struct wf_inspect_field {
	char name[WF_INSPECT_NAME_BYTES];
	uint32_t offset, size;
};

/* One value of an enum: "state", "wait", "event", "handoff", or a "const". */
struct wf_inspect_value {
	char set[8];
	char name[24];
	uint64_t value;
};

/* Where a structure lies: its type's name as in the fields. */
struct wf_inspect_root {
	char type[WF_INSPECT_NAME_BYTES];
	const void *address;
};

struct wf_inspect {
	char magic[8];
	uint32_t version;
	uint32_t nr_fields, nr_values, nr_roots;
	const struct wf_inspect_field *fields;
	const struct wf_inspect_value *values;
	const struct wf_inspect_root *roots;
};

#endif
