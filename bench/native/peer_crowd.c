// SPDX-License-Identifier: Apache-2.0
/* Threads that come and go, many that exist at once, and trees of them and of tasks. */
#include "peer.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int nothing(void *arg)
{
	(void)arg;
	return 0;
}

static weft_thread **room_for(long nr)
{
	weft_thread **threads = malloc((size_t)nr * sizeof(threads[0]));

	if (!threads)
		abort();
	/* Its pages are no thread's. */
	memset(threads, 0, (size_t)nr * sizeof(threads[0]));
	return threads;
}

/* --- one after the other, and in batches --- */

static double measure_spawn(void *arg)
{
	const long nr = *(long *)arg;
	const weft_time began = weft_now();

	for (long i = 0; i < nr; i++)
		peer_join(peer_spawn(nothing, NULL, 0));
	return (double)(weft_now() - began) / (double)nr;
}

void peer_spawn_join(void)
{
	long nr = peer_arg(1, 100000);

	peer_row("ns", peer_best(measure_spawn, &nr), "ns/thread");
}

struct batch {
	long nr, rounds;
	weft_thread **threads;
};

static double measure_batch(void *arg)
{
	const struct batch *b = arg;
	const weft_time began = weft_now();

	for (long round = 0; round < b->rounds; round++) {
		for (long i = 0; i < b->nr; i++)
			b->threads[i] = peer_spawn(nothing, NULL, 0);
		for (long i = 0; i < b->nr; i++)
			peer_join(b->threads[i]);
	}
	return (double)(weft_now() - began) / (double)(b->nr * b->rounds);
}

void peer_spawn_batch(void)
{
	struct batch b = { peer_arg(1, 10000), peer_arg(2, 20), NULL };

	b.threads = room_for(b.nr);
	peer_row("ns", peer_best(measure_batch, &b), "ns/thread");
	free(b.threads);
}

/* --- memory --- */

static struct {
	pthread_mutex_t mutex;
	pthread_cond_t opens;
	long nr_there;
	bool is_open;
} gate = { .mutex = PTHREAD_MUTEX_INITIALIZER, .opens = PTHREAD_COND_INITIALIZER };

static int waits_at_gate(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&gate.mutex);
	gate.nr_there++;
	while (!gate.is_open)
		pthread_cond_wait(&gate.opens, &gate.mutex);
	pthread_mutex_unlock(&gate.mutex);
	return 0;
}

static long nr_at_gate(void)
{
	long nr;

	pthread_mutex_lock(&gate.mutex);
	nr = gate.nr_there;
	pthread_mutex_unlock(&gate.mutex);
	return nr;
}

/* In kilobytes, of a line `name: NNN kB`. */
static long figure_of(const char *path, const char *name)
{
	FILE *f = fopen(path, "r");
	const size_t len = strlen(name);
	char line[256];
	long value = 0;

	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, name, len) == 0 && line[len] == ':')
			value = atol(line + len + 1);
	if (f)
		fclose(f);
	return value;
}

static const struct figure {
	const char *row, *path, *name;
	bool is_of_all; /* of the whole machine: shown where it says something */
} figures[] = {
	{ "rss", "/proc/self/status", "VmRSS", false },
	{ "pagetable", "/proc/self/status", "VmPTE", false },
	{ "kernelstack", "/proc/meminfo", "KernelStack", true },
	{ "slab", "/proc/meminfo", "Slab", true },
};
#define NR_FIGURES (sizeof(figures) / sizeof(figures[0]))

static void read_figures(long out[NR_FIGURES])
{
	for (size_t i = 0; i < NR_FIGURES; i++)
		out[i] = figure_of(figures[i].path, figures[i].name);
}

void peer_memory(void)
{
	const long wanted = peer_arg(1, 100000);
	const size_t stack_bytes = (size_t)peer_arg(2, 64) << 10;
	weft_thread **threads = room_for(wanted);
	long before[NR_FIGURES], after[NR_FIGURES], nr = 0;
	weft_time began, made, opened;

	read_figures(before);
	began = weft_now();
	while (nr < wanted && (threads[nr] = peer_try_spawn(waits_at_gate, NULL, stack_bytes)))
		nr++;
	while (nr_at_gate() < nr)
		peer_sleep(WEFT_MS);
	made = weft_now() - began;
	read_figures(after);
	opened = weft_now();
	pthread_mutex_lock(&gate.mutex);
	gate.is_open = true;
	pthread_cond_broadcast(&gate.opens);
	pthread_mutex_unlock(&gate.mutex);
	for (long i = 0; i < nr; i++)
		peer_join(threads[i]);
	opened = weft_now() - opened;
	peer_row("threads", (double)nr, "count");
	for (size_t i = 0; i < NR_FIGURES; i++)
		/* Less than a kilobyte of kernel stack for each: they have none. */
		if (!figures[i].is_of_all || after[2] - before[2] > nr)
			peer_row(figures[i].row, (double)(after[i] - before[i]) * 1024 / (double)nr,
				 "B/thread");
	peer_row("create", (double)made / WEFT_SEC, "s");
	peer_row("release-join", (double)opened / WEFT_SEC, "s");
	free(threads);
}

