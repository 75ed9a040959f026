// SPDX-License-Identifier: Apache-2.0
/*
 * The CPU family that the build is for: what arch.h promises and a header has to bring. This is the one place outside of
 * the folders of the families that names them; src/meson.build takes the sources from the same folder.
 */
#ifndef WF_ARCH_CPU_H
#define WF_ARCH_CPU_H

#if defined(__x86_64__)
#include "arch/x86_64/cpu.h"
#include "arch/x86_64/frame.h"
#include "arch/x86_64/saved.h"
#include "arch/x86_64/sigframe.h"
#elif defined(__aarch64__)
#include "arch/aarch64/cpu.h"
#include "arch/aarch64/saved.h"
#include "arch/aarch64/sigframe.h"
#else
#error "src/arch/ has no folder for this CPU family; arch.h says what one brings"
#endif

#endif
