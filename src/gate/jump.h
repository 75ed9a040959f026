// SPDX-License-Identifier: Apache-2.0
/*
 * The jump that replaces instructions, of the CPU family that the build is for. A family's gate/<cpu>/jump.h brings
 * WF_JUMP_BYTES, wf_jump_write(), wf_jump_target() and wf_jump_has_room().
 */
#ifndef WF_GATE_JUMP_H
#define WF_GATE_JUMP_H

#if defined(__x86_64__)
#include "gate/x86_64/jump.h"
#else
#error "src/gate/ has no folder for this CPU family"
#endif

#endif
