// SPDX-License-Identifier: Apache-2.0
/*
 * The clock, as programs see it; see weft/weft.h.
 */
#include "native/face.h"
#include "weft/weft.h"

#include <errno.h>
#include <time.h>

#define NS_PER_S 1000000000

WF_FACE weft_time weft_now(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (weft_time)now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* A call like others to the gate, which knows the thread's scopes. */
WF_FACE int weft_sleep_until(weft_time when)
{
	const struct timespec until = { when / NS_PER_S, when % NS_PER_S };
	int error = EINTR;

	while (when > 0 && error == EINTR)
		error = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
	return when > 0 ? -error : 0;
}
