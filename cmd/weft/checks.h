// SPDX-License-Identifier: Apache-2.0
/*
 * The checks of `weft doctor`, one table row each.
 *
 * Used by: doctor.c.
 */
#ifndef WF_CHECKS_H
#define WF_CHECKS_H

#include <stddef.h>

#include "machine.h"

enum wf_checks_level {
	WF_CHECKS_OK,
	WF_CHECKS_SKIPPED, /* only a live machine could answer */
	WF_CHECKS_WARN,    /* weft works, with less speed or room */
	WF_CHECKS_FAIL,    /* weft does not work here */
};

struct wf_checks_finding {
	enum wf_checks_level level;
	char value[160];  /* what was found */
	char advice[320]; /* what it means or what to do; "" if there is nothing to say */
};

struct wf_check {
	const char *id;
	const char *title;
	enum wf_checks_level severity; /* the worst that read() can find */
	const char *why;               /* why weft cares: the text of --explain */
	void (*read)(const struct wf_machine *m, struct wf_checks_finding *out);
};

extern const struct wf_check wf_checks[];
extern const size_t wf_checks_nr;

const char *wf_checks_level_name(enum wf_checks_level level);

/* Runs one check; the finding is always complete. */
void wf_checks_run(const struct wf_check *c, const struct wf_machine *m,
		   struct wf_checks_finding *out);

#endif
