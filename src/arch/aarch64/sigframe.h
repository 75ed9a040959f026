// SPDX-License-Identifier: Apache-2.0
/*
 * Facts of the kernel about signals, as far as structures of ours hold them. The layout of its frames comes with the gate.
 */
#ifndef WF_ARCH_AARCH64_SIGFRAME_H
#define WF_ARCH_AARCH64_SIGFRAME_H

#include "base/base.h"

struct wf_stack_t {
	void *sp;
	int flags;
	size_t size;
};

#define WF_SIGINFO_BYTES 128

struct wf_siginfo {
	int signo, errno_, code, pad;
	uint64_t rest[14];
};

_Static_assert(sizeof(struct wf_siginfo) == WF_SIGINFO_BYTES, "kernel layout");

#endif
