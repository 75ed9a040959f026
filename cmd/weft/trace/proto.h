// SPDX-License-Identifier: Apache-2.0
/*
 * Protocol buffers, write side: fields are appended, messages nest.
 *
 * Used by: perfetto.c. Invariant: when memory runs out nothing more is written, and is_bad says so.
 */
#ifndef WF_TRACE_PROTO_H
#define WF_TRACE_PROTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wf_proto {
	unsigned char *data;
	size_t len, room;
	bool is_bad;
};

void wf_proto_number(struct wf_proto *p, unsigned field, uint64_t value);
void wf_proto_text(struct wf_proto *p, unsigned field, const char *text);
/* Fields that are ready. */
void wf_proto_raw(struct wf_proto *p, const void *data, size_t len);

/* A message: its fields come between. Returns what wf_proto_end() wants. */
size_t wf_proto_begin(struct wf_proto *p, unsigned field);
void wf_proto_end(struct wf_proto *p, size_t begun);

void wf_proto_done(struct wf_proto *p);

#endif
