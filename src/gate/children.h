// SPDX-License-Identifier: Apache-2.0
/*
 * `weft run --children=no`: what the program executes runs without weft.
 */
#ifndef WF_GATE_CHILDREN_H
#define WF_GATE_CHILDREN_H

/* Take out of the environment what `weft run` put there. Before libc looks at it. */
void wf_children_leave(char **env);

#endif
