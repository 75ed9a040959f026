// SPDX-License-Identifier: Apache-2.0
/* Threads; see weft/thread.h and native/thread.h. All of it is the program's code, on top of libc's threads. */
#include "native/thread.h"
#include "mem/slab.h"
#include "native/glibc.h"
#include "native/misuse.h"
#include "native/own.h"
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

static __thread struct weft_thread *current __attribute__((tls_model("initial-exec")));

_Static_assert(WF_USES == 64, "what slabs align to");

/* --- handles --- */

static WF_FACE_CODE struct weft_thread *take_object(void)
{
	struct wf_thread *self = wf_face_enter();
	struct weft_thread *t = wf_slab_get(&threads);

	wf_face_leave(self);
	if (t)
		memset(&t->fn, 0, sizeof(*t) - offsetof(struct weft_thread, fn));
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

static WF_FACE_CODE void read_own_name(char out[16])
{
	if (pthread_getname_np(pthread_self(), out, 16))
		out[0] = '\0';
}

static WF_FACE_CODE struct weft_thread *look_up(weft_thread *handle, const char *call)
{
	struct weft_thread *t = (struct weft_thread *)((uintptr_t)handle & -(uintptr_t)WF_USES);
	char own[16];

	if (t && wf_load_acquire(&t->state) != WF_USE_FREE && handle_of(t) == handle)
		return t;
	read_own_name(own);
	wf_misuse("%s() by thread '%s': the handle %p %s", call, own, (void *)handle,
		  t ? "is gone: its thread was joined" : "is none");
}

/* --- sleeping --- */

/* 0, or -ETIMEDOUT, -ECANCELED: a scope's, too; -EINTR, -EAGAIN. Errno is kept. */
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

/* What may be refused. */
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

static WF_FACE_CODE void end(void *arg)
{
	struct weft_thread *t = arg;

	if (t->is_detached) {
		current = NULL;
		give_object(t);
		return;
	}
	/* The joiner returns when libc says that the thread is gone: until then the object is there. */
	wf_store_release(&t->state, WF_USE_ENDED);
	wake(&t->state);
}

static WF_FACE_CODE void *run(void *arg)
{
	struct weft_thread *t = arg;

	current = t;
	wf_store_relaxed(&t->thread, pthread_self());
	if (t->name[0])
		name_self(t->name);
	if (t->started) {
		uint32_t *started = t->started;
		int error = begin(t);

		wf_store_release(started, 1 + (uint32_t)error);
		wake(started);
		if (error)
			return NULL; /* the spawner joins what is left */
	}
	t->result = -ECANCELED;
	pthread_cleanup_push(end, t);
	t->result = t->fn(t->arg);
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
	const size_t least = WF_MAX((size_t)PTHREAD_STACK_MIN, 4 * WF_PAGE);
	pthread_attr_t attr;
	int error;

	if (stack_bytes > SIZE_MAX - WF_PAGE)
		return -EINVAL;
	if (pthread_attr_init(&attr))
		return -EAGAIN;
	error = stack_bytes ? pthread_attr_setstacksize(
				      &attr, WF_MAX(least, WF_ALIGN_UP(stack_bytes, WF_PAGE)))
			    : 0;
	/* One that may be refused is joined then. */
	if (!error && t->is_detached && !t->started)
		error = pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (!error)
		error = pthread_create(out_thread, &attr, run, t);
	(void)pthread_attr_destroy(&attr);
	return -error;
}

/* 0, or why the thread was refused what it is to have; it has ended then. */
static WF_FACE_CODE int wait_for_start(uint32_t *word, pthread_t thread, bool is_detached)
{
	uint32_t started;

	/* Where a scope of the spawner's is over each sleep ends at once, and the thread wants a processor. */
	while ((started = wf_load_acquire(word)) == 0)
		if (sleep_on(word, 0, WEFT_NEVER) != 0)
			(void)sched_yield();
	if (started == 1 && is_detached)
		(void)pthread_detach(thread);
	if (started > 1)
		(void)pthread_join(thread, NULL);
	return 1 - (int)started;
}

WF_FACE int weft_thread_spawn(weft_fn *fn, void *arg, const struct weft_thread_opts *opts,
			      weft_thread **out)
{
	struct weft_thread_opts o;
	struct weft_thread *t;
	bool may_be_refused;
	uint32_t started = 0;
	pthread_t thread;
	int ret;

	ret = fn ? read_opts(opts, &o) : -EINVAL;
	if (ret < 0)
		return ret;
	t = take_object();
	if (!t)
		return -EAGAIN;
	may_be_refused = o.nice || o.flags & WEFT_THREAD_BOUND;
	t->uses++;
	t->fn = fn;
	t->arg = arg;
	t->is_detached = !out;
	t->started = may_be_refused ? &started : NULL;
	t->nice = o.nice;
	t->flags = o.flags;
	if (o.name)
		copy_name(t->name, o.name);
	wf_store_release(&t->state, WF_USE_RUNNING);
	ret = create(t, o.stack_bytes, &thread);
	if (ret == 0 && may_be_refused)
		ret = wait_for_start(&started, thread, !out);
	if (ret < 0) {
		give_object(t);
		return ret;
	}
	if (out) {
		wf_store_relaxed(&t->thread, thread);
		*out = handle_of(t);
	}
	return 0;
}

/* --- join --- */

/* What libc does at the end of a thread may take its time, too: destructors are the program's. */
static WF_FACE_CODE int wait_for_libc(pthread_t thread, weft_time until)
{
	const struct timespec ts = { until / WF_SEC, until % WF_SEC };
	int error, state;

	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	error = until == WEFT_NEVER ? pthread_join(thread, NULL)
				    : pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &ts);
	(void)pthread_setcancelstate(state, NULL);
	return -error;
}

static WF_FACE_CODE int wait_for_end(struct weft_thread *t, weft_time until)
{
	int ret = 0;

	until = WF_MAX(until, WEFT_NOW);
	while (wf_load_acquire(&t->state) == WF_USE_RUNNING && ret != -ETIMEDOUT &&
	       ret != -ECANCELED)
		ret = sleep_on(&t->state, WF_USE_RUNNING, until);
	if (wf_load_acquire(&t->state) == WF_USE_RUNNING)
		return ret;
	return wait_for_libc(wf_load_relaxed(&t->thread), until);
}

WF_FACE int weft_thread_join(weft_thread *handle, int *out_result, weft_time until)
{
	struct weft_thread *t = look_up(handle, "weft_thread_join");
	char own[16];
	int ret;

	read_own_name(own);
	if (t == current)
		wf_misuse("weft_thread_join() by thread '%s': it joins itself", own);
	if (wf_exchange(&t->is_joined, 1u))
		wf_misuse(
			"weft_thread_join() by thread '%s': thread '%s' is joined by thread '%s' already",
			own, t->name, t->joiner);
	memcpy(t->joiner, own, sizeof(own));
	ret = wait_for_end(t, until);
	if (ret < 0) {
		wf_store_release(&t->is_joined, 0u);
		return ret;
	}
	if (out_result)
		*out_result = t->result;
	give_object(t);
	return 0;
}

/* --- the rest --- */

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
	(void)sched_yield();
}
