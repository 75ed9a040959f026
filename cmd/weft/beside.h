// SPDX-License-Identifier: Apache-2.0
/*
 * Files that came with the command.
 *
 * Used by: library.c, models.c.
 */
#ifndef WF_BESIDE_H
#define WF_BESIDE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * The first of nr places, relative to the directory of the executable, that has a file of that name with access mode
 * (F_OK, X_OK): its absolute path. False, and nothing said, if none has.
 */
bool wf_beside_find(const char *const places[], size_t nr, const char *name, int mode,
		    char out_path[PATH_MAX]);

#endif
