// SPDX-License-Identifier: Apache-2.0
/*
 * Numbers that assembly and C agree on; asserted in sched/worker.h, sched/thread.h and native/fiber.h.
 */
#ifndef WF_ARCH_AARCH64_OFFSETS_H
#define WF_ARCH_AARCH64_OFFSETS_H

/* struct wf_kthread */
#define WF_KT_SELF 0
#define WF_KT_CUR 8
#define WF_KT_IN_CLOCK 16

/* struct wf_thread */
#define WF_T_SP 0
#define WF_T_ATTENTION 16
#define WF_T_KEEPS_VECTORS 71
#define WF_T_USER_BASE 168

/* struct weft_fiber; see native/fiber.h */
#define WF_FIBER_SP 0
#define WF_FIBER_PARENT 8

/* struct wf_switch_frame; see saved.h */
#define WF_SWITCH_FPCR 0
#define WF_SWITCH_D8 16
#define WF_SWITCH_X19 80
#define WF_SWITCH_X29 160
#define WF_SWITCH_BYTES 176

/* wf_arch_gate_on: there is no gate yet */
#define WF_GATE_OFF 0
#define WF_GATE_ON 1
#define WF_GATE_SHARED 2

#endif
