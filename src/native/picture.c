// SPDX-License-Identifier: Apache-2.0
/* The surroundings of a mistake; see picture.h. */
#include "native/picture.h"
#include "base/fmt.h"
#include "linux/abi.h"
#include "native/why.h"
#include "sched/group.h"

#define TRIES 1000
#define MOST_SCOPES 8 /* of a chain, for a group has to fit, too */
#define MOST_DEPTH 4  /* of groups in groups */
#define MOST_NAME 40
#define LINE_ROOM 200 /* no line is longer */

struct drawing {
	struct wf_fmt f;
	const struct wf_picture *p;
	int64_t now;
	unsigned nr_lines;
};

const char *(*wf_picture_name)(const struct wf_scopes *sc);

static bool try_lock(struct wf_spin *lock)
{
	for (int i = 0; i < TRIES; i++) {
		if (wf_spin_trylock(lock))
			return true;
		wf_cpu_pause();
	}
	return false;
}

/* The next link, or NULL: the end, or a link that does not lead back. */
static const struct wf_list *next_of(const struct wf_list *head, const struct wf_list *at)
{
	const struct wf_list *next = at->next;

	return next && next != head && next->prev == at ? next : NULL;
}

static void put(struct drawing *d, const char *s)
{
	wf_fmt_str(&d->f, s);
}

/* False: there is no room for another line. */
static bool begin_line(struct drawing *d, unsigned depth)
{
	if (d->nr_lines >= WF_PICTURE_LINES - 1 || d->f.cap - d->f.len < LINE_ROOM + 16) {
		if (d->nr_lines < WF_PICTURE_LINES)
			put(d, "  ...\n");
		d->nr_lines = WF_PICTURE_LINES;
		return false;
	}
	d->nr_lines++;
	for (unsigned i = 0; i <= depth; i++)
		put(d, "  ");
	return true;
}

/* It is the program's, and may say anything. */
static void put_name(struct drawing *d, const char *name)
{
	char c[2] = "";

	for (int i = 0; i < MOST_NAME && name[i]; i++) {
		c[0] = (unsigned char)name[i] < ' ' || name[i] == 0x7f ? '?' : name[i];
		put(d, c);
	}
}

static void put_named(struct drawing *d, const char *kind, const char *name)
{
	put(d, kind);
	put(d, name && name[0] ? " " : " without a name");
	if (name)
		put_name(d, name);
}

static void put_time(struct drawing *d, int64_t ns)
{
	wf_fmt_u64(&d->f, (uint64_t)(ns / (ns < WF_SEC ? WF_MS : WF_SEC)));
	if (ns >= WF_SEC) {
		put(d, ".");
		wf_fmt_u64(&d->f, (uint64_t)(ns % WF_SEC / (100 * WF_MS)));
	}
	put(d, ns < WF_SEC ? " ms" : " s");
}

static bool put_left(struct drawing *d, int64_t deadline, const char *before)
{
	if (deadline == WF_NEVER)
		return false;
	put(d, before);
	if (deadline <= d->now) {
		put(d, "OVERDUE for ");
		put_time(d, d->now - deadline);
	} else {
		put_time(d, deadline - d->now);
		put(d, " left");
	}
	return true;
}

static void put_end_of(struct drawing *d, const struct wf_scope *s)
{
	const uint32_t state = wf_load_relaxed(&s->state);
	const bool has_deadline = put_left(d, s->deadline, ": ");

	if (state & WF_SCOPE_CANCELLED)
		put(d, has_deadline ? ", cancelled" : ": cancelled");
}

/* --- threads --- */

