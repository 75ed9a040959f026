// SPDX-License-Identifier: Apache-2.0
/* lib_syscalls.c with more text than one likes to search. */
#define LIB_BIG
#include "lib_syscalls.c"