/* --- sleepers --- */

#define SLEEPS 10

/* Each sleeps 1 to 10 ms ten times, by a sequence of its own. */
static weft_time next_sleep(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return (1000 + (*seed >> 8) % 9001) * WEFT_US;
}

static int sleeps(void *arg)
{
	uint32_t seed = *(uint32_t *)arg;

	for (int i = 0; i < SLEEPS; i++)
		peer_sleep(next_sleep(&seed));
	return 0;
}

static weft_time sum_of_sleeps(uint32_t seed)
{
	weft_time sum = 0;

	for (int i = 0; i < SLEEPS; i++)
		sum += next_sleep(&seed);
	return sum;
}

void peer_sleepers(void)
{
	const long wanted = peer_arg(1, 100000);
	weft_thread **threads = room_for(wanted);
	uint32_t *seeds = malloc((size_t)wanted * sizeof(seeds[0]));
	weft_time began, spawned, all, ideal = 0;
	long nr = 0;
	double cpu;

	if (!seeds)
		abort();
	for (long i = 0; i < wanted; i++) {
		seeds[i] = (uint32_t)i * 2654435761u + 1;
		if (sum_of_sleeps(seeds[i]) > ideal)
			ideal = sum_of_sleeps(seeds[i]);
	}
	cpu = peer_cpu_s();
	began = weft_now();
	while (nr < wanted && (threads[nr] = peer_try_spawn(sleeps, &seeds[nr], 0)))
		nr++;
	spawned = weft_now() - began;
	for (long i = 0; i < nr; i++)
		peer_join(threads[i]);
	all = weft_now() - began;
	peer_row("threads", (double)nr, "count");
	peer_row("ideal", (double)ideal / WEFT_SEC, "s");
	peer_row("wall", (double)all / WEFT_SEC, "s");
	peer_row("spawn-phase", (double)spawned / WEFT_SEC, "s");
	peer_row("cpu", peer_cpu_s() - cpu, "s");
	free(seeds);
	free(threads);
}

/* --- skynet: ten below each, down to the leaves, whose numbers are added up --- */

struct node {
	long first, leaves, sum;
};

static void set_below(struct node below[10], const struct node *n)
{
	for (int i = 0; i < 10; i++)
		below[i] = (struct node){ n->first + i * (n->leaves / 10), n->leaves / 10, 0 };
}

static void task_of_ten(void *arg)
{
	struct node *n = arg, below[10];
	weft_task tasks[10];

	n->sum = n->first;
	if (n->leaves == 1)
		return;
	set_below(below, n);
	for (int i = 0; i < 10; i++)
		weft_task_fork(&tasks[i], task_of_ten, &below[i]);
	n->sum = 0;
	for (int i = 10; i-- > 0;) {
		weft_task_join(&tasks[i]);
		n->sum += below[i].sum;
	}
}

static int thread_of_ten(void *arg)
{
	struct node *n = arg, below[10];
	weft_thread *threads[10];

	n->sum = n->first;
	if (n->leaves == 1)
		return 0;
	set_below(below, n);
	for (int i = 0; i < 10; i++)
		threads[i] = peer_spawn(thread_of_ten, &below[i], 0);
	n->sum = 0;
	for (int i = 0; i < 10; i++) {
		peer_join(threads[i]);
		n->sum += below[i].sum;
	}
	return 0;
}

static double measure_skynet(void *arg)
{
	const long leaves = peer_arg(1, 1000000);
	struct node root = { 0, leaves, 0 };
	const weft_time began = weft_now();
	weft_time took;

	if (arg) {
		peer_join(peer_spawn(thread_of_ten, &root, 0));
	} else {
		weft_task t;

		weft_task_fork(&t, task_of_ten, &root);
		weft_task_join(&t);
	}
	took = weft_now() - began;
	if (root.sum != leaves * (leaves - 1) / 2)
		peer_is_broken("sum", (double)root.sum);
	return (double)took / WEFT_MS;
}

void peer_skynet(void)
{
	peer_row("ms", peer_best(measure_skynet, NULL), "ms");
}

void peer_skynet_threads(void)
{
	peer_row("ms", peer_best(measure_skynet, (void *)thread_of_ten), "ms");
}
