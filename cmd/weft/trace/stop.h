// SPDX-License-Identifier: Apache-2.0
/*
 * Times of the user's, and when the user has enough.
 *
 * Used by: all of this folder that waits.
 */
#ifndef WF_TRACE_STOP_H
#define WF_TRACE_STOP_H

#include <stdbool.h>
#include <stdint.h>

/* "5s": from 1us to 24h. */
bool wf_stop_parse_time(const char *text, int64_t *out_ns);

/* SIGINT, SIGTERM and SIGHUP end the wait from now on, not the command. */
void wf_stop_catch(void);
bool wf_stop_is_enough(void);

int64_t wf_stop_now(void); /* CLOCK_MONOTONIC */

#endif
