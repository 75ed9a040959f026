// SPDX-License-Identifier: Apache-2.0
/*
 * The last resort of a dump, for what happens where nobody counts: seconds of real time until the output begins, and of
 * CPU time after that, since a reader of the output may take his time. It ends the command with one line. So
 * does a file that is cut while libdw has it mapped.
 *
 * Used by: dump.c. A target that is stopped then goes on: see target/target.h.
 */
#ifndef WF_DUMP_ALARM_H
#define WF_DUMP_ALARM_H

#define WF_ALARM_S 120

void wf_alarm_arm(void);
void wf_alarm_arm_output(void);

#endif
