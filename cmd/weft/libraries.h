// SPDX-License-Identifier: Apache-2.0
/*
 * The shared libraries that a program pulls in, found as the dynamic loader finds them.
 *
 * Used by: report.c.
 */
#ifndef WF_LIBRARIES_H
#define WF_LIBRARIES_H

#include <stddef.h>

#include "binary.h"

struct wf_libraries_item {
	char *name;              /* as DT_NEEDED has it */
	char *path;              /* NULL: not found */
	struct wf_binary binary; /* valid with path; its fd is closed */
	unsigned int traits;     /* WF_BINARY_*, as far as its code could be read */
};

struct wf_libraries {
	struct wf_libraries_item *items; /* each name once, breadth first */
	size_t nr;
	char *cache; /* /etc/ld.so.cache, or NULL */
	size_t cache_bytes;
};

/* Collects what program, which lies at path, needs directly and indirectly. Returns 0 or -ENOMEM. */
int wf_libraries_collect(struct wf_libraries *out, const struct wf_binary *program,
			 const char *path);
void wf_libraries_free(struct wf_libraries *l);

#endif
