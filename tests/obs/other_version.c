// SPDX-License-Identifier: Apache-2.0
/* Stands in for the library of another version: all that a reader may look at is magic and version. */
#include "inspect.h"

const struct wf_inspect weft_inspect __attribute__((visibility("default"))) = {
	.magic = WF_INSPECT_MAGIC,
	.version = WF_INSPECT_VERSION + 41,
};
