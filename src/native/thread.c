// SPDX-License-Identifier: Apache-2.0
/* Threads; see weft/thread.h and native/thread.h. All of it is the program's code, on top of libc's threads. */
#include "native/fresh.h"
#include "native/glibc.h"
#include "native/handle.h"
#include "native/join.h"
#include "native/joiner.h"
#include "native/make.h"
#include "native/maker.h"
#include "native/misuse.h"
#include "native/own.h"
#include "native/picture.h"
#include "native/scope.h"
#include "native/turn.h"
#include "native/watched.h"
#include "weft/weft.h"

#include <asm/unistd.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static __thread struct weft_thread *current __attribute__((tls_model("initial-exec")));

static WF_FACE_CODE void *run(void *arg);

/* --- handles --- */

static WF_FACE_CODE void copy_name(char out[16], const char *name)
{
	size_t len = strnlen(name, 15);

	memcpy(out, name, len);
	out[len] = '\0';
}

static WF_FACE_CODE void read_name(pthread_t thread, char out[16])
{
	if (pthread_getname_np(thread, out, 16))
		out[0] = '\0';
}

static WF_FACE_CODE struct weft_thread *look_up(weft_thread *handle, const char *call)
{
	struct weft_thread *t = wf_handle_look_up(handle);
	char own[16];

	if (t)
		return t;
	read_name(pthread_self(), own);
	wf_misuse("%s() by thread '%s': the handle %p %s", call, own, (void *)handle,
		  (uintptr_t)handle >= WF_USES ? "is gone: its thread was joined" : "is none");
}

/* --- sleeping --- */

/* No scope ends it. 0, or -ETIMEDOUT, -EINTR, -EAGAIN. Errno is kept. */
static WF_FACE_CODE int sleep_on(uint32_t *word, uint32_t expected, weft_time until)
{
	const struct timespec ts = { until / WF_SEC, until % WF_SEC };
	const int kept = errno;
	int ret = (int)syscall(__NR_futex, word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, expected,
			       until == WEFT_NEVER ? NULL : &ts, NULL, FUTEX_BITSET_MATCH_ANY);

	if (ret < 0)
		ret = -errno;
	errno = kept;
	return ret;
}

static WF_FACE_CODE void wake(uint32_t *word)
{
	const int kept = errno;

	(void)syscall(__NR_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, INT_MAX, NULL, NULL, 0);
	errno = kept;
}

/* --- the thread --- */

static WF_FACE_CODE void name_self(const char *name)
{
	const int kept = errno;
	char shown[16] = "";

	copy_name(shown, name);
	(void)pthread_setname_np(pthread_self(), shown);
	errno = kept;
}

/* Settings that may be refused. */
static WF_FACE_CODE int begin(const struct weft_thread *t)
{
	const int kept = errno;
	int error = 0;

	if (t->nice && setpriority(PRIO_PROCESS, 0, t->nice) < 0)
		error = errno;
	if (!error && t->flags & WEFT_THREAD_BOUND) {
		struct wf_thread *self = wf_face_enter();

		error = -wf_own_bind(self);
		wf_face_leave(self);
	}
	errno = kept;
	return error;
}

/* See wf_joiner_tell(); a canceller that was interrupted comes back. */
static WF_FACE_CODE void close_root(struct weft_thread *t)
{
	wf_store_seq_cst(&t->root, NULL);
	while (WF_UNLIKELY(wf_load_seq_cst(&t->nr_cancelling)))
		(void)sched_yield();
}

static WF_FACE_CODE void give_object(struct weft_thread *t)
{
	struct wf_thread *self = wf_face_enter();

	wf_handle_put_by(self, t);
	wf_face_leave(self);
}

/* Until libc says that the thread is gone, the object is there. */
static WF_FACE_CODE void publish_end(struct weft_thread *t)
{
	wf_store_release(&t->state, WF_USE_ENDED);
	wake(&t->state);
}

/* For good: the rest is libc's. A joiner of a thread that is weft's has the end from the runtime: the stack does not wait for it. */
static WF_FACE_CODE void end(void *arg)
{
	struct wf_thread *self = wf_face_enter();
	struct weft_thread *t = current; /* NULL: its function has returned, and that is known */

	if (t) {
		close_root(t);
		wf_scopes_leave_all(t->name);
	}
	wf_make_end(arg);
	if (self || !t || t->is_detached)
		(void)pthread_detach(pthread_self());
	if (!t || t->is_detached) {
		current = NULL;
		if (t)
			give_object(t);
	} else if (self) {
		wf_joiner_tell_when_gone(self, t);
	} else {
		publish_end(t);
	}
}

