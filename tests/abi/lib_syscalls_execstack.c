// SPDX-License-Identifier: Apache-2.0
/* lib_syscalls.c linked to ask for an executable stack. */
#include "lib_syscalls.c"
