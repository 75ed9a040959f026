// SPDX-License-Identifier: Apache-2.0
/* The deques of tasks; see taskdeque.h. */
#include "native/taskdeque.h"
#include "native/misuse.h"
#include "native/scope.h"
#include "linux/abi.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define FIRST_SLOTS 1024

struct wf_taskdeque *wf_taskdeque_all;
__thread struct wf_taskdeque *wf_taskdeque_mine __attribute__((tls_model("initial-exec")));
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t at_thread_end;
static bool has_key; /* (p) by once */

WF_FACE_CODE static struct wf_ring *make_ring(int64_t slots)
{
	struct wf_ring *r = malloc(sizeof(*r) + (size_t)slots * sizeof(r->slots[0]));

	if (r)
		*r = (struct wf_ring){ .mask = slots - 1 };
	return r;
}

WF_FACE_CODE static void leave(void *arg)
{
	struct wf_taskdeque *d = arg;

	if (wf_deque_has_any(&d->deque))
		wf_misuse("a thread ends that has not joined a task which it has forked");
	wf_taskdeque_mine = NULL;
	d->is_crew = false;
	d->shown.runs_of = 0; /* pthread_exit() in a task */
	wf_store_relaxed(&d->shown.tid, 0);
	wf_store_release(&d->is_used, false);
}

WF_FACE_CODE static void begin(void)
{
	has_key = pthread_key_create(&at_thread_end, leave) == 0;
}

/* That of a thread that has ended, or a new one. */
WF_FACE_CODE static struct wf_taskdeque *take(void)
{
	struct wf_taskdeque *d;

	for (d = wf_load_acquire(&wf_taskdeque_all); d; d = d->next) {
		bool is_used = wf_load_relaxed(&d->is_used);

		if (!is_used && wf_cas(&d->is_used, &is_used, true))
			return d;
	}
	d = aligned_alloc(WF_CACHE_LINE, WF_ALIGN_UP(sizeof(*d), (size_t)WF_CACHE_LINE));
	if (!d)
		return NULL;
	*d = (struct wf_taskdeque){ .is_used = true };
	d->deque.ring = make_ring(FIRST_SLOTS);
	if (!d->deque.ring) {
		free(d);
		return NULL;
	}
	d->next = wf_load_relaxed(&wf_taskdeque_all);
	while (!wf_cas(&wf_taskdeque_all, &d->next, d))
		;
	d->shown.top = &d->deque.top;
	d->shown.bottom = &d->deque.bottom;
	d->shown.next = wf_load_relaxed(&wf_tasks_all);
	while (!wf_cas(&wf_tasks_all, &d->shown.next, &d->shown))
		;
	return d;
}

WF_FACE_CODE struct wf_taskdeque *wf_taskdeque_make(void)
{
	const int kept = errno;
	struct wf_taskdeque *d;

	(void)pthread_once(&once, begin);
	d = has_key ? take() : NULL;
	if (d && pthread_setspecific(at_thread_end, d) != 0) {
		wf_store_release(&d->is_used, false);
		d = NULL;
	}
	if (d) {
		d->scopes = wf_scopes_peek();
		wf_store_relaxed(&d->shown.tid, (int32_t)syscall(__NR_gettid));
	}
	wf_taskdeque_mine = d;
	errno = kept;
	return d;
}

WF_FACE_CODE bool wf_taskdeque_grow(struct wf_taskdeque *d)
{
	const int kept = errno;
	struct wf_ring *r = make_ring(2 * (d->deque.ring->mask + 1));

	errno = kept;
	if (r)
		wf_deque_grow(&d->deque, r);
	return r;
}

WF_FACE_CODE void wf_taskdeque_forget_others(void)
{
	for (struct wf_taskdeque *d = wf_taskdeque_all; d; d = d->next) {
		d->shown.tid = d->shown.runs_of = 0;
		if (d != wf_taskdeque_mine) {
			d->deque.bottom = d->deque.known_top = d->deque.top;
			d->is_used = d->is_crew = false;
		}
	}
	if (wf_taskdeque_mine)
		wf_taskdeque_mine->shown.tid = (int32_t)syscall(__NR_gettid);
}
