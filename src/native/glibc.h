// SPDX-License-Identifier: Apache-2.0
/*
 * What only glibc has. A preload reaches the programs of another libc, too, whose loader refuses a library with names that it
 * does not find; nothing here is called there, so the names are bound weakly.
 *
 * Included by: every file of native/ that uses one of them, or macros of libc's headers that do.
 */
#ifndef WF_NATIVE_GLIBC_H
#define WF_NATIVE_GLIBC_H

#include <stddef.h>

extern int __cxa_thread_atexit_impl(void (*)(void *), void *, void *);
extern int __register_atfork(void (*)(void), void (*)(void), void (*)(void), void *);
extern void *__dso_handle __attribute__((visibility("hidden")));

#pragma weak __cxa_thread_atexit_impl
#pragma weak __register_atfork           /* pthread_atfork() */
#pragma weak __sysconf                   /* PTHREAD_STACK_MIN */
#pragma weak __pthread_register_cancel   /* pthread_cleanup_push() */
#pragma weak __pthread_unregister_cancel /* pthread_cleanup_pop() */
#pragma weak __pthread_unwind_next
#pragma weak gnu_get_libc_version
#pragma weak __libc_stack_end
#pragma weak pthread_clockjoin_np
#pragma weak pthread_getname_np

/* As pthread_atfork() for a child, which every object has its own copy of, bound to what it needs. */
static inline __attribute__((always_inline)) void wf_glibc_in_child(void (*f)(void))
{
	(void)__register_atfork(NULL, NULL, f, &__dso_handle);
}

#endif
