// SPDX-License-Identifier: Apache-2.0
/*
 * Operations of the code under test, and the store buffers of its CPUs; see model.h.
 *
 * A CPU's own pending stores are written to memory while it runs and taken out again while others run.
 * Invariant: while CPU c runs, memory holds what c sees; while none runs, what has arrived for all.
 */
#include "engine.h"
#include "model_atomic.h"

#include <string.h>

/* Sizes that the processor copies with one instruction each. */
static void copy(void *to, const void *from, size_t size)
{
	switch (size) {
	case 1:
		memcpy(to, from, 1);
		break;
	case 2:
		memcpy(to, from, 2);
		break;
	case 4:
		memcpy(to, from, 4);
		break;
	default:
		memcpy(to, from, 8);
	}
}

static uint64_t get(const void *at, size_t size)
{
	uint64_t v = 0;

	copy(&v, at, size);
	return v;
}

void engine_hide_stores(struct cpu *c)
{
	for (int i = c->nr_stores; i-- > 0;) {
		struct store *s = &c->buffer[i];

		s->value = get(s->at, s->size);
		copy(s->at, &s->under, s->size);
	}
}

void engine_show_stores(struct cpu *c)
{
	for (int i = 0; i < c->nr_stores; i++) {
		struct store *s = &c->buffer[i];

		s->under = get(s->at, s->size);
		copy(s->at, &s->value, s->size);
	}
}

/* The oldest store of a hidden buffer becomes visible to all. */
static void drain_one(struct cpu *c)
{
	struct store *s = &c->buffer[0];

	copy(s->at, &s->value, s->size);
	memmove(s, s + 1, (size_t)--c->nr_stores * sizeof(*s));
	engine.nr_pending--;
	engine.writes++;
}

void engine_drain_all(void)
{
	for (int i = 0; i < engine.nr_cpus; i++)
		while (engine.cpus[i].nr_stores)
			drain_one(&engine.cpus[i]);
}

void engine_flush(struct cpu *c)
{
	engine.nr_pending -= c->nr_stores;
	c->nr_stores = 0;
	engine.writes++;
}

bool model_is_mutated(const char *func, const char *op)
{
	const struct model *t = engine.model;

	return engine.is_running && t->mutate_func && !strcmp(op, t->mutate_op) &&
	       !strcmp(func, t->mutate_func);
}

/*
 * The running CPU is about to use a word: what others have in their buffers for it may have arrived before, or
 * not. That it could arrive at other moments makes no difference to anybody.
 */
static __attribute__((noinline)) void meet_stores_of_others(struct cpu *self, const void *at)
{
	for (int i = 0; engine.nr_pending && i < engine.nr_cpus; i++) {
		struct cpu *c = &engine.cpus[i];
		int nr_first = 0;

		for (int j = 0; j < c->nr_stores && c != self; j++)
			if (c->buffer[j].at == at)
				nr_first = j + 1;
		if (!nr_first || engine_choose(2))
			continue;
		engine_hide_stores(self);
		while (nr_first--)
			drain_one(c);
		engine_show_stores(self);
	}
}

WF_INLINE void meet_stores(const void *at)
{
	struct cpu *self = engine_cpu();

	if (engine.is_running && engine.nr_pending != self->nr_stores)
		meet_stores_of_others(self, at);
}

/* Its moment makes no difference: no choice. In executions at random all are made. */
WF_INLINE bool is_private(const char *func, const char *op, const void *at)
{
	if (!engine.is_running || engine.is_random || engine_word_is_shared(at))
		return false;
	engine_step(func, op);
	return true;
}

void model_load(const char *func, const void *at)
{
	if (is_private(func, "load", at))
		return;
	engine_point(func, "load");
	meet_stores(at);
}

void model_fence(const char *func)
{
	if (model_is_mutated(func, "fence"))
		return;
	engine_point(func, "fence");
	if (engine.is_running)
		engine_flush(engine_cpu());
}

void model_membarrier(void)
{
	if (model_is_mutated(__func__, "call"))
		return;
	model_fence(__func__);
	for (int i = 0; i < engine.nr_cpus; i++)
		while (i != engine.cur && engine.cpus[i].nr_stores)
			drain_one(&engine.cpus[i]);
}

bool model_is_blind(const char *func)
{
	return engine.model && engine.model->mutate_func && model_is_mutated(func, "look");
}

void model_rmw(const char *func, const char *op, const void *at)
{
	/* Also of a word of its own it makes the CPU's stores visible, and others may have come before that. */
	bool shows = engine.is_running && engine_cpu()->nr_stores;

	if (!is_private(func, op, at) || shows) {
		engine_point(func, op);
		meet_stores(at);
	}
	if (engine.is_running)
		engine_flush(engine_cpu());
}

void model_tear(const char *func, const char *op)
{
	if (model_is_mutated(func, op))
		engine_point(func, "torn");
}

void model_store(const char *func, void *at, const void *value, size_t size, bool is_seq_cst)
{
	struct cpu *c;
	bool is_late, shows;

	if (is_seq_cst && model_is_mutated(func, "store"))
		is_seq_cst = false;
	shows = is_seq_cst && engine.is_running && engine_cpu()->nr_stores; /* as above */
	if (!engine.is_running || (is_private(func, "store", at) && !shows)) {
		copy(at, value, size);
		return;
	}
	engine_point(func, "store");
	c = engine_cpu();
	meet_stores(at);
	if (is_seq_cst)
		engine_flush(c);
	is_late = !is_seq_cst && c->nr_stores < MAX_BUFFER &&
		  (c->nr_stores || (engine.budget > 0 && engine_choose(2)));
	if (!is_late) {
		engine_flush(c);
		copy(at, value, size);
		return;
	}
	if (!c->nr_stores && !engine.is_random)
		engine.budget--;
	c->buffer[c->nr_stores++] = (struct store){ .at = at,
						    .size = size,
						    .under = get(at, size) };
	engine.nr_pending++;
	copy(at, value, size);
}
