// SPDX-License-Identifier: Apache-2.0
/*
 * The clock, as programs see it; see weft/weft.h.
 */
#include "native/face.h"
#include "weft/weft.h"

#include <time.h>

WF_FACE weft_time weft_now(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (weft_time)now.tv_sec * WF_SEC + now.tv_nsec;
}
