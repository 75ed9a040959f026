// SPDX-License-Identifier: Apache-2.0
/*
 * Tasks: calls that a crew of threads takes over when workers have nothing to do; see weft/task.h, and deque.h for who calls one.
 *
 * A crew thread is a thread as any other, attached or native: it steals the oldest task of some thread and calls it to its end.
 * When it finds none it sleeps, and when nobody had work for it for a second it ends: an idle program has no crew, and one
 * whose main thread has ended with pthread_exit() can end. A crew thread that waits in a join does not count, so that
 * as many as there are workers can run. In native mode it is the same, with threads of the kernel: whoever watches the
 * program (a sanitizer, valgrind) sees what it does when it is attached.
 *
 * Invariant (nobody is called too often, or never): crew.calls is set while somebody may be called and nobody is on the way.
 * The one that clears it has called one or found nobody to call; the one that was called sets it when it has a task, or before
 * it sleeps. Before it sleeps it looks at all deques, with a barrier on all processors between the two: so either the one
 * who forks sees crew.calls, or the look finds what was forked. The forking side pays no fence for that.
 */
#include "native/crew.h"
#include "native/misuse.h"
#include "native/take.h"
#include "native/watched.h"

#include <pthread.h>

#define mine wf_taskdeque_mine

static pthread_once_t once = PTHREAD_ONCE_INIT;

WF_NOINLINE WF_FACE_CODE static struct wf_taskdeque *make_mine(void)
{
	(void)pthread_once(&once, wf_crew_begin);
	return wf_taskdeque_make();
}

/* --- fork and join --- */

WF_INLINE void call(weft_task *t)
{
	wf_store_relaxed(&wf_task_of(t)->word, WF_JOIN_JOINED);
	t->fn(t->arg);
}

WF_FACE void weft_task_fork(weft_task *t, void (*fn)(void *), void *arg)
{
	struct wf_taskdeque *d = mine;
	struct wf_task *own = wf_task_of(t);

	if (WF_UNLIKELY(!d))
		d = make_mine();
	own->fn = fn;
	own->arg = arg;
	own->word = WF_JOIN_FORKED;
	own->of = d;
	wf_watched_release(t);
	if (WF_LIKELY(d)) {
		own->scope = d->scopes->top;
		/* A worker that takes the task over follows the chain: no scope of it may be one that was left, and is overwritten. */
		if (WF_UNLIKELY(own->scope != d->scopes->ground))
			own->scope = wf_scopes_prune(d->scopes, (uintptr_t)__builtin_dwarf_cfa(),
						     NULL);
		own->place = wf_deque_bottom(&d->deque);
		if (WF_LIKELY(wf_deque_push(&d->deque, t)) ||
		    (wf_taskdeque_grow(d) && wf_deque_push(&d->deque, t))) {
			if (WF_UNLIKELY(wf_load_relaxed(&wf_crew.calls)))
				wf_crew_call();
			return;
		}
	}
	fn(arg);
	own->word = WF_JOIN_DONE;
}

/* The youngest, which is no longer in the deque, is not t: x, or NULL. */
WF_NOINLINE WF_FACE_CODE static void join_other(struct wf_taskdeque *d, weft_task *x, weft_task *t)
{
	const uint64_t word = wf_load_acquire(&wf_task_of(t)->word);
	bool is_mine = false;

	if (x)
		wf_take_back(&d->deque, x);
	if (word == WF_JOIN_JOINED)
		wf_misuse("a task is joined that was joined before");
	if (word != WF_JOIN_DONE) {
		if (word != WF_JOIN_FORKED)
			wf_misuse(
				"a task is joined that was not forked, or that another thread joins");
		if (wf_task_of(t)->of != d)
			wf_misuse("a task is joined by a thread that has not forked it");
		is_mine = wf_take_task(&d->deque, t);
	}
	if (d && wf_take_must_call(&d->deque, &wf_crew.calls))
		wf_crew_call();
	if (is_mine) {
		call(t);
		return;
	}
	if (word != WF_JOIN_DONE)
		wf_crew_wait(&wf_task_of(t)->word, d->is_crew);
	wf_watched_acquire(t);
	wf_store_relaxed(&wf_task_of(t)->word, WF_JOIN_JOINED);
}

WF_FACE void weft_task_join(weft_task *t)
{
	struct wf_taskdeque *d = mine;
	weft_task *x = d ? wf_deque_pop(&d->deque) : NULL;

	if (WF_LIKELY(x == t))
		call(t);
	else
		join_other(d, x, t);
}

/* --- ranges --- */

#define PARTS_PER_WORKER 8 /* so that those who were late find some left */

struct range {
	size_t begin, end, grain;
	void (*fn)(size_t from, size_t to, void *arg);
	void *arg;
};

WF_FACE_CODE static void run_range(void *arg)
{
	struct range left = *(const struct range *)arg, right = left;
	weft_task t;

	if (left.end - left.begin <= left.grain) {
		left.fn(left.begin, left.end, left.arg);
		return;
	}
	left.end = right.begin = left.begin + (left.end - left.begin) / 2;
	weft_task_fork(&t, run_range, &right);
	run_range(&left);
	weft_task_join(&t);
}

WF_FACE void weft_task_for(size_t begin, size_t end, size_t grain,
			   void (*fn)(size_t from, size_t to, void *arg), void *arg)
{
	struct range all = { begin, end, grain, fn, arg };

	if (begin >= end)
		return;
	if (!mine)
		(void)make_mine();
	if (!grain)
		all.grain = (end - begin) / (PARTS_PER_WORKER * (size_t)wf_crew.width) + 1;
	run_range(&all);
}
