// SPDX-License-Identifier: Apache-2.0
/* Reading groups and scopes; see groups.h. */
#include "target/groups.h"
#include "target/fibers.h"
#include "target/tasks.h"

#include <stdlib.h>
#include <string.h>

#define MAX_GROUPS (1u << 16) /* entries of lists that are looked at */
#define MAX_SCOPES (1u << 20) /* of all threads */
#define MAX_CHAIN 64          /* scopes that count for one thread */

/* Words of a thread's scopes, all 0 of a thread that is not asked for. */
struct words {
	uint64_t top, base, group, first; /* first: of the list of those that it has opened */
};

struct reader {
	const struct wf_layout *l;
	const struct wf_target *t;
	const struct wf_threads *s;
	struct wf_groups *out;
	struct words *words; /* of each thread */
	uint64_t name_at;    /* the last name that was read: most threads have the same */
	char name[WF_GROUPS_NAME_BYTES];
	uint64_t shield, cancelled;
	unsigned left; /* of MAX_GROUPS */
};

/* Room for one more: doubled when it is full. */
static void *grow(void *list, size_t nr, size_t bytes)
{
	return nr & (nr - 1) ? list : realloc(list, (nr ? 2 * nr : 1) * bytes);
}

static uint64_t next_of(const struct reader *r, uint64_t list)
{
	return wf_layout_fetch(r->l, r->t, list, WF_L_LIST_NEXT);
}

static void read_name(struct reader *r, uint64_t at, char out[WF_GROUPS_NAME_BYTES])
{
	if (at != r->name_at) {
		memset(r->name, 0, sizeof(r->name));
		(void)wf_target_read_some(r->t, at, r->name, sizeof(r->name) - 1);
		r->name_at = at;
	}
	memcpy(out, r->name, sizeof(r->name));
}

/* The scope that o is a copy of, but for its name. */
static void take_scope(const struct reader *r, const char *o, struct wf_dump_scope *out)
{
	const uint64_t state = wf_layout_get(r->l, o, WF_L_SCOPE_STATE);
	const int64_t deadline = (int64_t)wf_layout_get(r->l, o, WF_L_SCOPE_DEADLINE);

	*out = (struct wf_dump_scope){
		.deadline = deadline == INT64_MAX ? 0
			    : deadline > 0        ? deadline
						  : 1,
		.is_cancelled = state & r->cancelled,
		.is_shield = state & r->shield,
	};
}

