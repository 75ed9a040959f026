// SPDX-License-Identifier: Apache-2.0
/* Which values are worth being written; see counted.h. */
#include "trace/counted.h"

#define EVERY_NS 50000 /* a figure that changes more often is written so often */

const char *const wf_counted_names[WF_COUNTED_NR] = {
	[WF_COUNTED_READY] = "ready threads",
	[WF_COUNTED_RUNNING] = "running threads",
	[WF_COUNTED_MEMORY] = "memory",
};

static void count(struct wf_counted *c, enum wf_counted_what what, int64_t ns, uint64_t value,
		  int64_t every_ns)
{
	if (c->value[what] == value || ns - c->at[what] < every_ns)
		return;
	c->value[what] = value;
	c->at[what] = ns;
	c->write(c->arg, what, ns, value);
}

/* The figures that were noted until then. */
static void count_memory(struct wf_counted *c, int64_t until)
{
	const struct wf_take *k = c->take;

	for (; c->memory_at < k->nr_memory && k->memory[c->memory_at].ns <= until; c->memory_at++) {
		const struct wf_take_memory *m = &k->memory[c->memory_at];

		count(c, WF_COUNTED_MEMORY, m->ns > k->begin_ns ? m->ns : k->begin_ns, m->bytes, 0);
	}
}

void wf_counted_before(struct wf_counted *c, const struct wf_story_item *i)
{
	count_memory(c, i->ns);
	c->last = *i;
}

void wf_counted_after(struct wf_counted *c, const struct wf_story_item *i)
{
	count(c, WF_COUNTED_READY, i->ns, i->nr_ready, EVERY_NS);
	count(c, WF_COUNTED_RUNNING, i->ns, i->nr_running, EVERY_NS);
}

void wf_counted_end(struct wf_counted *c)
{
	/* Changes so shortly before the end that they were not written yet. */
	count(c, WF_COUNTED_READY, c->last.ns, c->last.nr_ready, 0);
	count(c, WF_COUNTED_RUNNING, c->last.ns, c->last.nr_running, 0);
	count_memory(c, INT64_MAX);
}
