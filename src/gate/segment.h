// SPDX-License-Identifier: Apache-2.0
/*
 * Does a module use the GS base by instructions of its own (rdgsbase, wrgsbase)? And does one set filters for system calls?
 *
 * Called by: modules.c, before code of the module runs. A use of the base that is found without being there costs the program
 * time at each call; one that is there and not found ends it.
 */
#ifndef WF_GATE_SEGMENT_H
#define WF_GATE_SEGMENT_H

#include <link.h>
#include <stdbool.h>

bool wf_segment_has_base_insns(const struct dl_phdr_info *module);
bool wf_segment_has_filters(const struct dl_phdr_info *module);

#endif