static WF_FACE_CODE const char *scope_name(const struct weft_thread *t)
{
	return t->name[0] ? t->name : NULL;
}

/* Scopes as in a new thread. The canceller stores is_cancelled first, and looks for root then: one of us sees the other. */
static WF_FACE_CODE void show_root(const struct wf_shell *s, struct weft_thread *t,
				   weft_scope *root)
{
	struct wf_thread *self = wf_face_enter();

	if (self)
		wf_shell_begin(self, s, t, root);
	else
		wf_store_seq_cst(&t->root, root);
	if (WF_UNLIKELY(wf_load_seq_cst(&t->is_cancelled)))
		weft_scope_cancel(root);
	wf_face_leave(self);
}

static WF_FACE_CODE void run_one(struct weft_thread *t)
{
	wf_store_release(&t->thread, pthread_self());
	wf_arch_set_fp_modes(t->fp_modes);
	if (t->name[0])
		name_self(t->name);
	t->result = -ECANCELED;
	t->result = t->fn(t->arg);
	wf_scopes_leave_all(t->name);
}

/* The next thread; NULL: the pthread ends, and its thread with it if that is still current. */
static WF_FACE_CODE struct weft_thread *next(struct wf_shell *s, bool *out_wants)
{
	struct wf_thread *self = wf_face_enter();
	struct weft_thread *t = current;
	enum wf_shell_next how;

	if (!self || s->shell_class < 0 || !wf_make_is_ours(s))
		return NULL;
	if (t && !(t->flags & WEFT_THREAD_POOLED) && !wf_fresh_reset())
		return NULL;
	while ((how = wf_shell_next(self, s, &t, out_wants)) == WF_NEXT_AFTER_SIGNAL) {
		current = NULL;
		wf_face_leave(self);
	}
	if (how == WF_NEXT_REFUSED)
		return NULL;
	current = t;
	wf_face_leave(self);
	return t;
}

/* False: it is refused what it is to have, and the spawner joins what is left. */
static WF_FACE_CODE bool is_begun(const struct weft_thread *t)
{
	uint32_t *started = t->started;
	int error;

	if (!started)
		return true;
	error = begin(t);
	wf_store_release(started, 1 + (uint32_t)error);
	wake(started);
	return !error;
}

/* All of a shell: one thread after another. */
static WF_FACE_CODE void *run(void *arg)
{
	struct wf_thread *self = wf_face_enter();
	struct wf_shell *s = arg;
	bool is_first = true, wants = false;
	struct weft_thread *t = s->given;
	weft_scope root;

	s->core = self;
	if (self)
		t = wf_shell_arrive(self, s, &wants);
	else
		wf_store_release(&t->has_bell, 1u);
	current = t;
	wf_face_leave(self);
	if (t && !is_begun(t)) {
		current = NULL;
		wf_make_end(s);
		return NULL;
	}
	pthread_cleanup_push(end, s);
	while (t || (t = next(s, &wants))) {
		if (wants)
			(void)wf_make_called(s->shell_class, s->shelf, NULL, run);
		wants = false;
		/* Not by the spawner: the stack of a thread that has rested for long is in no cache. */
		if (is_first)
			weft_scope_open(&root, WEFT_NEVER, scope_name(t));
		else
			wf_scopes_renew(&root, scope_name(t));
		wf_scopes_enter(&root);
		is_first = false;
		show_root(s, t, &root);
		run_one(t);
		t = NULL;
	}
	pthread_cleanup_pop(1);
	return NULL;
}

/* --- spawn --- */

/* 0, or why the thread was refused what it is to have; it has ended then. */
static WF_FACE_CODE int wait_for_start(uint32_t *word, pthread_t thread)
{
	uint32_t started;

	while ((started = wf_load_acquire(word)) == 0)
		if (sleep_on(word, 0, WEFT_NEVER) != 0)
			(void)sched_yield();
	if (started > 1)
		wf_join_surely(thread);
	return 1 - (int)started;
}

