// SPDX-License-Identifier: Apache-2.0
/*
 * `weft bench io-models`: one TCP echo, served by several I/O models.
 *
 * Used by: bench.c (options), models.c (rounds), models_pair.c (one server and its load), models_calls.c (counts
 * system calls), models_show.c (table, JSON), models_svg.c (picture).
 */
#ifndef WF_MODELS_H
#define WF_MODELS_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#define WF_MODELS_CONNECTIONS_MAX 8 /* entries of --connections */
#define WF_MODELS_ROUNDS_MAX 100

struct wf_model {
	const char *name;       /* --models, JSON */
	const char *label;      /* table, picture */
	const char *server_arg; /* what the server is told */
	bool is_woven;          /* runs under weft */
};

enum wf_models_metric {
	WF_MODELS_RATE,
	WF_MODELS_PER_CPU_S,
	WF_MODELS_P50,
	WF_MODELS_P99,
	WF_MODELS_P999,
	WF_MODELS_CALLS,
	WF_MODELS_SWITCHES,
	WF_MODELS_MEMORY,
	WF_MODELS_LOAD_CPU,
	WF_MODELS_NR_METRICS,
};

/* NAN stands for what was not measured. */
struct wf_models_sample {
	double value[WF_MODELS_NR_METRICS];
};

struct wf_models_row {
	const struct wf_model *model;
	int connections;
	int nr_samples;
	struct wf_models_sample samples[WF_MODELS_ROUNDS_MAX];
	struct wf_models_sample median;
	char why_not[200]; /* why there are no samples; "" otherwise */
	bool is_failure; /* something is wrong; not only a model that this machine does not have */
};

struct wf_models {
	/* options */
	const struct wf_model *models[8];
	int nr_models;
	int connections[WF_MODELS_CONNECTIONS_MAX];
	int nr_connections;
	int nr_rounds;
	int size_bytes;
	double seconds;
	/* found out */
	char server[PATH_MAX], load[PATH_MAX];
	int server_cpu, load_cpu; /* the same where there is only one */
	char machine[200];
	/* results: by connections, then by model */
	struct wf_models_row *rows;
	int nr_rows;
};

/* models.c */
const struct wf_model *wf_models_find(const char *name);
/* The i-th model, or NULL after the last. */
const struct wf_model *wf_models_at(int i);
/* The options as they come. */
void wf_models_init(struct wf_models *m);
/* Measure all that the options ask for. False after having said why it cannot begin. */
bool wf_models_measure(struct wf_models *m);
void wf_models_done(struct wf_models *m);

/*
 * models_pair.c: start the server and the load for row->model, measure once, end both. With `counts_calls`, system
 * calls are counted after that. Fills *out and returns true, or says why not in the row.
 */
bool wf_models_pair_measure(const struct wf_models *m, struct wf_models_row *row, bool counts_calls,
			    struct wf_models_sample *out);
void wf_models_pin(int cpu);

/*
 * models_calls.c: count the system calls of the process and all its threads from when `go` has been called until
 * the child process `until` has ended. -1: that is not possible here. Else the server stays traced: kill it.
 * We sit on `cpu`, the server's, from then on.
 */
#define WF_MODELS_CALLS_DEAD (-2) /* the server has ended, and was waited for */
long long wf_models_calls_count(pid_t server, int cpu, pid_t until, void (*go)(void *),
				void *argument);

/* models_show.c, models_svg.c */
void wf_models_show_table(const struct wf_models *m);
void wf_models_show_json(const struct wf_models *m);
/* The processors of the server and the load, and how long, in words. */
void wf_models_describe(const struct wf_models *m, char *out, size_t bytes);
void wf_models_svg_write(const struct wf_models *m, FILE *out);

#endif
