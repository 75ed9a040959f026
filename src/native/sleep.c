// SPDX-License-Identifier: Apache-2.0
/*
 * Sleeping; see weft/weft.h.
 */
#include "native/face.h"
#include "native/scope.h"
#include "native/thread.h"
#include "weft/weft.h"

#include <asm/unistd.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#define LOOK_NS (10 * WF_MS) /* natively, in scopes that others may cancel */

static WF_FACE_CODE struct timespec in_parts(weft_time t)
{
	return (struct timespec){ t / WF_SEC, t % WF_SEC };
}

/* Natively: nobody but us knows of scopes. pthread_cancel() ends it, as it would clock_nanosleep(). */
static WF_FACE_CODE int sleep_natively(weft_time when)
{
	const struct wf_scopes *sc = wf_scopes_self();
	uint32_t never = 0, *bell;
	const int kept = errno;
	struct timespec until;
	weft_time now;
	int error, type;

	while ((error = weft_scope_check()) == 0 && (now = weft_now()) < when) {
		bell = wf_thread_bell(sc->top);
		until = in_parts(!sc->top || bell ? when
						  : WF_MIN(WF_MIN(when, sc->until), now + LOOK_NS));
		(void)pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
		(void)syscall(__NR_futex, bell ? bell : &never,
			      FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, 0, &until, NULL,
			      FUTEX_BITSET_MATCH_ANY);
		(void)pthread_setcanceltype(type, NULL);
	}
	errno = kept;
	return error;
}

/* A call like others to the gate, which knows the thread's scopes. */
WF_FACE int weft_sleep_until(weft_time when)
{
	const struct timespec until = in_parts(when);
	int error = EINTR;

	/* That needs no wait, so no scope is asked. */
	if (when <= weft_now())
		return 0;
	if (!wf_face_enter())
		return sleep_natively(when);
	while (error == EINTR)
		error = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
	return -error;
}
