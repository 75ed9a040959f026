// SPDX-License-Identifier: Apache-2.0
/* Making pthreads; see make.h. */
#include "native/make.h"
#include "gate/attach.h"
#include "mem/slab.h"
#include "native/fresh.h"
#include "native/glibc.h"
#include "native/maker.h"

#include <asm/unistd.h>
#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define KNOWN_FLAGS (WEFT_THREAD_POOLED | WEFT_THREAD_BOUND)
/* How often the maker tries. */
#define LEAST_NAP_NS WF_MS
#define MOST_NAP_NS (16 * WF_MS)
#define FIRST_MOMENT_NS (WF_MS / 16)
#define MOST_ROOM_BYTES (1ul << 30) /* no more is to be had from those that rest */
#define MAKER_STACK_BYTES (64ul << 10)

static struct wf_slab shells = { .object_bytes = WF_ALIGN_UP(sizeof(struct wf_shell), 64) };

static uint32_t life; /* (c) of the process: how often its ancestors were forked */

static pthread_mutex_t maker_lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t is_maker_there;     /* (a) written under that lock */
static void *(*maker_runs)(void *); /* what those that it makes run */

static const size_t stack_classes[WF_SHELL_STACKS] = { 0, 64 << 10, 256 << 10 };

WF_FACE_CODE int wf_make_read_opts(const struct weft_thread_opts *from,
				   struct weft_thread_opts *out)
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

WF_FACE_CODE int wf_make_class(const struct weft_thread_opts *o)
{
	for (int i = 0; i < WF_SHELL_STACKS; i++)
		if (o->stack_bytes <= stack_classes[i])
			return o->flags & WEFT_THREAD_POOLED ? WF_SHELL_STACKS + i : i;
	return -1;
}

WF_FACE_CODE void wf_make_forget(void)
{
	life++;
	is_maker_there = 0;
	maker_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	shells = (struct wf_slab){ .object_bytes = shells.object_bytes };
}

WF_FACE_CODE bool wf_make_is_ours(const struct wf_shell *s)
{
	return s->life == life;
}

static WF_FACE_CODE struct wf_shell *get(const struct wf_shell *like)
{
	struct wf_thread *self = wf_face_enter();
	struct wf_shell *s = wf_slab_get(&shells);

	wf_face_leave(self);
	if (s) {
		*s = *like;
		s->life = life;
		s->left_at = UINT64_MAX;
	}
	return s;
}

static WF_FACE_CODE void put(struct wf_shell *s)
{
	struct wf_thread *self = wf_face_enter();

	wf_slab_put(&shells, s);
	wf_face_leave(self);
}

static WF_FACE_CODE int create(size_t stack_bytes, void *(*body)(void *), void *arg,
			       pthread_t *out_thread)
{
	const size_t least = WF_MAX((size_t)sysconf(_SC_THREAD_STACK_MIN), 4 * WF_PAGE);
	size_t usual = 0;
	pthread_attr_t attr;
	int error;

	if (stack_bytes > SIZE_MAX - WF_PAGE)
		return -EINVAL;
	if (pthread_attr_init(&attr))
		return -EAGAIN;
	(void)pthread_attr_getstacksize(&attr, &usual);
	error = stack_bytes ? pthread_attr_setstacksize(
				      &attr, WF_MAX(least, WF_ALIGN_UP(stack_bytes, WF_PAGE)))
			    : 0;
	if (!error)
		error = pthread_create(out_thread, &attr, body, arg);
	/* The thread-local variables of all modules lie in the stack, too, and may be larger than that. */
	if (error == EINVAL && stack_bytes && stack_bytes < usual &&
	    !pthread_attr_setstacksize(&attr, usual))
		error = pthread_create(out_thread, &attr, body, arg);
	(void)pthread_attr_destroy(&attr);
	return -error;
}

/* Pthreads of other classes give way, for which they need a moment. */
static WF_FACE_CODE int create_in_their_room(size_t stack_bytes, void *(*body)(void *), void *arg,
					     pthread_t *out_thread)
{
	struct timespec nap = { .tv_nsec = FIRST_MOMENT_NS };
	const uint32_t word = 0;
	bool may_come;
	int ret;

	do {
		may_come = wf_shell_is_any_ending();
		/* No scope ends it, and it is no cancellation point. */
		(void)syscall(__NR_futex, &word, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 0, &nap, NULL, 0);
		ret = create(stack_bytes, body, arg, out_thread);
		nap.tv_nsec *= 2;
	} while (ret == -EAGAIN && may_come && nap.tv_nsec <= MOST_NAP_NS);
	return ret;
}

static WF_FACE_CODE bool end_others(int shell_class)
{
	struct wf_thread *self = wf_face_enter();
	bool ret = self && wf_shell_end_others(self, shell_class);

	wf_face_leave(self);
	return ret;
}

/* Behind its function all is put back as it was. */
static WF_FACE_CODE bool is_reset(const struct wf_shell *s)
{
	return s->given ? !(s->given->flags & WEFT_THREAD_POOLED)
			: s->shell_class < WF_SHELL_STACKS;
}