static void put_wait(struct drawing *d, enum wf_wait kind, uint64_t what)
{
	static const char *const words[WF_WAIT_NR] = {
		[WF_WAIT_NONE] = " waits",
		[WF_WAIT_FUTEX] = " waits for futex ",
		[WF_WAIT_FD] = " waits for fd ",
		[WF_WAIT_POLL] = " waits for descriptors: ",
		[WF_WAIT_SLEEP] = " sleeps",
		[WF_WAIT_SIGNAL] = " waits for a signal",
		[WF_WAIT_CALL] = " waits in ",
		[WF_WAIT_CHILD] = " waits for a child",
		[WF_WAIT_UNUSED] = " waits for nothing",
		[WF_WAIT_EVENT] = " waits for event ",
		[WF_WAIT_RECV] = " receives from channel ",
		[WF_WAIT_SEND] = " sends to channel ",
		[WF_WAIT_SELECT] = " selects, of operations: ",
		[WF_WAIT_GROUP] = " waits for a group",
	};

	put(d, kind < WF_WAIT_NR ? words[kind] : " waits");
	switch (kind) {
	case WF_WAIT_FUTEX:
	case WF_WAIT_EVENT:
		wf_fmt_hex(&d->f, what);
		break;
	case WF_WAIT_RECV:
	case WF_WAIT_SEND:
		if (d->p->ch && what == (uintptr_t)d->p->ch && d->p->ch->name)
			put_name(d, d->p->ch->name);
		else
			wf_fmt_hex(&d->f, what);
		break;
	case WF_WAIT_FD:
	case WF_WAIT_POLL:
	case WF_WAIT_SELECT:
		wf_fmt_u64(&d->f, what);
		break;
	case WF_WAIT_CALL:
		(void)wf_why_write_call(&d->f, (uint32_t)what);
		break;
	default:
		break;
	}
}

/* One of weft's. It is not stopped: its words may be of two moments. until: of its scopes. */
static void put_thread(struct drawing *d, struct wf_thread *t, int64_t until)
{
	const enum wf_state state = wf_state_of(wf_load_relaxed(&t->state));
	const enum wf_wait kind = (enum wf_wait)wf_load_relaxed(&t->wait_kind);
	const int64_t since = wf_load_relaxed(&t->wait_since);

	put(d, "thread ");
	wf_fmt_u64(&d->f, t->tid);
	put(d, " ");
	put_name(d, lx_of(t)->name);
	if (state != WF_PARKED && state != WF_PARKING && kind != WF_WAIT_CALL) {
		put(d, state == WF_READY ? ": is ready" : ": runs");
		return;
	}
	put(d, until <= d->now ? ": OVERDUE," : ":");
	put_wait(d, kind, wf_load_relaxed(&t->wait_what));
	if (since > 0 && since <= d->now) {
		put(d, ", for ");
		put_time(d, d->now - since);
	}
}

/* Under the lock of its group. */
static void put_member(struct drawing *d, const struct wf_scopes *sc)
{
	const char *name;

	if (sc->thread) {
		put_thread(d, sc->thread, wf_load_relaxed(&sc->until));
		return;
	}
	name = wf_picture_name ? wf_picture_name(sc) : NULL;
	put_named(d, "thread", name);
	if (wf_load_relaxed(&sc->wait_word))
		put(d, wf_load_relaxed(&sc->until) <= d->now ? ": OVERDUE, waits" : ": waits");
}

/* --- groups --- */

static void draw_groups(struct drawing *d, const struct wf_scopes *sc, unsigned depth);

/* Under its lock. */
static void draw_members(struct drawing *d, const struct wf_group *g, unsigned depth)
{
	const struct wf_list *at = &g->members;

	while ((at = next_of(&g->members, at)) && begin_line(d, depth)) {
		const struct wf_scopes *sc = container_of(at, struct wf_scopes, link);

		put_member(d, sc);
		put(d, "\n");
		draw_groups(d, sc, depth + 1);
	}
}

static void draw_group(struct drawing *d, struct wf_group *g, unsigned depth)
{
	static const char *const policies[] = { ": all, ", ": any, ", ": each, " };
	const uint32_t policy = wf_load_relaxed(&g->policy), limit = wf_load_relaxed(&g->limit);

	if (!begin_line(d, depth))
		return;
	put_named(d, "group", g->scope.name);
	put(d, policy < ARRAY_LEN(policies) ? policies[policy] : ": ");
	wf_fmt_u64(&d->f, wf_load_relaxed(&g->nr));
	put(d, " left");
	if (limit) {
		put(d, ", at most ");
		wf_fmt_u64(&d->f, limit);
	}
	if (wf_load_relaxed(&g->scope.state) & WF_SCOPE_CANCELLED)
		put(d, ", cancelled");
	(void)put_left(d, g->scope.deadline, ", ");
	if (!try_lock(&g->lock)) {
		put(d, ", in use just now\n");
		return;
	}
	put(d, "\n");
	draw_members(d, g, depth + 1);
	wf_spin_unlock(&g->lock);
}

