// SPDX-License-Identifier: Apache-2.0
/* How to ask the door to look; see doorbell.c. */
#ifndef WF_LINUX_DOORBELL_H
#define WF_LINUX_DOORBELL_H

#include "linux/abi.h"

/* By the door: the last request so far; all up to this one are dealt with. */
uint32_t lx_doorbell_asked(void);
void lx_doorbell_answer(uint32_t request);

/* Return when the door has taken and dealt with what was pending, by the set of parked signals of now. */
void lx_door_pass(void);

#endif