/* A use of t begins. */
static WF_FACE_CODE weft_thread *set_up(struct weft_thread *t, weft_fn *fn, void *arg,
					const struct weft_thread_opts *o, bool is_detached)
{
	t->fn = fn;
	t->arg = arg;
	t->is_detached = is_detached;
	t->has_sleeper = false;
	t->is_cancelled = 0;
	t->has_bell = 0;
	t->is_joined = 0;
	t->joins = NULL;
	t->thread = 0;
	t->started = NULL;
	t->nice = o->nice;
	t->flags = o->flags;
	wf_arch_get_fp_modes(t->fp_modes);
	t->name[0] = '\0';
	if (o->name)
		copy_name(t->name, o->name);
	wf_store_relaxed(&t->root, NULL); /* until the thread shows it */
	wf_store_relaxed(&t->uses, t->uses + 1);
	wf_store_release(&t->state, WF_USE_RUNNING);
	return wf_handle_of(t);
}

static uint32_t has_spawned; /* (a) */

WF_FACE_CODE void wf_thread_forget_others(void)
{
	if (!wf_load_relaxed(&has_spawned))
		return;
	if (current) {
		/* Those that were at it are not here. */
		current->nr_cancelling = 0;
		current->lock = (struct wf_spin){ 0 };
		current->joins = NULL;
		current->has_sleeper = false;
	}
	wf_handle_forget();
	wf_maker_forget();
	wf_shell_forget();
	wf_make_forget();
}

/* In a pthread of its own, which the caller makes, and which has all from the caller. */
static WF_FACE_CODE int spawn_alone(struct weft_thread *t, const struct weft_thread_opts *o,
				    int shell_class)
{
	const struct wf_shell like = { .given = t,
				       .shell_class = o->flags & WEFT_THREAD_BOUND ? -1
										   : shell_class };
	const bool may_be_refused = o->nice || o->flags & WEFT_THREAD_BOUND;
	uint32_t started = 0;
	pthread_t thread;
	int ret;

	t->started = may_be_refused ? &started : NULL;
	ret = wf_make_shell(&like, o->stack_bytes, WF_MAKE_WAITS, run, &thread);
	return ret == 0 && may_be_refused ? wait_for_start(&started, thread) : ret;
}

static WF_FACE_CODE int spawn(struct wf_thread *self, struct weft_thread *t,
			      const struct weft_thread_opts *o)
{
	enum wf_shell_spawn how = WF_SPAWN_ALONE;
	int shell_class = wf_make_class(o);
	const uint32_t uses = t->uses;
	struct wf_shelf *shelf;

	/* A setting that may be refused is asked of a new thread. */
	if (self && shell_class >= 0 && !o->nice && !(o->flags & WEFT_THREAD_BOUND))
		how = wf_shell_spawn(self, shell_class, t, &shelf);
	wf_face_leave(self);
	if (WF_LIKELY(how == WF_SPAWN_BEGINS))
		return 0;
	if (how == WF_SPAWN_REFUSED)
		return -EAGAIN;
	if (how == WF_SPAWN_QUEUED && wf_make_maker(run) < 0)
		return wf_shell_withdraw(self, shell_class, shelf, t, uses) ? -EAGAIN : 0;
	if (how == WF_SPAWN_QUEUED)
		return 0;
	if (how == WF_SPAWN_MAKE)
		return wf_make_called(shell_class, shelf, t, run);
	return spawn_alone(t, o, shell_class);
}

WF_FACE int weft_thread_spawn(weft_fn *fn, void *arg, const struct weft_thread_opts *opts,
			      weft_thread **out)
{
	struct weft_thread_opts o;
	struct weft_thread *t;
	struct wf_thread *self;
	weft_thread *handle;
	int ret;

	ret = fn ? wf_make_read_opts(opts, &o) : -EINVAL;
	if (ret < 0)
		return ret;
	if (WF_UNLIKELY(!wf_load_relaxed(&has_spawned)))
		wf_store_release(&has_spawned, 1u);
	self = wf_face_enter();
	t = wf_handle_get(self);
	if (!t) {
		wf_face_leave(self);
		return -EAGAIN;
	}
	handle = set_up(t, fn, arg, &o, !out);
	ret = spawn(self, t, &o);
	if (ret < 0)
		give_object(t);
	else if (out)
		*out = handle;
	return ret;
}

/* --- join --- */

/* Of a thread that is not weft's, and in native mode: on the state itself. */
static WF_FACE_CODE int wait_for_state(struct wf_thread *self, struct weft_thread *t,
				       struct wf_joiner *join, weft_time until)
{
	int ret = wf_joiner_await(self, t, join, until);

