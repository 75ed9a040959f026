// SPDX-License-Identifier: Apache-2.0
/* lib_syscalls.c as another file. */
#include "lib_syscalls.c"
