// SPDX-License-Identifier: Apache-2.0
/* Names that only glibc has; see glibc.h. The program's code. */
#include "native/glibc.h"
#include "native/face.h"

#include <stddef.h>

extern int __register_atfork(void (*)(void), void (*)(void), void (*)(void), void *);
extern void *__dso_handle WF_HIDDEN;

WF_FACE_CODE void wf_glibc_in_child(void (*f)(void))
{
	if (__register_atfork)
		(void)__register_atfork(NULL, NULL, f, &__dso_handle);
}
