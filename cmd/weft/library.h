// SPDX-License-Identifier: Apache-2.0
/*
 * Where the library is that `weft run` preloads.
 *
 * Used by: run.c, checks.c, bench/grid.c.
 */
#ifndef WF_LIBRARY_H
#define WF_LIBRARY_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* Finds the library, as an absolute path that LD_PRELOAD can name. Else false, and why in words. */
bool wf_library_find(char out_path[PATH_MAX], char *out_why, size_t why_bytes);

#endif