static int by_address(const void *a, const void *b)
{
	const struct wf_dump_group *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

static size_t find_group(const struct wf_groups *g, size_t nr, uint64_t address)
{
	const struct wf_dump_group key = { .address = address };
	const struct wf_dump_group *p = nr ? bsearch(&key, g->groups, nr, sizeof(key), by_address)
					   : NULL;

	return p ? (size_t)(p - g->groups) : WF_GROUPS_NONE;
}

/* Sorted, each once. */
static void sort_groups(struct wf_groups *g)
{
	size_t nr = 0;

	if (g->nr_groups)
		qsort(g->groups, g->nr_groups, sizeof(*g->groups), by_address);
	for (size_t i = 0; i < g->nr_groups; i++) {
		if (!nr || g->groups[nr - 1].address != g->groups[i].address)
			g->groups[nr++] = g->groups[i];
	}
	g->nr_groups = nr;
}

static bool add_group(struct reader *r, uint64_t address)
{
	struct wf_groups *out = r->out;
	struct wf_dump_group *g = grow(out->groups, out->nr_groups, sizeof(*g));

	if (!g)
		return false;
	out->groups = g;
	g[out->nr_groups++] = (struct wf_dump_group){ .address = address };
	return true;
}

/* Those that a thread has opened. A circle that does not come back to its begin is found by a mark that moves ever less often. */
static bool list_groups(struct reader *r, uint64_t scopes, uint64_t first)
{
	const uint64_t head = scopes + r->l->field[WF_L_SCOPES_GROUPS].offset;
	uint64_t at = first, mark = 0;

	for (unsigned n = 1; at && at != head && at != mark && r->left; n++, r->left--) {
		if (!add_group(r, at - r->l->field[WF_L_GROUP_LINK].offset))
			return false;
		if (!(n & (n - 1)))
			mark = at;
		at = next_of(r, at);
	}
	return true;
}

static void read_words(struct reader *r, const struct wf_dump_thread *d, struct words *out)
{
	char o[WF_L_MAX_SMALL];

	if (!d->scopes || !wf_layout_copy(r->l, r->t, d->scopes, WF_L_SCOPES, o))
		return;
	*out = (struct words){
		.top = wf_layout_get(r->l, o, WF_L_SCOPES_TOP),
		.base = wf_layout_get(r->l, o, WF_L_SCOPES_BASE),
		.group = wf_layout_get(r->l, o, WF_L_SCOPES_GROUP),
		.first = wf_layout_get(r->l, o + r->l->field[WF_L_SCOPES_GROUPS].offset,
				       WF_L_LIST_NEXT),
	};
}

static bool list_all(struct reader *r, int64_t only)
{
	size_t nr;
	uint64_t last = 0;

	for (size_t i = 0; i < r->s->nr_threads; i++) {
		const struct wf_dump_thread *d = &r->s->threads[i];

		if (only && only != d->tid)
			continue;
		read_words(r, d, &r->words[i]);
		if (!list_groups(r, d->scopes, r->words[i].first))
			return false;
	}
	sort_groups(r->out);
	/* Those whose owner was not read. */
	nr = r->out->nr_groups;
	for (size_t i = 0; i < r->s->nr_threads && r->left; i++) {
		const uint64_t group = r->words[i].group;

		if (!group || group == last || find_group(r->out, nr, group) != WF_GROUPS_NONE)
			continue;
		last = group;
		r->left--;
		if (!add_group(r, group))
			return false;
	}
	sort_groups(r->out);
	return true;
}

/* A group that cannot be read goes. */
static void read_groups(struct reader *r)
{
	struct wf_groups *out = r->out;
	size_t nr = 0;

	for (size_t i = 0; i < out->nr_groups; i++) {
		char o[WF_L_MAX_SMALL];
		const char *scope = o + r->l->field[WF_L_GROUP_SCOPE].offset;
		struct wf_dump_group *g = &out->groups[nr];

		if (!wf_layout_copy(r->l, r->t, out->groups[i].address, WF_L_GROUP, o))
			continue;
		*g = (struct wf_dump_group){
			.address = out->groups[i].address,
			.policy = (unsigned)wf_layout_get(r->l, o, WF_L_GROUP_POLICY),
			.limit = (unsigned)wf_layout_get(r->l, o, WF_L_GROUP_LIMIT),
			.nr_left = (unsigned)wf_layout_get(r->l, o, WF_L_GROUP_NR),
			.owner_scopes = wf_layout_get(r->l, scope, WF_L_SCOPE_OWNER),
			.owner = WF_GROUPS_NONE,
			.waiter = WF_GROUPS_NONE,
		};
		take_scope(r, scope, &g->scope);
		read_name(r, wf_layout_get(r->l, scope, WF_L_SCOPE_NAME), g->scope.name);
		nr++;
	}
	out->nr_groups = nr;
}

/* longjmp() has left it: it lies below the stack pointer. */
static bool was_left(const struct wf_dump_thread *d, uint64_t scope)
{
	const uint64_t sp = d->regs.reg[WF_REG_RSP];

	return (d->regs.known & 1u << WF_REG_RSP) && sp >= d->stack_low && sp < d->stack_high &&
	       scope >= d->stack_low && scope < sp;
}

/* The chain from the innermost scope outward, those of the group and of its owner as well. */
static bool read_chain(struct reader *r, const struct wf_dump_thread *d,
		       struct wf_dump_reach *reach, uint64_t at, uint64_t base)
{
	struct wf_groups *out = r->out;
	bool is_own = true, counts = true;

	for (unsigned n = 0; at && n < MAX_CHAIN; n++) {
		char o[WF_L_MAX_SMALL];
		struct wf_dump_scope scope, *kept;

		is_own &= at != base;
		if ((!is_own && !counts) || !wf_layout_copy(r->l, r->t, at, WF_L_SCOPE, o))
			return true;
		if (is_own && wf_layout_get(r->l, o, WF_L_SCOPE_OWNER) != d->scopes)
			return true; /* something else lies there by now */
		if (!is_own || !was_left(d, at)) {
			take_scope(r, o, &scope);
			if (counts && scope.deadline &&
			    (!reach->until || scope.deadline < reach->until))
				reach->until = scope.deadline;
			reach->is_cancelled |= counts && scope.is_cancelled;
			counts &= !scope.is_shield;
			if (is_own && out->nr_scopes < MAX_SCOPES) {
				kept = grow(out->scopes, out->nr_scopes, sizeof(*kept));
				if (!kept)
					return false;
				out->scopes = kept;
				read_name(r, wf_layout_get(r->l, o, WF_L_SCOPE_NAME), scope.name);
				kept[out->nr_scopes++] = scope;
				reach->nr_scopes++;
			}
		}
		at = wf_layout_get(r->l, o, WF_L_SCOPE_OUTER);
	}
	return true;
}

static bool read_reaches(struct reader *r)
{
	struct wf_groups *out = r->out;

	for (size_t i = 0; i < r->s->nr_threads; i++) {
		const struct wf_dump_thread *d = &r->s->threads[i];
		struct wf_dump_reach *reach = &out->reaches[i];
		const struct words *w = &r->words[i];

		*reach = (struct wf_dump_reach){ .group = find_group(out, out->nr_groups, w->group),
						 .first_scope = out->nr_scopes,
						 .first_taker = WF_GROUPS_NONE,
						 .next_taker = WF_GROUPS_NONE,
						 .runs_of = WF_GROUPS_NONE };
		if (!read_chain(r, d, reach, w->top, w->base))
			return false;
	}
	return true;
}

struct owner {
	uint64_t scopes;
	size_t index;
};

static int by_scopes(const void *a, const void *b)
{
	const struct owner *x = a, *y = b;

	return x->scopes < y->scopes ? -1 : x->scopes > y->scopes;
}

static bool find_owners(const struct reader *r)
{
	const uint64_t kind = wf_layout_value(r->l, "wait", "group", UINT64_MAX);
	struct owner *owners = calloc(r->s->nr_threads + 1, sizeof(*owners)), *p;
	size_t nr = 0;

	if (!owners)
		return false;
	for (size_t i = 0; i < r->s->nr_threads; i++) {
		const struct wf_dump_thread *d = &r->s->threads[i];
		size_t at;

		if (d->scopes)
			owners[nr++] = (struct owner){ d->scopes, i };
		if (d->wait_kind != kind || d->state != r->l->parked)
			continue;
		at = find_group(r->out, r->out->nr_groups, d->wait_what);
		if (at != WF_GROUPS_NONE)
			r->out->groups[at].waiter = i;
	}
	if (nr)
		qsort(owners, nr, sizeof(*owners), by_scopes);
	for (size_t i = 0; nr && i < r->out->nr_groups; i++) {
		struct wf_dump_group *g = &r->out->groups[i];

		p = bsearch(&(struct owner){ .scopes = g->owner_scopes }, owners, nr,
			    sizeof(*owners), by_scopes);
		if (p)
			g->owner = p->index;
	}
	free(owners);
	return true;
}

bool wf_groups_read(struct wf_groups *out, const struct wf_layout *l, const struct wf_target *t,
		    const struct wf_threads *s, int64_t only)
{
	struct reader r = { .l = l, .t = t, .s = s, .out = out, .left = MAX_GROUPS };
	bool is_ok;

	*out = (struct wf_groups){ 0 };
	r.shield = wf_layout_value(l, "const", "scope_shield", 0);
	r.cancelled = wf_layout_value(l, "const", "scope_cancelled", 0);
	r.words = calloc(s->nr_threads + 1, sizeof(*r.words));
	out->reaches = calloc(s->nr_threads + 1, sizeof(*out->reaches));
	is_ok = r.words && out->reaches && (!l->has_groups || list_all(&r, only));
	if (is_ok)
		read_groups(&r);
	is_ok = is_ok && read_reaches(&r) && find_owners(&r) && wf_tasks_read(out, l, t, s) &&
		wf_fibers_read(out, l, t, s, only);
	free(r.words);
	return is_ok;
}

void wf_groups_done(struct wf_groups *g)
{
	free(g->groups);
	free(g->reaches);
	free(g->scopes);
	for (size_t i = 0; i < g->nr_fibers; i++) {
		free(g->fibers[i].stack.copy);
		free(g->fibers[i].stack.frames);
	}
	free(g->fibers);
	*g = (struct wf_groups){ 0 };
}

/* Of the tree: threads first, then groups, as one row of numbers. */
struct tree {
	size_t nr;
	size_t *parent, *child, *sibling; /* WF_GROUPS_NONE: none */
	bool *has_been;
};

static size_t parent_of(const struct wf_groups *g, const struct wf_threads *s, size_t node)
{
	size_t group;

	if (node >= s->nr_threads)
		return g->groups[node - s->nr_threads].owner;
	group = g->reaches[node].group;
	return group == WF_GROUPS_NONE ? group : group + s->nr_threads;
}

static void link_all(struct tree *tree, const struct wf_groups *g, const struct wf_threads *s)
{
	for (size_t i = 0; i < tree->nr; i++)
		tree->child[i] = WF_GROUPS_NONE;
	for (size_t i = tree->nr; i-- > 0;) { /* so that the first child is the first of them */
		tree->parent[i] = parent_of(g, s, i);
		if (tree->parent[i] == WF_GROUPS_NONE)
			continue;
		tree->sibling[i] = tree->child[tree->parent[i]];
		tree->child[tree->parent[i]] = i;
	}
}

static size_t not_yet(const struct tree *tree, size_t at)
{
	while (at != WF_GROUPS_NONE && tree->has_been[at])
		at = tree->sibling[at];
	return at;
}

/* All below root, without a stack of ours: the depth is the target's choice. */
static void walk(struct tree *tree, size_t root, size_t nr_threads, struct wf_dump_node *out,
		 size_t *nr)
{
	size_t at = root, next;
	unsigned depth = 0;

	while (at != WF_GROUPS_NONE) {
		if (!tree->has_been[at]) {
			tree->has_been[at] = true;
			out[(*nr)++] = (struct wf_dump_node){
				.is_group = at >= nr_threads,
				.index = at >= nr_threads ? at - nr_threads : at,
				.depth = depth,
			};
		}
		/* One that was found is taken off, so that a long list is not looked through for each. */
		next = tree->child[at] = not_yet(tree, tree->child[at]);
		if (next != WF_GROUPS_NONE) {
			depth++;
		} else if (at != root) {
			next = tree->parent[at];
			depth--;
		}
		at = next;
	}
}

struct wf_dump_node *wf_groups_tree(const struct wf_groups *g, const struct wf_threads *s,
				    size_t *out_nr)
{
	struct tree tree = { .nr = s->nr_threads + g->nr_groups };
	struct wf_dump_node *out = calloc(tree.nr + 1, sizeof(*out));
	size_t nr = 0;

	tree.parent = calloc(3 * tree.nr + 1, sizeof(*tree.parent));
	tree.has_been = calloc(tree.nr + 1, sizeof(*tree.has_been));
	if (out && tree.parent && tree.has_been) {
		tree.child = tree.parent + tree.nr;
		tree.sibling = tree.child + tree.nr;
		for (size_t i = 0; i < tree.nr; i++)
			tree.sibling[i] = WF_GROUPS_NONE;
		link_all(&tree, g, s);
		for (size_t i = 0; i < tree.nr; i++) {
			if (tree.parent[i] == WF_GROUPS_NONE)
				walk(&tree, i, s->nr_threads, out, &nr);
		}
		/* A circle, or what hangs on one, which only a target that lies has. */
		for (size_t i = 0; i < tree.nr; i++) {
			if (!tree.has_been[i])
				walk(&tree, i, s->nr_threads, out, &nr);
		}
	} else {
		free(out);
		out = NULL;
	}
	free(tree.parent);
	free(tree.has_been);
	*out_nr = nr;
	return out;
}
