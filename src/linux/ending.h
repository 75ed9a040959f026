// SPDX-License-Identifier: Apache-2.0
/* The end of the process; see ending.c. */
#ifndef WF_LINUX_ENDING_H
#define WF_LINUX_ENDING_H

#include "linux/abi.h"

/*
 * The caller ends the process. True: it is the first, and writes what there is to write. False: it was already, and has
 * crashed in that, or it is the door; it only dies. Anybody else sleeps until the process is gone.
 */
bool lx_ending_begin(void);
/* By the first: all is written. */
void lx_ending_over(void);
/* All of it, for what on_exit writes. sig: of which the process dies, 0: it exits. */
void lx_ending_record(int sig);
/* By the first: tell who watches, if the process dies of a signal that is a crash. */
void lx_ending_tell(int sig);

#endif
