// SPDX-License-Identifier: Apache-2.0
/*
 * A description of a runtime that does not exist, with all fields that `weft dump` asks for: each structure's fields lie
 * one behind the other.
 *
 * Used by: evil.c, fuzz_target.c, which then damage it.
 */
#ifndef WEFT_TESTS_FAKE_LAYOUT_H
#define WEFT_TESTS_FAKE_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "inspect.h"

enum fake_field {
#define WF_FIELD(id, name, inside) FAKE_##id,
#include "target/fields.h"
#undef WF_FIELD
	FAKE_NR
};

static const char *const fake_names[FAKE_NR] = {
#define WF_FIELD(id, name, inside) [FAKE_##id] = name,
#include "target/fields.h"
#undef WF_FIELD
};

static const enum fake_field fake_inside[FAKE_NR] = {
#define WF_FIELD(id, name, inside) [FAKE_##id] = FAKE_##inside,
#include "target/fields.h"
#undef WF_FIELD
};

#define FAKE_EVENTS 16
#define FAKE_NESTED_BYTES 128 /* of a field that has fields */

static inline uint32_t fake_bytes(enum fake_field f)
{
	if (f == FAKE_TR_BEGAN || f == FAKE_TR_FROZEN)
		return FAKE_NESTED_BYTES;
	if (f == FAKE_GROUP_SCOPE || f == FAKE_GROUP_LINK || f == FAKE_SCOPES_GROUPS)
		return FAKE_NESTED_BYTES;
	if (f == FAKE_T_TIMER || f == FAKE_W_RQ || f == FAKE_K_COUNT)
		return FAKE_NESTED_BYTES;
	return f == FAKE_LX_NAME ? 16 : 8;
}

/* The rows, by number of their field. */
static inline void fake_rows(struct wf_inspect_field *out)
{
	uint32_t used[FAKE_NR] = { 0 };

	for (int i = 0; i < FAKE_NR; i++) {
		strncpy(out[i].name, fake_names[i], sizeof(out[i].name) - 1);
		if (fake_inside[i] == (enum fake_field)i)
			continue;
		out[i].offset = used[fake_inside[i]];
		out[i].size = fake_bytes((enum fake_field)i);
		used[fake_inside[i]] += out[i].size;
	}
	for (int i = 0; i < FAKE_NR; i++) {
		if (fake_inside[i] == (enum fake_field)i)
			out[i].size = used[i];
	}
}

static const struct wf_inspect_value fake_values[] = {
	{ "state", "free", 0 },
	{ "state", "new", 1 },
	{ "state", "ready", 2 },
	{ "state", "running", 3 },
	{ "state", "parking", 4 },
	{ "state", "parked", 5 },
	{ "state", "woken", 6 },
	{ "state", "dead", 7 },
	{ "wait", "none", 0 },
	{ "wait", "futex", 1 },
	{ "wait", "fd", 2 },
	{ "wait", "poll", 3 },
	{ "wait", "sleep", 4 },
	{ "wait", "signal", 5 },
	{ "wait", "call", 6 },
	{ "wait", "child", 7 },
	{ "wait", "event", 9 },
	{ "wait", "recv", 10 },
	{ "wait", "send", 11 },
	{ "wait", "select", 12 },
	{ "event", "park", 1 },
	{ "event", "handoff", 2 },
	{ "event", "syscall", 3 },
	{ "event", "kick", 4 },
	{ "event", "steal", 5 },
	{ "event", "run", 6 },
	{ "event", "unpark", 7 },
	{ "event", "exit", 8 },
	{ "event", "back", 9 },
	{ "event", "direct", 10 },
	{ "event", "return", 11 },
	{ "event", "yield", 12 },
	{ "event", "preempt", 13 },
	{ "event", "spawn", 14 },
	{ "event", "bind", 15 },
	{ "const", "state_mask", 7 },
	{ "const", "trace_rings", 1 },
	{ "const", "trace_kind_bits", 8 },
	{ "const", "trace_sched", 1 },
	{ "const", "trace_calls", 2 },
	{ "const", "scope_shield", 1 },
	{ "const", "scope_cancelled", 2 },
	{ "wait", "group", 8 },
	{ "policy", "all", 0 },
	{ "fiber", "new", 0 },
	{ "fiber", "running", 1 },
	{ "fiber", "resumes", 2 },
	{ "fiber", "yielded", 3 },
	{ "fiber", "transferred", 4 },
	{ "fiber", "done", 5 },
};
#define FAKE_NR_VALUES (sizeof(fake_values) / sizeof(fake_values[0]))

/* Store a value in the object that lies at o. */
static inline void fake_put(const struct wf_inspect_field *rows, void *o, enum fake_field f,
			    uint64_t value)
{
	memcpy((char *)o + rows[f].offset, &value, sizeof(value));
}

#endif
