// SPDX-License-Identifier: Apache-2.0
/* Joins by libc, beside scopes; see join.h. */
#include "native/join.h"
#include "base/base.h"
#include "native/glibc.h"
#include "native/scope.h"
#include "native/watched.h"
#include "weft/scope.h"
#include "weft/weft.h"

#include <errno.h>
#include <time.h>

/* ThreadSanitizer knows of no join by the monotonic clock, and would take the next thread there for the same. */
static WF_FACE_CODE int join_watched(pthread_t thread, weft_time until)
{
	int error;

	do {
		const weft_time left = WF_MAX(until - weft_now(), 0);
		struct timespec ts;

		(void)clock_gettime(CLOCK_REALTIME, &ts);
		ts.tv_nsec += left % WF_SEC;
		ts.tv_sec += left / WF_SEC + ts.tv_nsec / WF_SEC;
		ts.tv_nsec %= WF_SEC;
		error = pthread_timedjoin_np(thread, NULL, &ts);
	} while (error == ETIMEDOUT && weft_now() < until);
	return error;
}

/* A cancel does not reach into libc natively: how often a join there looks for one. */
#define LOOK_EVERY (5 * WEFT_MS)

static WF_FACE_CODE int join_until(pthread_t thread, weft_time until)
{
	const struct timespec ts = { until / WF_SEC, until % WF_SEC };

	if (until == WEFT_NEVER)
		return pthread_join(thread, NULL);
	if (wf_watched_by_threads)
		return join_watched(thread, until);
	return pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &ts);
}

/* Libc's work at the end of a thread may take its time: destructors are the program's. */
int wf_join(const struct wf_thread *self, pthread_t thread, weft_time until)
{
	const bool looks = !self && wf_scopes_peek()->top;
	int error, over, state;

	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	do {
		over = weft_scope_check();
		if (over)
			error = pthread_tryjoin_np(thread, NULL);
		else
			error = join_until(thread,
					   looks ? WF_MIN(until, weft_now() + LOOK_EVERY) : until);
	} while (!over && error == ETIMEDOUT && weft_now() < until);
	(void)pthread_setcancelstate(state, NULL);
	return error == EBUSY ? over : -error;
}

void wf_join_surely(pthread_t thread)
{
	int state;

	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	while (pthread_join(thread, NULL) == ETIMEDOUT)
		;
	(void)pthread_setcancelstate(state, NULL);
}
