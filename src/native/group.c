// SPDX-License-Identifier: Apache-2.0
/*
 * Groups of threads, as the program calls them; see weft/group.h and sched/group.h.
 *
 * A thread that has ended is joined by the next one that ends, the last by the waiter: so what libc does at a thread's end is
 * over when weft_group_wait() returns, and no more than one ended thread is kept at any time.
 */
#include "sched/group.h"
#include "mem/slab.h"
#include "native/glibc.h"
#include "native/misuse.h"
#include "native/scope.h"
#include "native/watched.h"
#include "weft/group.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

_Static_assert((int)WEFT_ALL == WF_GROUP_ALL && (int)WEFT_ANY == WF_GROUP_ANY &&
		       (int)WEFT_EACH == WF_GROUP_EACH,
	       "one is the other");

struct group {
	struct wf_group core; /* first: the slab's link lies in it */
	weft_thread *ended;   /* (a) a thread that nobody has joined yet, or NULL */
};

/* The words of a weft_group: the group, and whether it was cancelled before it was opened. Both (a). */
static inline WF_FACE_CODE struct group *group_of(const weft_group *user)
{
	return (struct group *)wf_load_seq_cst(&user->opaque[0]);
}

static inline WF_FACE_CODE void set_group(weft_group *user, struct group *g)
{
	wf_store_seq_cst(&user->opaque[0], (uint64_t)(uintptr_t)g);
}

static inline WF_FACE_CODE uint64_t *is_cancelled_before(weft_group *user)
{
	return &user->opaque[1];
}

struct child {
	struct group *g;
	weft_fn *fn;
	void *arg;
	unsigned policy;
	const char *name;
};

static struct wf_slab groups = { .object_bytes = WF_ALIGN_UP(sizeof(struct group), 64) };

static pthread_once_t has_key = PTHREAD_ONCE_INIT;
static pthread_key_t
	key; /* of threads that have opened a group: asks at their end whether it was waited for */

static WF_FACE_CODE void read_own_name(char out[16])
{
	if (pthread_getname_np(pthread_self(), out, 16))
		out[0] = '\0';
}

static WF_FACE_CODE void at_end(void *sc)
{
	char name[16];

	(void)sc;
	read_own_name(name);
	wf_scopes_leave_all(name);
}

static WF_FACE_CODE void make_key(void)
{
	(void)pthread_key_create(&key, at_end);
}

static WF_FACE_CODE int open_group(struct wf_scopes *sc, weft_group *user)
{
	struct wf_thread *self = wf_face_enter();
	struct group *g = wf_slab_get(&groups);

	if (g)
		wf_group_open(self, sc, &g->core, user->deadline ? user->deadline : WEFT_NEVER,
			      user->name, user);
	wf_face_leave(self);
	if (!g)
		return -ENOMEM;
	g->ended = NULL;
	set_group(user, g);
	/* weft's own ask by themselves, and a key would keep them from being used again. */
	if (!weft_thread_self()) {
		(void)pthread_once(&has_key, make_key);
		(void)pthread_setspecific(key, sc);
	}
	/* Behind the store: weft_group_cancel() says it there, or finds the group. */
	if (wf_exchange_seq_cst(is_cancelled_before(user), 0ul))
		weft_group_cancel(user);
	return 0;
}

static WF_FACE_CODE void close_group(weft_group *user)
{
	struct group *g = group_of(user);
	struct wf_thread *self = wf_face_enter();

	set_group(user, NULL);
	wf_group_close(self, &g->core);
	wf_slab_put(&groups, g);
	wf_face_leave(self);
	if (!weft_thread_self() && wf_list_is_empty(&wf_scopes_self()->groups))
		(void)pthread_setspecific(key, NULL);
}

/* Threads whose function has ended, for good. */
static WF_FACE_CODE void join_ended(struct group *g, weft_thread *self)
{
	weft_thread *before = wf_exchange(&g->ended, self);
	weft_scope shield;

	if (!before)
		return;
	/* No scope ends that, and none counts it for one of the waits that it ends once. */
	wf_scopes_shield(&shield, "join");
	while (weft_thread_join(before, NULL, WEFT_NEVER) < 0)
		;
	(void)weft_scope_close(&shield);
}

static WF_FACE_CODE void end(struct child *c, int result)
{
	struct wf_scopes *sc = wf_scopes_self();
	struct group *g = c->g;
	struct wf_thread *self = wf_face_enter();
	int state;

	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	wf_scopes_leave_all(c->name ? c->name : "");
	if (wf_group_report(self, &g->core, result, c->policy))
		wf_group_cancel(self, &g->core, g->core.user);
	wf_face_leave(self);
	join_ended(g, weft_thread_self());
	wf_group_leave(self, sc);
	wf_face_leave(self);
}

static WF_FACE_CODE void end_early(void *child)
{
	end(child, -ECANCELED);
}

