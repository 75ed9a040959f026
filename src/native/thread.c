// SPDX-License-Identifier: Apache-2.0
/* Threads; see weft/thread.h and native/thread.h. All of it is the program's code, on top of libc's threads. */
#include "gate/attach.h"
#include "mem/slab.h"
#include "native/fresh.h"
#include "native/glibc.h"
#include "native/join.h"
#include "native/misuse.h"
#include "native/own.h"
#include "native/picture.h"
#include "native/scope.h"
#include "native/shell.h"
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

#define KNOWN_FLAGS (WEFT_THREAD_POOLED | WEFT_THREAD_BOUND)

static struct wf_slab threads = { .object_bytes = WF_ALIGN_UP(sizeof(struct weft_thread), 64) };

static uint32_t life; /* (c) of the process: how often its ancestors were forked */

static __thread struct weft_thread *current __attribute__((tls_model("initial-exec")));

_Static_assert(WF_USES == 64, "what slabs align to");

/* --- handles --- */

static WF_FACE_CODE struct weft_thread *take_object(int shell_class)
{
	struct wf_thread *self = wf_face_enter();
	struct weft_thread *t = wf_slab_get(&threads);

	wf_face_leave(self);
	if (t) {
		memset(&t->fn, 0, sizeof(*t) - offsetof(struct weft_thread, fn));
		t->shell_class = shell_class;
		t->life = life;
	}
	return t;
}

static WF_FACE_CODE void give_object(struct weft_thread *t)
{
	struct wf_thread *self = wf_face_enter();

	wf_store_release(&t->state, WF_USE_FREE);
	wf_slab_put(&threads, t);
	wf_face_leave(self);
}

static WF_FACE_CODE weft_thread *handle_of(struct weft_thread *t)
{
	return (weft_thread *)((uintptr_t)t | t->uses % WF_USES);
}

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
	struct weft_thread *t = (struct weft_thread *)((uintptr_t)handle & -(uintptr_t)WF_USES);
	char own[16];

	if (t && wf_load_acquire(&t->state) != WF_USE_FREE && handle_of(t) == handle)
		return t;
	read_name(pthread_self(), own);
	wf_misuse("%s() by thread '%s': the handle %p %s", call, own, (void *)handle,
		  t ? "is gone: its thread was joined" : "is none");
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

static WF_FACE_CODE void publish(struct weft_thread *t, enum wf_thread_use state)
{
	struct wf_thread *self = wf_face_enter();

	if (!self)
		wf_store_release(&t->state, state);
	if (!self || wf_shell_publish(self, t, state))
		wake(&t->state);
	wf_face_leave(self);
}

/*
 * Its stack is about to be used for something else. A canceller counts itself before it reads root: it finds none, or is waited
 * for; one that was interrupted in between comes back.
 */
static WF_FACE_CODE void close_root(struct weft_thread *t)
{
	wf_store_seq_cst(&t->root, NULL);
	while (WF_UNLIKELY(wf_load_seq_cst(&t->nr_cancelling)))
		(void)sched_yield();
}

/* For good: the rest is libc's. */
static WF_FACE_CODE void end(void *arg)
{
	struct weft_thread *t = arg;

	close_root(t); /* by pthread_exit(); else it is closed */
	wf_scopes_leave_all(t->name);
	if (t->is_detached || t->state == WF_USE_FREE) {
		current = NULL;
		(void)pthread_detach(t->thread);
		give_object(t);
		return;
	}
	/* The joiner returns when libc says that the thread is gone: until then the object is there. */
	publish(t, WF_USE_ENDED);
}

/* The canceller of the thread stores that first, and looks for the scope then: one of us sees the other. */
static WF_FACE_CODE void show_root(struct weft_thread *t, weft_scope *root)
{
	wf_store_seq_cst(&t->root, root);
	if (WF_UNLIKELY(wf_load_seq_cst(&t->is_cancelled)))
		weft_scope_cancel(root);
}

static WF_FACE_CODE const char *scope_name(const struct weft_thread *t)
{
	return t->name[0] ? t->name : NULL;
}

