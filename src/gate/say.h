// SPDX-License-Identifier: Apache-2.0
/*
 * One line on standard error, where there is no libc yet. Called by: attach.c, settings.c, exec.c.
 */
#ifndef WF_GATE_SAY_H
#define WF_GATE_SAY_H

/* "weft: a b c" in one write; control characters become question marks. Any of them may be NULL. */
void wf_say(const char *a, const char *b, const char *c);

#endif
