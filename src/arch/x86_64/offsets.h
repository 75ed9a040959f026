// SPDX-License-Identifier: Apache-2.0
/*
 * Numbers that assembly and C agree on; asserted in sched/worker.h, arch/x86_64/frame.h, linux/call.c and native/fiber.h.
 */
#ifndef WF_ARCH_X86_64_OFFSETS_H
#define WF_ARCH_X86_64_OFFSETS_H

/* struct wf_kthread */
#define WF_KT_SELF 0
#define WF_KT_CUR 8
#define WF_KT_IN_CLOCK 16

/* struct wf_thread */
#define WF_T_SP 0
#define WF_T_ATTENTION 16
#define WF_T_KEEPS_VECTORS 71
#define WF_T_USER_BASE 168

/* struct wf_frame: see frame.h */
#define WF_FRAME_R15 0
#define WF_FRAME_R14 8
#define WF_FRAME_R13 16
#define WF_FRAME_R12 24
#define WF_FRAME_RBP 32
#define WF_FRAME_RBX 40
#define WF_FRAME_R10 48
#define WF_FRAME_R9 56
#define WF_FRAME_R8 64
#define WF_FRAME_RAX 72
#define WF_FRAME_RDX 80
#define WF_FRAME_RSI 88
#define WF_FRAME_RDI 96
#define WF_FRAME_NR 104
#define WF_FRAME_RESUME 112
#define WF_FRAME_NEXT 120
#define WF_FRAME_BYTES 128
#define WF_FRAME_KEEPS_BIT 63 /* of resume, until C code has seen it */
#define WF_CHILD_BYTES 48     /* below the frame on the stack of a child: struct wf_child */
#define WF_CHILD_BASE 24

/* struct weft_fiber; see native/fiber.h */
#define WF_FIBER_SP 0
#define WF_FIBER_PARENT 8

#define WF_RED_ZONE 128
#define WF_USER_END ((1ul << 47) - WF_PAGE) /* where the kernel's access_ok() ends; for C */

/* wf_arch_gate_on */
#define WF_GATE_OFF 0    /* no thread was made yet: everything passes through */
#define WF_GATE_ON 1     /* weft answers */
#define WF_GATE_SHARED 2 /* and the GS base is the program's own in its code; see sched/self.h */

/* -ERESTARTSYS and its kin, as a call's answer: interrupted. */
#define WF_RESTART_FIRST 512
#define WF_RESTART_LAST 516
#define WF_EINTR 4

#endif
