// SPDX-License-Identifier: Apache-2.0
/*
 * Whether the threads of this process are to be weft's: decided by the constructor, by a later call, or by the first thread.
 */
#ifndef WF_GATE_ATTACH_H
#define WF_GATE_ATTACH_H

/* A call of the program's: 0, -EBUSY: there are threads; -ENOTSUP: wf_attach_why_not() says why. */
int wf_attach_late(void);

/* NULL: they are, or the first one will be. Else why not, for good unless nobody has asked yet. */
const char *wf_attach_why_not(void);

#endif
