// SPDX-License-Identifier: Apache-2.0
/* Making pthreads; see make.h. */
#include "native/make.h"
#include "gate/attach.h"
#include "mem/slab.h"
#include "native/fresh.h"
#include "native/glibc.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define KNOWN_FLAGS (WEFT_THREAD_POOLED | WEFT_THREAD_BOUND)
#define PATIENCE_NS 1000000

static struct wf_slab shells = { .object_bytes = WF_ALIGN_UP(sizeof(struct wf_shell), 64) };

static uint32_t life; /* (c) of the process: how often its ancestors were forked */

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

static WF_FACE_CODE int create(struct wf_shell *s, size_t stack_bytes, void *(*body)(void *),
			       pthread_t *out_thread)
{
	const size_t least = WF_MAX((size_t)sysconf(_SC_THREAD_STACK_MIN), 4 * WF_PAGE);
	pthread_attr_t attr;
	int error;

	if (s->shell_class >= 0)
		stack_bytes = stack_classes[s->shell_class % WF_SHELL_STACKS];
	if (stack_bytes > SIZE_MAX - WF_PAGE)
		return -EINVAL;
	if (pthread_attr_init(&attr))
		return -EAGAIN;
	error = stack_bytes ? pthread_attr_setstacksize(
				      &attr, WF_MAX(least, WF_ALIGN_UP(stack_bytes, WF_PAGE)))
			    : 0;
	if (!error)
		error = pthread_create(out_thread, &attr, body, s);
	(void)pthread_attr_destroy(&attr);
	return -error;
}

WF_FACE_CODE int wf_make_shell(const struct wf_shell *like, size_t stack_bytes, bool is_reset,
			       void *(*body)(void *), pthread_t *out_thread)
{
	struct wf_shell *s;
	int ret;

	if (is_reset && wf_attach_why_not() == NULL)
		wf_fresh_learn();
	s = get(like);
	if (!s)
		return -EAGAIN;
	ret = create(s, stack_bytes, body, out_thread);
	if (ret < 0)
		put(s);
	return ret;
}

static WF_FACE_CODE int make_called(int shell_class, struct wf_shelf *shelf, void *(*body)(void *))
{
	const struct wf_shell like = { .shelf = shelf, .shell_class = shell_class };
	pthread_t thread;

	return wf_make_shell(&like, 0, shell_class < WF_SHELL_STACKS, body, &thread);
}

/*
 * A thread that is stuck begins when a shell of its class has done with its function; where there is none, the caller cannot go on
 * before there is one.
 */
static WF_FACE_CODE void serve(int shell_class, void *(*body)(void *))
{
	const struct timespec patience = { .tv_nsec = PATIENCE_NS };

	while (wf_shell_is_stuck(shell_class) && !wf_shell_is_anybody(shell_class) &&
	       make_called(shell_class, wf_shell_everywhere(shell_class), body) < 0)
		(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &patience, NULL);
}

WF_FACE_CODE int wf_make_called(int shell_class, struct wf_shelf *shelf, struct weft_thread *t,
				void *(*body)(void *))
{
	const int kept = errno;
	struct wf_thread *self;
	bool is_withdrawn;

	if (make_called(shell_class, shelf, body) == 0)
		return 0;
	self = wf_face_enter();
	is_withdrawn = wf_shell_not_made(self, shell_class, shelf, t);
	wf_face_leave(self);
	serve(shell_class, body);
	errno = kept;
	return is_withdrawn ? -EAGAIN : 0;
}

WF_FACE_CODE void wf_make_end(struct wf_shell *s, void *(*body)(void *))
{
	const int shell_class = s->shell_class;
	bool is_last = s->core && shell_class >= 0 && wf_make_is_ours(s) && wf_shell_end(s);

	put(s);
	if (is_last)
		serve(shell_class, body);
}
