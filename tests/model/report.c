// SPDX-License-Identifier: Apache-2.0
/* The checker's findings, as TAP; see model.h. */
#include "engine.h"

#include "tap.h"

#include <stdio.h>
#include <stdlib.h>

#ifdef WF_SAN_ADDRESS
#define SLOWDOWN 1 /* the sanitizer takes its time: one choice less than usual */
#else
#define SLOWDOWN 0
#endif
#define SHOWN_STEPS 150 /* of a failed execution's beginning, and of its end */

/* The schedule that failed: one line for each time that a CPU had its turn. */
static void print_log(void)
{
	char line[400];
	int last = -1, n = 0, steps = WF_MIN(engine.steps, MAX_LOG);

	for (int i = 0; i < steps; i++) {
		if (i == SHOWN_STEPS && steps > 2 * SHOWN_STEPS)
			i = steps - SHOWN_STEPS;
		if (engine.log[i].cpu != last || n > 320) {
			if (n)
				tap_note("%s", line);
			last = engine.log[i].cpu;
			n = snprintf(line, sizeof(line), "%s:", engine.cpus[last].name);
		}
		n += snprintf(line + n, sizeof(line) - (size_t)n, " %.40s.%s", engine.log[i].func,
			      engine.log[i].op);
	}
	if (n)
		tap_note("%s", line);
}

uint64_t model_seed(void)
{
	const char *seed = getenv("WEFT_SEED");

	return seed ? strtoull(seed, NULL, 0) : 1;
}

static void report(struct model_result r)
{
	if (CHECK(!r.has_failed))
		return;
	tap_note("%s in execution %llu", r.what, (unsigned long long)r.executions);
	print_log();
}

void model_verify_walk(const struct model *model, uint64_t executions)
{
	tap_note("%llu executions at random, WEFT_SEED=%llu", (unsigned long long)executions,
		 (unsigned long long)model_seed());
	report(model_walk(model, model_seed(), executions));
}

void model_verify(const struct model *model)
{
	struct model shallower = *model;
	struct model_result r;

	shallower.bound -= SLOWDOWN;
	r = model_explore(&shallower);
	tap_note("%llu executions, bound %d%s", (unsigned long long)r.executions, shallower.bound,
		 r.is_complete ? ": all" : "");
	report(r);
	if (!r.has_failed && model->walks)
		model_verify_walk(model, model->walks);
}

void model_catches(struct model model, const char *func, const char *op)
{
	struct model_result r;

	model.mutate_func = func;
	model.mutate_op = op;
	r = model_explore(&model);
	tap_note("%s without its %s: %s after %llu executions", func, op,
		 r.has_failed ? r.what : "NOT FOUND", (unsigned long long)r.executions);
	CHECK(r.has_failed);
}
