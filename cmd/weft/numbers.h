// SPDX-License-Identifier: Apache-2.0
/*
 * Shared by all that measures: samples, figures as people read them, the machine's name, and a line
 * that tells how far it is.
 *
 * Used by: models*.c, compare/. NAN stands for what was not measured.
 */
#ifndef WF_NUMBERS_H
#define WF_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>

/* Of those of nr values that are finite; NAN if there are none. At most WF_NUMBERS_MAX values. */
#define WF_NUMBERS_MAX 1000
double wf_numbers_median(const double *values, size_t nr);
/* The width of the middle half of them, relative to their median: how far a single round is to be believed. */
double wf_numbers_spread(const double *values, size_t nr);

/* A decimal number from min to max, and nothing else. */
bool wf_numbers_parse(const char *text, int min, int max, int *out);

/* "12,345", "1.23", or "-". */
const char *wf_numbers_text(char out[32], double value);

/* "Linux 6.1.0, some processor, 2 CPUs". */
void wf_numbers_machine(char *out, size_t bytes);

/* How wide the terminal of a descriptor is; 80 where it is none. */
int wf_numbers_columns(int fd);

/*
 * Say on a terminal that `done` of `total` steps are over, and what comes now. Nothing is said in the first two
 * seconds, or where stderr is no terminal.
 */
void wf_numbers_progress(int done, int total, const char *now);
/* Take that line away. */
void wf_numbers_progress_end(void);

#endif
