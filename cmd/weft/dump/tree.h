// SPDX-License-Identifier: Apache-2.0
/*
 * A snapshot as the tree of its groups and scopes.
 *
 * Used by: dump.c. Invariant: as in print.h; the view has groups.
 */
#ifndef WF_DUMP_TREE_H
#define WF_DUMP_TREE_H

#include "dump/view.h"

void wf_print_tree(const struct wf_dump_view *v);

#endif
