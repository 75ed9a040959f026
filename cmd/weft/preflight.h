// SPDX-License-Identifier: Apache-2.0
/* Reasons that keep every program of this caller on plain NPTL, known before the first begins. Used by: run.c. */
#ifndef WF_PREFLIGHT_H
#define WF_PREFLIGHT_H

/* Why, or NULL: nothing that is seen from here. */
const char *wf_preflight_why_native(void);

#endif