/* The function has returned. True: there is another one. */
static WF_FACE_CODE bool goes_on(struct weft_thread *t, weft_scope *root)
{
	struct wf_thread *self = wf_face_enter();
	enum wf_shell_rest rest;

	if (!self || t->shell_class < 0 || t->life != life)
		return false;
	if (!(t->flags & WEFT_THREAD_POOLED) && !wf_fresh_reset())
		return false;
	rest = wf_shell_rest(self, t);
	wf_face_leave(self);
	if (rest != WF_REST_RUNS)
		return false;
	wf_arch_set_fp_modes(t->fp_modes);
	/* Not by the spawner: the stack of a thread that has rested for long is in no cache. */
	wf_scopes_renew(root, scope_name(t));
	wf_scopes_enter(root);
	show_root(t, root);
	return true;
}

static WF_FACE_CODE void *run(void *arg)
{
	struct weft_thread *t = arg;
	weft_scope root;

	current = t;
	wf_store_release(&t->core, wf_face_enter());
	wf_store_relaxed(&t->thread, pthread_self());
	if (t->started) {
		uint32_t *started = t->started;
		int error = begin(t);

		wf_store_release(started, 1 + (uint32_t)error);
		wake(started);
		if (error)
			return NULL; /* the spawner joins what is left */
	}
	pthread_cleanup_push(end, t);
	weft_scope_open(&root, WEFT_NEVER, scope_name(t));
	show_root(t, &root);
	do {
		if (t->name[0])
			name_self(t->name);
		t->result = -ECANCELED;
		t->result = t->fn(t->arg);
		wf_scopes_leave_all(t->name);
	} while (goes_on(t, &root));
	pthread_cleanup_pop(1);
	return NULL;
}

/* --- spawn --- */

static WF_FACE_CODE int read_opts(const struct weft_thread_opts *from, struct weft_thread_opts *out)
{
	const char *tail = (const char *)from;

	memset(out, 0, sizeof(*out));
	if (!from)
		return 0;
	if (from->size < sizeof(from->size))
		return -EINVAL;
	/* A program newer than the library: what it asks for must be none of what we do not know. */
	for (size_t i = sizeof(*out); i < from->size; i++)
		if (tail[i])
			return -EINVAL;
	memcpy(out, from, WF_MIN(from->size, sizeof(*out)));
	return out->flags & ~KNOWN_FLAGS || out->nice < -20 || out->nice > 19 ? -EINVAL : 0;
}

static WF_FACE_CODE int create(struct weft_thread *t, size_t stack_bytes, pthread_t *out_thread)
{
	const size_t least = WF_MAX((size_t)sysconf(_SC_THREAD_STACK_MIN), 4 * WF_PAGE);
	pthread_attr_t attr;
	int error;

	if (stack_bytes > SIZE_MAX - WF_PAGE)
		return -EINVAL;
	if (pthread_attr_init(&attr))
		return -EAGAIN;
	error = stack_bytes ? pthread_attr_setstacksize(
				      &attr, WF_MAX(least, WF_ALIGN_UP(stack_bytes, WF_PAGE)))
			    : 0;
	if (!error)
		error = pthread_create(out_thread, &attr, run, t);
	(void)pthread_attr_destroy(&attr);
	return -error;
}

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

static const size_t stack_classes[WF_SHELL_STACKS] = { 0, 64 << 10, 256 << 10 };

/* -1: none. The stack becomes as large as those of its class. */
static WF_FACE_CODE int find_class(struct weft_thread_opts *o)
{
	for (int i = 0; i < WF_SHELL_STACKS; i++) {
		if (o->stack_bytes > stack_classes[i])
			continue;
		o->stack_bytes = stack_classes[i];
		return o->flags & WEFT_THREAD_POOLED ? WF_SHELL_STACKS + i : i;
	}
	return -1;
}

static WF_FACE_CODE void forget(void)
{
	life++;
	if (current)
		current->nr_cancelling = 0; /* whoever was at it is not here */
	threads = (struct wf_slab){ .object_bytes = threads.object_bytes };
	wf_shell_forget();
}

static WF_FACE_CODE void watch_forks(void)
{
	wf_glibc_in_child(forget);
}

