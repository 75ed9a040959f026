// SPDX-License-Identifier: Apache-2.0
/*
 * The file behind a mapping, for libdw: the one that is mapped, not another that has its name by now.
 *
 * Used by: unwind.c. Invariant: see file.h; a file that cannot be opened is put together from memory.
 */
#ifndef WF_TARGET_OBJECT_H
#define WF_TARGET_OBJECT_H

#include "target/target.h"

/* Is m the beginning of an object that has code? */
bool wf_object_begins(const struct wf_target *t, const struct wf_target_map *m);

/* A descriptor of an ELF file, or -1. */
int wf_object_open(const struct wf_target *t, const struct wf_target_map *m);

/* The name of its file without " (deleted)"; as we would open it, so with the target's root in front. */
void wf_object_name(const struct wf_target *t, const struct wf_target_map *m, char *out,
		    size_t bytes);

#endif