	wf_face_leave(self);
	return self || ret ? ret : wf_scopes_futex_wait(&t->state, WF_USE_RUNNING, until);
}

/* -EBUSY: another thread is at it. */
static WF_FACE_CODE int wait_for_end(struct wf_thread *self, struct weft_thread *t,
				     struct wf_joiner *join, weft_time until)
{
	uint32_t state;
	int ret = 0;

	until = WF_MAX(until, WEFT_NOW);
	while ((state = wf_load_acquire(&t->state)) == WF_USE_RUNNING) {
		if (ret == -ETIMEDOUT || ret == -ECANCELED || ret == -EBUSY)
			return ret;
		ret = wait_for_state(self, t, join, until);
	}
	if (!join->is_claimed) {
		if (wf_exchange(&t->is_joined, 1u))
			return -EBUSY;
		join->is_claimed = true;
		t->joiner = join->joiner;
	}
	return state == WF_USE_ENDED ? wf_join(self, wf_load_relaxed(&t->thread), until) : 0;
}

static ptrdiff_t
	current_from; /* (p) before the program begins: where current is, from the thread's scopes on */

/* Of a thread of libweft's, which does not end meanwhile. */
static const char *name_of(const struct wf_scopes *sc)
{
	const struct weft_thread *t = *(struct weft_thread **)((uintptr_t)sc +
							       (uintptr_t)current_from);

	return t ? t->name : NULL;
}

__attribute__((constructor)) static void tell_picture(void)
{
	current_from = (char *)&current - (char *)wf_scopes_peek();
	wf_picture_name = name_of;
}

WF_NORETURN static WF_FACE_CODE void refuse_join(const struct weft_thread *t)
{
	char own[16], other[16];

	read_name(pthread_self(), own);
	if (t == current)
		wf_misuse("weft_thread_join() by thread '%s': it joins itself", own);
	read_name(t->joiner, other);
	wf_misuse("weft_thread_join() by thread '%s': thread '%s' is joined by thread '%s' already",
		  own, t->name, other);
}

WF_FACE int weft_thread_join(weft_thread *handle, int *out_result, weft_time until)
{
	struct weft_thread *t = look_up(handle, "weft_thread_join");
	struct wf_joiner join = { .joiner = pthread_self() };
	struct wf_thread *self = wf_face_enter();
	int ret;

	if (t == current)
		refuse_join(t);
	ret = wait_for_end(self, t, &join, until);
	if (ret == -EBUSY)
		refuse_join(t);
	if (ret < 0) {
		if (join.is_claimed)
			wf_store_release(&t->is_joined, 0u);
		return ret;
	}
	if (out_result)
		*out_result = t->result;
	wf_handle_put_by(self, t);
	wf_face_leave(self);
	return 0;
}

/* --- the rest --- */

/* The scope lies on the thread's stack; see close_root(). */
WF_FACE void weft_thread_cancel(weft_thread *handle)
{
	struct weft_thread *t = look_up(handle, "weft_thread_cancel");
	weft_scope *root;

	wf_store_seq_cst(&t->is_cancelled, 1u);
	(void)wf_fetch_add(&t->nr_cancelling, 1u);
	root = wf_load_seq_cst(&t->root);
	if (root)
		weft_scope_cancel(root);
	(void)wf_fetch_sub(&t->nr_cancelling, 1u);
	if (wf_load_seq_cst(&t->has_bell))
		wake(&t->is_cancelled);
}

uint32_t *wf_thread_bell(const struct wf_scope *top)
{
	struct weft_thread *t = current;

	return t && top && (const void *)t->root == top ? &t->is_cancelled : NULL;
}

WF_FACE weft_thread *weft_thread_self(void)
{
	return current ? wf_handle_of(current) : NULL;
}

WF_FACE void weft_thread_set_name(const char *name)
{
	if (name)
		name_self(name);
}

WF_FACE pthread_t weft_thread_pthread(weft_thread *handle)
{
	const struct weft_thread *t = look_up(handle, "weft_thread_pthread");
	pthread_t thread;

	while (!(thread = wf_load_acquire(&t->thread)))
		weft_thread_yield();
	return thread;
}

WF_FACE void weft_thread_yield(void)
{
	struct wf_thread *self = wf_face_enter();

	if (self)
		wf_turn_give(self);
	else
		(void)sched_yield();
	wf_face_leave(self);
}
