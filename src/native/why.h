// SPDX-License-Identifier: Apache-2.0
/* The call that a scope has ended, in words. */
#ifndef WF_NATIVE_WHY_H
#define WF_NATIVE_WHY_H

#include "base/fmt.h"
#include "native/face.h"

/* nr and what: as wf_scopes_end() was told. */
WF_FACE_CODE void wf_why_write(char *buf, size_t len, const char *name, bool is_cancelled,
			       uint32_t nr, uint64_t what);

/* That call alone, by any code. True: its first argument is a descriptor. */
bool wf_why_write_call(struct wf_fmt *f, uint32_t nr);

#endif
