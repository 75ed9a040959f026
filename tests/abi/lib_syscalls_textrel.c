// SPDX-License-Identifier: Apache-2.0
/* lib_syscalls.c with text relocations. */
#define LIB_TEXT_RELOCATION
#include "lib_syscalls.c"