/* Locks are taken from the root down, as by those who cancel. */
static void draw_groups(struct drawing *d, const struct wf_scopes *sc, unsigned depth)
{
	struct wf_spin *lock = (struct wf_spin *)&sc->lock;
	const struct wf_list *at = &sc->groups;

	if (depth > 2 * MOST_DEPTH || !sc->is_ready || !try_lock(lock))
		return;
	while ((at = next_of(&sc->groups, at)) && d->nr_lines < WF_PICTURE_LINES)
		draw_group(d, container_of(at, struct wf_group, link), depth);
	wf_spin_unlock(lock);
}

/*
 * From inside out, to the group that has made the thread, or the scope of the task that it runs, and no further: what is
 * around that is another thread's. One that longjmp() has left is no scope any more.
 */
static void draw_scopes(struct drawing *d, const struct wf_scopes *sc)
{
	const struct wf_scope *s = sc->top;

	for (int i = 0; i < MOST_SCOPES && s && s != sc->base; i++, s = s->outer) {
		if (s->owner != sc || s->check != wf_scope_check_of(s) || !begin_line(d, 1))
			return;
		put_named(d, wf_load_relaxed(&s->state) & WF_SCOPE_SHIELD ? "shield" : "scope",
			  s->name);
		put_end_of(d, s);
		put(d, "\n");
	}
	if (!s || s != sc->base || !begin_line(d, 1))
		return;
	put_named(d, sc->group ? "in group" : "in scope", s->name);
	put_end_of(d, s);
	put(d, "\n");
}

/* --- channels --- */

static void draw_waiters(struct drawing *d, const struct wf_list *list, const char *what)
{
	const struct wf_list *at = list;

	while ((at = next_of(list, at)) && begin_line(d, 1)) {
		struct wf_wait_node *n = container_of(at, struct wf_wait_node, link);

		put(d, what);
		if (n->waiter->thread)
			put_thread(d, n->waiter->thread, WF_NEVER);
		else
			put(d, "a thread of the kernel's");
		put(d, "\n");
	}
}

static void draw_channel(struct drawing *d, struct wf_chan *ch)
{
	if (!begin_line(d, 0))
		return;
	put_named(d, "channel", ch->name);
	put(d, ": ");
	wf_fmt_u64(&d->f, wf_load_relaxed(&ch->count));
	put(d, " of ");
	wf_fmt_u64(&d->f, ch->capacity);
	put(d, wf_load_relaxed(&ch->is_closed) ? " items, closed" : " items");
	if (!try_lock(&ch->lock)) {
		put(d, ", in use just now\n");
		return;
	}
	put(d, "\n");
	draw_waiters(d, &ch->receivers, "receiver: ");
	draw_waiters(d, &ch->senders, "sender: ");
	wf_spin_unlock(&ch->lock);
}

size_t wf_picture_draw(struct wf_thread *self, const struct wf_picture *p, char *out)
{
	struct drawing d = { .p = p };
	uint64_t before;

	wf_fmt_init(&d.f, out, WF_PICTURE_BYTES);
	wf_self_enter(self);
	before = wf_wait_block(self);
	(void)sys_clock_read(1 /* CLOCK_MONOTONIC */, &d.now);
	(void)begin_line(&d, 0);
	put(&d, "thread ");
	wf_fmt_u64(&d.f, p->tid);
	put(&d, " ");
	put_name(&d, p->name);
	put(&d, "\n");
	if (p->sc && p->sc->is_ready) {
		draw_scopes(&d, p->sc);
		draw_groups(&d, p->sc, 1);
	}
	if (p->ch)
		draw_channel(&d, p->ch);
	wf_wait_unblock(self, before);
	wf_self_leave(self);
	return d.f.len;
}
