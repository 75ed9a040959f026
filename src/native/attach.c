// SPDX-License-Identifier: Apache-2.0
/*
 * Whether weft runs the threads of this process, as programs ask it; see weft/weft.h.
 */
#include "gate/attach.h"
#include "native/face.h"
#include "weft/weft.h"

WF_FACE int weft_attach(void)
{
	return wf_attach_late();
}

WF_FACE enum weft_mode weft_mode(const char **out_why)
{
	const char *why = wf_attach_why_not();

	if (out_why)
		*out_why = why;
	return why ? WEFT_MODE_NATIVE : WEFT_MODE_ATTACHED;
}