/* A use of t begins. */
static WF_FACE_CODE weft_thread *set_up(struct weft_thread *t, weft_fn *fn, void *arg,
					const struct weft_thread_opts *o, bool is_detached)
{
	t->fn = fn;
	t->arg = arg;
	t->is_cancelled = 0;
	t->is_joined = 0;
	t->is_detached = is_detached;
	t->is_waiting = false;
	t->nice = o->nice;
	t->flags = o->flags;
	t->name[0] = '\0';
	if (o->name)
		copy_name(t->name, o->name);
	wf_store_relaxed(&t->root, NULL); /* until the thread shows it anew */
	wf_store_relaxed(&t->uses, t->uses + 1);
	wf_store_release(&t->state, WF_USE_RUNNING);
	return handle_of(t);
}

static WF_FACE_CODE int spawn_new(weft_fn *fn, void *arg, const struct weft_thread_opts *o,
				  int shell_class, weft_thread **out)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	bool may_be_refused = o->nice || o->flags & WEFT_THREAD_BOUND;
	struct weft_thread *t;
	weft_thread *handle;
	uint32_t started = 0;
	pthread_t thread;
	int ret;

	(void)pthread_once(&once, watch_forks);
	if (!(o->flags & WEFT_THREAD_POOLED) && wf_attach_why_not() == NULL)
		wf_fresh_learn();
	t = take_object(o->flags & WEFT_THREAD_BOUND ? -1 : shell_class);
	if (!t)
		return -EAGAIN;
	t->started = may_be_refused ? &started : NULL;
	handle = set_up(t, fn, arg, o, !out);
	ret = create(t, o->stack_bytes, &thread);
	if (ret == 0 && may_be_refused)
		ret = wait_for_start(&started, thread);
	if (ret < 0) {
		give_object(t);
		return ret;
	}
	if (out) {
		wf_store_relaxed(&t->thread, thread);
		*out = handle;
	}
	return 0;
}

WF_FACE int weft_thread_spawn(weft_fn *fn, void *arg, const struct weft_thread_opts *opts,
			      weft_thread **out)
{
	struct weft_thread *t = NULL;
	struct weft_thread_opts o;
	struct wf_thread *self;
	weft_thread *handle;
	int shell_class;
	int ret;

	ret = fn ? read_opts(opts, &o) : -EINVAL;
	if (ret < 0)
		return ret;
	shell_class = find_class(&o);
	self = wf_face_enter();
	/* A setting that may be refused is asked of a new thread. */
	if (self && shell_class >= 0 && !o.nice && !(o.flags & WEFT_THREAD_BOUND))
		t = wf_shell_take(self, shell_class);
	if (!t)
		return spawn_new(fn, arg, &o, shell_class, out);
	handle = set_up(t, fn, arg, &o, !out);
	wf_arch_get_fp_modes(t->fp_modes);
	wf_shell_start(self, t);
	wf_face_leave(self);
	if (out)
		*out = handle;
	return 0;
}

/* --- join --- */

/* Of a thread that is not weft's, and in native mode: on the state itself. */
static WF_FACE_CODE int wait_for_state(struct wf_thread *self, struct weft_thread *t,
				       struct wf_shell_join *join, weft_time until)
{
	int ret = wf_shell_await(self, t, join, until);

	wf_face_leave(self);
	return self || ret ? ret : wf_scopes_futex_wait(&t->state, WF_USE_RUNNING, until);
}

/* -EBUSY: another thread is at it. */
static WF_FACE_CODE int wait_for_end(struct wf_thread *self, struct weft_thread *t,
				     struct wf_shell_join *join, weft_time until)
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

static WF_FACE_CODE void give_back(struct wf_thread *self, struct weft_thread *t)
{
	if (t->state == WF_USE_DONE)
		wf_shell_give(self, t);
	else
		give_object(t);
	wf_face_leave(self);
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
	struct wf_shell_join join = { .joiner = pthread_self() };
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
	give_back(self, t);
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
	if (!wf_load_acquire(&t->core))
		wake(&t->is_cancelled);
}

uint32_t *wf_thread_bell(const struct wf_scope *top)
{
	struct weft_thread *t = current;

	return t && top && (const void *)t->root == top ? &t->is_cancelled : NULL;
}

WF_FACE weft_thread *weft_thread_self(void)
{
	return current ? handle_of(current) : NULL;
}

WF_FACE void weft_thread_set_name(const char *name)
{
	if (name)
		name_self(name);
}

WF_FACE pthread_t weft_thread_pthread(weft_thread *handle)
{
	return wf_load_relaxed(&look_up(handle, "weft_thread_pthread")->thread);
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
