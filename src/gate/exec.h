// SPDX-License-Identifier: Apache-2.0
/*
 * A program that executes another one, and what becomes of the preload. Called by: linux/ (through a hook), before the
 * call: in a child that shares the memory of its parent, too.
 */
#ifndef WF_GATE_EXEC_H
#define WF_GATE_EXEC_H

#include <stdbool.h>

/*
 * From now on say in one line when this process, or one forked from it, executes a program without weft's library in
 * LD_PRELOAD; is_strict: in any of them, and end it with 125 instead. Otherwise only this process itself is meant.
 */
void wf_exec_watch(const char *library, bool is_strict);

#endif
