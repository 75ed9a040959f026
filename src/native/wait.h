// SPDX-License-Identifier: Apache-2.0
/*
 * What the functions that wait share.
 *
 * ThreadSanitizer does not look into the library, so it is told what a program may rely on: what was done before an object was
 * used is seen by who uses it afterwards. Its functions are there when the program was built with it.
 */
#ifndef WF_NATIVE_WAIT_H
#define WF_NATIVE_WAIT_H

#include "native/face.h"

extern void __tsan_acquire(void *address) WF_WEAK __attribute__((visibility("default")));
extern void __tsan_release(void *address) WF_WEAK __attribute__((visibility("default")));

/* Before and after a use of object. */
WF_INLINE void wf_native_release(void *object)
{
	if (WF_UNLIKELY(__tsan_release != NULL))
		__tsan_release(object);
}

WF_INLINE void wf_native_acquire(const void *object)
{
	if (WF_UNLIKELY(__tsan_acquire != NULL))
		__tsan_acquire((void *)object);
}

/*
 * After a wait in the kernel: ThreadSanitizer keeps a handler back until a function of libc's is called that it knows. One that
 * it has kept back since before the wait does not end it, so with it a wait does not last.
 */
WF_FACE_CODE void wf_native_run_handlers(void);
#define WF_NATIVE_LONGEST_NS (__tsan_acquire ? 10 * WF_MS : WEFT_NEVER)

/* ret = call, made anew after each signal that was to be handled. call leaves the runtime with self. */
#define WF_NATIVE_WAIT(self, ret, call)                                                            \
	do {                                                                                       \
		(self) = wf_face_enter();                                                          \
		(ret) = (call);                                                                    \
		wf_face_leave(self);                                                               \
	} while (WF_UNLIKELY((ret) == -EINTR))

#endif
