// SPDX-License-Identifier: Apache-2.0
/*
 * Sizes as they are given on the command line.
 *
 * Used by: run_options.c, trace/trace.c. Invariant: what is taken here is taken by the library, too (src/gate/settings.c).
 */
#ifndef WF_SIZES_H
#define WF_SIZES_H

#include <stdbool.h>

/* A decimal number and nothing else. */
bool wf_sizes_parse_number(const char *text, unsigned long long *out);
/* The number may have a unit: K, M or G. At most 1024G. */
bool wf_sizes_parse(const char *text, unsigned long long *out);
/* The value of --record: a size, "calls", or both with a comma between them. NULL: the default. */
bool wf_sizes_parse_record(const char *text, unsigned long long *out_bytes, bool *out_calls);

#endif
