// SPDX-License-Identifier: Apache-2.0
/*
 * Formatting without libc: safe in a signal handler and on a small stack.
 *
 * A struct wf_fmt collects into a caller's buffer and silently truncates; the text is always terminated.
 */
#ifndef WF_BASE_FMT_H
#define WF_BASE_FMT_H

#include "base/base.h"

struct wf_fmt {
	char *buf;
	size_t len, cap;
};

void wf_fmt_init(struct wf_fmt *f, char *buf, size_t cap);
void wf_fmt_str(struct wf_fmt *f, const char *s);
void wf_fmt_u64(struct wf_fmt *f, uint64_t v);
void wf_fmt_i64(struct wf_fmt *f, int64_t v);
void wf_fmt_hex(struct wf_fmt *f, uint64_t v);

/* Decimal number at the start of s; false when there is none, when it overflows, or when something follows it. */
bool wf_fmt_parse_u64(const char *s, uint64_t *out);

#endif
