// SPDX-License-Identifier: Apache-2.0
/*
 * A fork child forgets the threads, fibers and tasks of its parent before the program's own handlers run there, which may use all of
 * them. libc runs those of a child as they were registered, and none that comes while the fork goes on: so ours is registered before
 * the program begins, used or not.
 */
#include "native/crew.h"
#include "native/fiber.h"
#include "native/glibc.h"
#include "native/thread.h"

WF_FACE_CODE static void forget(void)
{
	wf_thread_forget_others();
	wf_fiber_forget_others();
	wf_crew_forget();
}

__attribute__((constructor)) static void begin(void)
{
	wf_glibc_in_child(forget);
}
