// SPDX-License-Identifier: Apache-2.0
/*
 * `weft compare`: the user's own command, natively and under weft in turn.
 *
 * Files: compare.c (options, rounds), one_run.c (what one run used), port.c (where a server listens), show.c (table, JSON, verdict).
 */
#ifndef WF_COMPARE_H
#define WF_COMPARE_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "keeper.h"
#include "numbers.h"

#define WF_COMPARE_ROUNDS_MAX WF_NUMBERS_MAX

enum wf_compare_metric {
	WF_COMPARE_WALL,     /* seconds; with a load: how long that took */
	WF_COMPARE_CPU,      /* seconds, of the program and all that it started */
	WF_COMPARE_SWITCHES, /* of kernel threads */
	WF_COMPARE_KTHREADS, /* most at one time that were seen */
	WF_COMPARE_MEMORY,   /* bytes, of the largest process */
	WF_COMPARE_SCORE,    /* what --score found */
	WF_COMPARE_NR_METRICS,
};

enum wf_compare_side_id {
	WF_COMPARE_NATIVE,
	WF_COMPARE_WEFT,
	WF_COMPARE_NR_SIDES,
};

struct wf_compare_side {
	double values[WF_COMPARE_NR_METRICS][WF_COMPARE_ROUNDS_MAX];
	int nr_rounds;
	int status;          /* of the first round, as wait() says it */
	int nr_other_status; /* rounds that ended otherwise */
	int nr_other_output; /* rounds with another output than the first native one */
	int nr_killed;       /* servers that did not end when told to */
};

struct wf_compare {
	/* options */
	char **command;
	const char *load;  /* NULL: none */
	const char *score; /* the regular expression */
	regex_t score_regex;
	const char *input; /* NULL: /dev/null */
	int nr_rounds, nr_warmups;
	int port;       /* 0: to be found */
	int workers;    /* 0: as weft run has it */
	double limit_s; /* of one run */
	bool is_json;
	/* results */
	char machine[200];
	struct wf_compare_side sides[WF_COMPARE_NR_SIDES];
	char fallback[200]; /* why the program ran natively under weft; "": it did not */
	char failure[400];  /* why the comparison ended early */
	bool is_refused;    /* that was weft's own refusal */
};

/* --- port.c --- */

/* The lowest TCP port at which a process of the session `sid` listens, or 0. */
int wf_port_of_session(pid_t sid);
/* Somebody listens there. */
bool wf_port_is_taken(int port);

/* --- one_run.c --- */

/* Run the command once. counts: keep what was measured. False: c->failure says why not. */
bool wf_compare_one_run(struct wf_compare *c, enum wf_compare_side_id side, bool counts);
void wf_compare_one_run_done(void);

/* --- show.c --- */

void wf_compare_show(const struct wf_compare *c);
void wf_compare_show_json(const struct wf_compare *c);
/* Both sides did the same, as far as it can be seen. */
bool wf_compare_is_alike(const struct wf_compare *c);

#endif
