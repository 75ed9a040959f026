// SPDX-License-Identifier: Apache-2.0
/*
 * `weft doctor --program FILE|PID`. Used by: doctor.c.
 */
#ifndef WF_REPORT_H
#define WF_REPORT_H

#include <stdbool.h>

/* Prints the report; has_calls: as text with all calls, too. Returns doctor's exit code: 0 runs, 1 runs with a reservation, 2 refused. */
int wf_report_program(const char *name, bool is_json, bool has_calls);

#endif