static WF_FACE_CODE int run(void *arg)
{
	struct child c = *(struct child *)arg;
	struct wf_scopes *sc = wf_scopes_self();
	struct wf_thread *self = wf_face_enter();
	int result;

	free(arg);
	wf_group_join(self, sc, &c.g->core);
	wf_face_leave(self);
	pthread_cleanup_push(end_early, &c);
	result = c.fn(c.arg);
	pthread_cleanup_pop(0);
	end(&c, result);
	return 0;
}

/* The threads of a group are called as it is, unless something else is said. */
static WF_FACE_CODE struct weft_thread_opts opts_of(const weft_group *user)
{
	struct weft_thread_opts o = { 0 };

	if (user->opts)
		memcpy(&o, user->opts, WF_MIN(user->opts->size, sizeof(o)));
	o.size = sizeof(o);
	if (!o.name)
		o.name = user->name;
	return o;
}

/* Counted in already. */
static WF_FACE_CODE int start(weft_group *user, struct group *g, weft_fn *fn, void *arg)
{
	struct weft_thread_opts o = opts_of(user);
	struct child *c = malloc(sizeof(*c));
	weft_thread *t;
	int error = -ENOMEM;

	if (!c)
		return error;
	*c = (struct child){ .g = g, .fn = fn, .arg = arg, .policy = user->policy, .name = o.name };
	error = weft_thread_spawn(run, c,
				  user->opts && user->opts->size > sizeof(o) ? user->opts : &o, &t);
	if (error)
		free(c);
	return error;
}

/* 0: the caller is counted in. */
static WF_FACE_CODE int find_room(weft_group *user, struct group *g, struct wf_scopes *sc)
{
	for (;;) {
		struct wf_thread *self = wf_face_enter();
		const unsigned limit = user->limit;
		int error = wf_group_error(self, sc, &g->core);

		if (!error)
			error = wf_group_check(self, sc, WF_SCOPE_BY_GROUP);
		if (!error && wf_group_count_in(self, &g->core, limit)) {
			wf_face_leave(self);
			return 0;
		}
		if (!error)
			error = wf_group_wait(self, sc, &g->core, limit - 1, g->core.scope.until,
					      true);
		wf_face_leave(self);
		if (error && error != -EINTR)
			return error;
		if (wf_watched_by_threads)
			wf_watched_run_handlers();
	}
}

WF_FACE int weft_group_go(weft_group *user, weft_fn *fn, void *arg)
{
	const int kept = errno;
	struct wf_scopes *sc = wf_scopes_self();
	bool is_first = !group_of(user);
	struct wf_thread *self;
	struct group *g;
	int error;

	if (is_first)
		(void)wf_scopes_prune(sc, (uintptr_t)__builtin_dwarf_cfa(), NULL);
	error = is_first ? open_group(sc, user) : 0;
	if (error)
		return error;
	g = group_of(user);
	wf_store_relaxed(&g->core.limit, user->limit);
	wf_store_relaxed(&g->core.policy, user->policy);
	error = find_room(user, g, sc);
	if (!error) {
		error = start(user, g, fn, arg);
		self = wf_face_enter();
		if (error)
			(void)wf_group_count_out(self, &g->core);
		wf_face_leave(self);
	}
	/* As if it had never been: nobody need wait for it. */
	if (error && is_first)
		close_group(user);
	errno = kept;
	return error;
}

static WF_FACE_CODE int wait_for_all(struct group *g, struct wf_scopes *sc, const weft_group *user)
{
	int ended = 0;

	for (;;) {
		struct wf_thread *self = wf_face_enter();
		int ret = wf_group_wait(self, sc, &g->core, 0, WEFT_NEVER, !ended);

		if (ret && ret != -EINTR) {
			ended = ret;
			/* Where the same scope has ended them, they are to say what it was. */
			if (!wf_group_error(self, sc, &g->core))
				wf_group_cancel(self, &g->core, user);
		}
		wf_face_leave(self);
		if (!ret)
			return ended;
		if (wf_watched_by_threads)
			wf_watched_run_handlers();
	}
}

WF_FACE int weft_group_wait(weft_group *user)
{
	const int kept = errno;
	struct wf_scopes *sc = wf_scopes_self();
	struct group *g = group_of(user);
	int ended, result;

	if (!g) {
		wf_store_relaxed(is_cancelled_before(user), 0ul);
		return 0;
	}
	if (g->core.scope.owner != sc) {
		char name[16];

		read_own_name(name);
		wf_misuse("thread '%s' waits for group '%s', which another thread has opened", name,
			  user->name ? user->name : "");
	}
	ended = wait_for_all(g, sc, user);
	join_ended(g, NULL);
	result = g->core.error;
	if (user->policy == WEFT_ANY && g->core.has_success)
		result = 0;
	else if (!result)
		result = ended;
	close_group(user);
	errno = kept;
	return result;
}

WF_FACE void weft_group_cancel(weft_group *user)
{
	struct wf_thread *self = wf_face_enter();
	struct group *g = group_of(user);

	if (!g) {
		(void)wf_exchange_seq_cst(is_cancelled_before(user), 1ul);
		g = group_of(user);
	}
	if (g)
		wf_group_cancel(self, &g->core, user);
	wf_face_leave(self);
}
