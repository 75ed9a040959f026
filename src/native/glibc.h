// SPDX-License-Identifier: Apache-2.0
/*
 * Names that only glibc has. A preload reaches the programs of another libc, too, whose loader refuses a library with names that it
 * does not find; nothing here is called there, so the names are bound weakly.
 *
 * Included by: every file of native/ that uses one of them, or macros of libc's headers that do.
 */
#ifndef WF_NATIVE_GLIBC_H
#define WF_NATIVE_GLIBC_H

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

/* As pthread_atfork() for a child, of which every object has its own copy, bound to what it needs. Of another libc: nothing is done. */
void wf_glibc_in_child(void (*f)(void));

#endif
