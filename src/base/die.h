// SPDX-License-Identifier: Apache-2.0
/*
 * The end when weft itself is broken: one message on standard error, then abort.
 */
#ifndef WF_BASE_DIE_H
#define WF_BASE_DIE_H

#include "base/base.h"

WF_NORETURN void wf_die(const char *what, const char *file, int line);

/* A broken invariant of ours; checked in every build, since a silent hang costs more than the test. */
#define WF_ASSERT(cond)                                                                            \
	do {                                                                                       \
		if (WF_UNLIKELY(!(cond)))                                                          \
			wf_die(#cond, __FILE__, __LINE__);                                         \
	} while (0)

#endif