WF_FACE_CODE int wf_make_shell(const struct wf_shell *like, size_t stack_bytes,
			       enum wf_make_try how, void *(*body)(void *), pthread_t *out_thread)
{
	const int kept = errno;
	struct wf_shell *s;
	int ret;

	if (is_reset(like) && wf_attach_why_not() == NULL)
		wf_fresh_learn();
	s = get(like);
	if (!s)
		return -EAGAIN;
	if (s->shell_class >= 0)
		stack_bytes = stack_classes[s->shell_class % WF_SHELL_STACKS];
	ret = create(stack_bytes, body, s, out_thread);
	if (ret == -EAGAIN && stack_bytes <= MOST_ROOM_BYTES && end_others(s->shell_class) &&
	    how == WF_MAKE_WAITS)
		ret = create_in_their_room(stack_bytes, body, s, out_thread);
	if (ret < 0)
		put(s);
	errno = kept;
	return ret;
}

static WF_FACE_CODE int make_called(int shell_class, struct wf_shelf *shelf, enum wf_make_try how,
				    void *(*body)(void *))
{
	const struct wf_shell like = { .shelf = shelf, .shell_class = shell_class };
	pthread_t thread;

	return wf_make_shell(&like, 0, how, body, &thread);
}

WF_FACE_CODE int wf_make_called(int shell_class, struct wf_shelf *shelf, struct weft_thread *t,
				void *(*body)(void *))
{
	int ret = make_called(shell_class, shelf, t ? WF_MAKE_WAITS : WF_MAKE_ONCE, body);
	struct wf_thread *self = wf_face_enter();
	bool is_withdrawn = false;

	if (ret < 0)
		is_withdrawn = wf_shell_not_made(self, shell_class, shelf, t);
	else if (t)
		wf_shell_made(self, shelf);
	wf_face_leave(self);
	return is_withdrawn ? -EAGAIN : 0;
}

WF_FACE_CODE void wf_make_end(struct wf_shell *s)
{
	if (s->is_to_end && wf_make_is_ours(s))
		wf_shell_ended();
	put(s);
}

/* --- the maker --- */

/* False: there is no room for what is stuck. */
static WF_FACE_CODE bool serve(struct wf_thread *self)
{
	bool ret = true;

	for (int i = 0; i < WF_SHELL_CLASSES; i++) {
		struct wf_shelf *shelf;

		if (!wf_shell_call_to_stuck(self, i, &shelf) ||
		    !make_called(i, shelf, WF_MAKE_ONCE, maker_runs))
			continue;
		(void)wf_shell_not_made(self, i, shelf, NULL);
		ret = false;
	}
	return ret;
}

/* Main has ended, and the maker would keep the process. A spawner queues first, and looks for the maker then. */
static WF_FACE_CODE bool leave(struct wf_thread *self)
{
	bool ret;

	(void)pthread_mutex_lock(&maker_lock);
	wf_store_seq_cst(&is_maker_there, 0u);
	ret = !wf_shell_is_any_queued(self);
	if (!ret)
		wf_store_seq_cst(&is_maker_there, 1u);
	(void)pthread_mutex_unlock(&maker_lock);
	return ret;
}

static WF_FACE_CODE void *be_maker(void *arg)
{
	struct wf_thread *self = wf_face_enter();
	struct timespec nap = { .tv_nsec = LEAST_NAP_NS };
	bool goes_on;

	(void)pthread_detach(pthread_self());
	(void)pthread_setname_np(pthread_self(), "weft-maker");
	for (;;) {
		if (serve(self)) {
			nap.tv_nsec = LEAST_NAP_NS;
			goes_on = wf_maker_rest(self, wf_shell_is_stuck);
			wf_face_leave(self);
			if (goes_on)
				continue;
			if (leave(self))
				return arg;
		}
		(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL);
		nap.tv_nsec = WF_MIN(2 * nap.tv_nsec, MOST_NAP_NS);
	}
}

/* No signal is for it. */
static WF_FACE_CODE int make_maker(void)
{
	pthread_t thread;
	sigset_t all, kept;
	int ret;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &kept);
	ret = create(MAKER_STACK_BYTES, be_maker, NULL, &thread);
	(void)pthread_sigmask(SIG_SETMASK, &kept, NULL);
	return ret;
}

WF_FACE_CODE int wf_make_maker(void *(*body)(void *))
{
	const int kept = errno;
	int ret = 0;

	if (WF_LIKELY(wf_load_seq_cst(&is_maker_there)))
		return 0;
	(void)pthread_mutex_lock(&maker_lock);
	if (!wf_load_relaxed(&is_maker_there)) { /* leave() waits for the lock */
		maker_runs = body;
		ret = make_maker();
		if (ret == 0)
			wf_store_seq_cst(&is_maker_there, 1u);
	}
	(void)pthread_mutex_unlock(&maker_lock);
	errno = kept;
	return ret;
}
