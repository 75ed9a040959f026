// SPDX-License-Identifier: Apache-2.0
/* A snapshot as the tree of its groups and scopes; see tree.h. */
#include "dump/tree.h"

#include <stdio.h>
#include <stdlib.h>

#include "dump/fibers.h"
#include "dump/print.h"
#include "text.h"

#define MOST_INDENT 24 /* the depth is the target's choice */

static void indent(unsigned depth)
{
	printf("%*s", 2 * (int)(depth < MOST_INDENT ? depth : MOST_INDENT), "");
}

/* "1.2 s left", "over for 3.1 s" */
static void print_left(const struct wf_dump_view *v, int64_t deadline)
{
	const double left = wf_view_left(v, deadline);
	char time[32];

	if (left > 0)
		printf("%s left", wf_print_seconds(time, left));
	else
		printf("over for %s", wf_print_seconds(time, -left));
}

static void print_name(const char *kind, const struct wf_dump_scope *s)
{
	char name[2 * WF_GROUPS_NAME_BYTES];

	printf(s->name[0] ? "%s %s" : "%s without a name", kind,
	       wf_text_clean(name, sizeof(name), s->name));
}

static void print_group(const struct wf_dump_view *v, const struct wf_dump_group *g)
{
	const struct wf_dump_thread *threads = v->threads->threads;

	print_name("group", &g->scope);
	printf(": %s, %u left", wf_layout_name(v->layout, "policy", g->policy), g->nr_left);
	if (g->limit)
		printf(", at most %u", g->limit);
	if (g->scope.is_cancelled)
		printf(", cancelled");
	if (g->scope.deadline) {
		printf(g->scope.deadline > v->threads->now ? ", " : ", time ");
		print_left(v, g->scope.deadline);
	}
	if (g->owner == WF_GROUPS_NONE)
		printf(", of a thread that is not shown");
	if (g->waiter != WF_GROUPS_NONE)
		printf(", thread %lld waits for it", (long long)threads[g->waiter].tid);
	printf("\n");
}

/* "scope lookup: 38 ms left"; without one of its own the thread is in its group's, which is said if it is over. */
static void print_scope(const struct wf_dump_view *v, const struct wf_dump_reach *r)
{
	if (r->nr_scopes) {
		printf("; ");
		print_name("scope", &v->groups->scopes[r->first_scope]);
		if (r->is_cancelled || r->until)
			printf(": ");
	} else if (r->is_cancelled || (r->until && r->until <= v->threads->now)) {
		printf("; ");
	} else {
		return;
	}
	if (r->is_cancelled)
		printf("cancelled");
	else if (r->until)
		print_left(v, r->until);
}

static void print_one(const struct wf_dump_view *v, size_t index)
{
	const struct wf_dump_thread *d = &v->threads->threads[index];
	char mark[64] = "";

	if (wf_view_is_overdue(v, d))
		snprintf(mark, sizeof(mark), "%sOVERDUE%s, ", wf_text_tone(WF_TEXT_BAD),
			 wf_text_plain());
	wf_print_thread(v, d, mark);
	print_scope(v, &v->groups->reaches[index]);
	wf_print_tasks(v, d);
	wf_fibers_print_number(v, d);
	printf("\n");
}

void wf_print_tree(const struct wf_dump_view *v)
{
	struct wf_dump_node *nodes;
	size_t nr;

	wf_print_head(v);
	if (!v->layout->has_groups)
		printf("this weft does not tell of groups and scopes\n");
	printf("\n");
	nodes = wf_groups_tree(v->groups, v->threads, &nr);
	if (!nodes)
		printf("the tree is not shown: out of memory\n");
	for (size_t i = 0; nodes && i < nr; i++) {
		indent(nodes[i].depth);
		if (nodes[i].is_group)
			print_group(v, &v->groups->groups[nodes[i].index]);
		else
			print_one(v, nodes[i].index);
	}
	free(nodes);
	wf_print_tail(v);
}
