// SPDX-License-Identifier: Apache-2.0
/*
 * Processors whose locked instructions are no fence: AMD's Opterons and Athlons 64 of revision E, models 32 to 63 (erratum 147;
 * revision F was cured before it was sold). A load that follows one may be done before it, so what a lock protects could be
 * read before the lock is taken.
 *
 * They cannot write the FS base, so no program has its threads on weft there; but the objects of libweft have locks, too.
 */
#ifndef WF_ARCH_X86_64_ERRATUM_H
#define WF_ARCH_X86_64_ERRATUM_H

#include "arch/arch.h"

/* As CPUID tells them: the name of leaf 0, eax of leaf 1. */
bool wf_erratum_has_loose_locks(const char vendor[12], uint32_t signature);

#endif
