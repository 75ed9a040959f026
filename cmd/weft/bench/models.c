// SPDX-License-Identifier: Apache-2.0
/*
 * The rounds of `weft bench io-models`: which server is measured when, and what its medians are.
 *
 * Called by: bench.c. The models take turns within each round, so that whatever else the machine does meets all of
 * them; a round of one model is a process of its own, as start-up decides much (placement, memory).
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "beside.h"
#include "cmd.h"
#include "bench/models.h"
#include "numbers.h"

#define FILES_SPARE 64 /* descriptors that are no connections */

static const struct wf_model models[] = {
	{ "threads", "threads on NPTL", "threads", false },
	{ "spin", "non-blocking, busy", "spin", false },
	{ "poll", "poll", "poll", false },
	{ "epoll", "epoll", "epoll", false },
	{ "io_uring", "io_uring", "io_uring", false },
	{ "weft", "threads under weft", "threads", true },
};

#define NR_MODELS ((int)(sizeof(models) / sizeof(models[0])))

const struct wf_model *wf_models_at(int i)
{
	return i < NR_MODELS ? &models[i] : NULL;
}

const struct wf_model *wf_models_find(const char *name)
{
	for (int i = 0; i < NR_MODELS; i++) {
		if (strcmp(models[i].name, name) == 0)
			return &models[i];
	}
	return NULL;
}

static bool find_helper(const char *name, char out[PATH_MAX])
{
	/* Installed, build tree. */
	static const char *const places[] = { "../libexec/weft", "../lib/weft",
					      "../../bench/echo" };

	if (wf_beside_find(places, sizeof(places) / sizeof(places[0]), name, X_OK, out))
		return true;
	wf_cmd_error("bench: the program %s is neither installed nor built", name);
	return false;
}

/* The first and the last that we may use: neighbours in number are often halves of one core. */
static void choose_cpus(struct wf_models *m)
{
	cpu_set_t set;

	m->server_cpu = m->load_cpu = 0;
	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return;
	for (int cpu = CPU_SETSIZE - 1; cpu >= 0; cpu--) {
		if (CPU_ISSET(cpu, &set))
			m->server_cpu = cpu;
	}
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, &set))
			m->load_cpu = cpu;
	}
}

void wf_models_pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	(void)sched_setaffinity(0, sizeof(set), &set);
}

static bool raise_files(int connections)
{
	rlim_t wanted = (rlim_t)connections + FILES_SPARE;
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return true;
	if (files.rlim_max < wanted) {
		files.rlim_cur = files.rlim_max = wanted; /* root may */
		if (setrlimit(RLIMIT_NOFILE, &files) < 0) {
			(void)getrlimit(RLIMIT_NOFILE, &files);
			wf_cmd_error("bench: %d connections take %llu descriptors, and the hard "
				     "limit (ulimit -Hn) is %llu",
				     connections, (unsigned long long)wanted,
				     (unsigned long long)files.rlim_max);
			return false;
		}
	}
	return true;
}

static double median_of(const struct wf_models_row *row, int metric)
{
	double values[WF_MODELS_ROUNDS_MAX];

	for (int i = 0; i < row->nr_samples; i++)
		values[i] = row->samples[i].value[metric];
	return wf_numbers_median(values, (size_t)row->nr_samples);
}

static void progress(int round, const struct wf_models *m, const struct wf_models_row *row)
{
	char now[160];

	snprintf(now, sizeof(now), "%s, %d connections", row->model->label, row->connections);
	wf_numbers_progress(round * m->nr_rows + (int)(row - m->rows), m->nr_rounds * m->nr_rows,
			    now);
}

bool wf_models_measure(struct wf_models *m)
{
	int most = 0;

	for (int i = 0; i < m->nr_connections; i++)
		most = m->connections[i] > most ? m->connections[i] : most;
	if (!find_helper("echo-server", m->server) || !find_helper("echo-load", m->load) ||
	    !raise_files(most))
		return false;
	m->nr_rows = m->nr_connections * m->nr_models;
	m->rows = calloc((size_t)m->nr_rows, sizeof(*m->rows));
	if (!m->rows) {
		wf_cmd_error("bench: out of memory");
		return false;
	}
	wf_numbers_machine(m->machine, sizeof(m->machine));
	choose_cpus(m);
	for (int i = 0; i < m->nr_rows; i++) {
		m->rows[i].connections = m->connections[i / m->nr_models];
		m->rows[i].model = m->models[i % m->nr_models];
	}
	for (int round = 0; round < m->nr_rounds; round++) {
		for (int i = 0; i < m->nr_rows; i++) {
			struct wf_models_row *row = &m->rows[i];
			bool is_last = round == m->nr_rounds - 1;

			if (row->why_not[0])
				continue; /* it would go wrong again */
			progress(round, m, row);
			if (wf_models_pair_measure(m, row, is_last, &row->samples[row->nr_samples]))
				row->nr_samples++;
		}
	}
	wf_numbers_progress_end();
	for (int i = 0; i < m->nr_rows; i++) {
		for (int metric = 0; metric < WF_MODELS_NR_METRICS; metric++)
			m->rows[i].median.value[metric] = median_of(&m->rows[i], metric);
	}
	return true;
}

void wf_models_init(struct wf_models *m)
{
	*m = (struct wf_models){ .connections = { 50, 1000 },
				 .nr_connections = 2,
				 .nr_rounds = 3,
				 .size_bytes = 64,
				 .seconds = 1 };
	for (const struct wf_model *model; (model = wf_models_at(m->nr_models));)
		m->models[m->nr_models++] = model;
}

void wf_models_done(struct wf_models *m)
{
	free(m->rows);
	m->rows = NULL;
}
