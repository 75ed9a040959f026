// SPDX-License-Identifier: Apache-2.0
/*
 * Where the registers of a stack lie while another one is in use. The picture is what fiber.S stores and loads.
 */
#ifndef WF_ARCH_AARCH64_SAVED_H
#define WF_ARCH_AARCH64_SAVED_H

#include "arch/aarch64/offsets.h"
#include "base/base.h"

/* The low halves of v8 to v15 are the caller's; x18 belongs to the platform, and to nobody on Linux. */
struct wf_switch_frame {
	uint64_t fpcr, unused;
	uint64_t d[8];  /* d8 to d15 */
	uint64_t x[10]; /* x19 to x28 */
	uint64_t x29;
	void (*x30)(void);
};

_Static_assert(offsetof(struct wf_switch_frame, fpcr) == WF_SWITCH_FPCR, "fiber.S relies on it");
_Static_assert(offsetof(struct wf_switch_frame, d) == WF_SWITCH_D8, "fiber.S relies on it");
_Static_assert(offsetof(struct wf_switch_frame, x) == WF_SWITCH_X19, "fiber.S relies on it");
_Static_assert(offsetof(struct wf_switch_frame, x29) == WF_SWITCH_X29, "fiber.S relies on it");
_Static_assert(sizeof(struct wf_switch_frame) == WF_SWITCH_BYTES, "fiber.S relies on it");

#endif
