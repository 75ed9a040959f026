// SPDX-License-Identifier: Apache-2.0
/* The threads that take tasks over; see task.c. */
#include "linux/abi.h"
#include "native/crew.h"
#include "native/glibc.h"
#include "native/scope.h"
#include "native/watched.h"
#include "sched/group.h"
#include "sched/idle.h"
#include "sched/runtime.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define MAX_CREW 256u   /* those that wait in joins included */
#define IDLE_SECONDS 1  /* after which one ends */
#define SEARCH_ROUNDS 8 /* before it sleeps: some microseconds, less than to be woken takes */
#define PAUSES_PER_ROUND 40
#define WAIT_ROUNDS 40 /* before a join sleeps: what a small task takes */

struct wf_crew wf_crew;

static struct {
	pthread_mutex_t lock;
	pthread_cond_t work;
	uint32_t nr;         /* (q) threads; a hint without the lock */
	uint32_t nr_asleep;  /* (q) of these, on work; the same */
	uint32_t nr_called;  /* (q) of those, who will find out */
	uint32_t last;       /* (a) for names */
	uint32_t nr_waiting; /* (a) of nr: in a join */
	bool has_barrier;    /* (p) by wf_crew_begin() */
} crew;

static void *run_crew(void *arg);

WF_FACE_CODE static uint32_t width(void)
{
	cpu_set_t set;
	uint32_t nr = wf_load_acquire(&wf_rt.nr_workers);

	if (!nr)
		nr = lx_config.runtime.nr_workers; /* asked for */
	if (nr)
		return nr;
	if (sched_getaffinity(0, sizeof(set), &set) == 0)
		return (uint32_t)CPU_COUNT(&set);
	return (uint32_t)WF_MAX(sysconf(_SC_NPROCESSORS_ONLN), 1l);
}

WF_FACE_CODE static void init(void)
{
	pthread_condattr_t attr;

	(void)pthread_mutex_init(&crew.lock, NULL);
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&crew.work, &attr);
	(void)pthread_condattr_destroy(&attr);
	crew.nr = crew.nr_asleep = crew.nr_called = crew.nr_waiting = 0;
	wf_store_release(&wf_crew.calls, wf_crew.width > 1);
}

WF_FACE_CODE void wf_crew_forget(void)
{
	if (!wf_crew.width)
		return;
	wf_taskdeque_forget_others();
	init();
}

WF_FACE_CODE void wf_crew_begin(void)
{
	wf_crew.width = width();
	crew.has_barrier = syscall(__NR_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0,
				   0) == 0;
	init();
}

/* Signals are for the program's own threads. */
WF_FACE_CODE static bool make_thread(void)
{
	pthread_attr_t attr;
	sigset_t all, mask;
	pthread_t t;
	bool is_made;

	if (pthread_attr_init(&attr) != 0)
		return false;
	(void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &mask);
	is_made = pthread_create(&t, &attr, run_crew, NULL) == 0;
	(void)pthread_sigmask(SIG_SETMASK, &mask, NULL);
	(void)pthread_attr_destroy(&attr);
	return is_made;
}

/* Of an attached program: some of the crew are awake, and no worker is idle, for which one more would be called. */
WF_FACE_CODE static bool is_enough(void)
{
	return wf_face_enter() && wf_load_relaxed(&crew.nr) > wf_load_relaxed(&crew.nr_asleep) &&
	       !wf_idle_is_anybody() && !wf_load_relaxed(&wf_rt.nr_searching);
}

WF_NOINLINE WF_FACE_CODE void wf_crew_call(void)
{
	const int kept = errno;
	bool makes = false;

	if (is_enough() || !wf_exchange(&wf_crew.calls, 0u))
		return;
	(void)pthread_mutex_lock(&crew.lock);
	if (crew.nr_asleep > crew.nr_called) {
		crew.nr_called++;
		(void)pthread_cond_signal(&crew.work);
	} else if (crew.nr - wf_load_relaxed(&crew.nr_waiting) < wf_crew.width &&
		   crew.nr < MAX_CREW) {
		makes = true;
		crew.nr++;
	}
	(void)pthread_mutex_unlock(&crew.lock);
	if (makes && !make_thread()) {
		/* None can be made now: those that are there go on, and who forks does without. */
		(void)pthread_mutex_lock(&crew.lock);
		crew.nr--;
		(void)pthread_mutex_unlock(&crew.lock);
	}
	errno = kept;
}

/* --- what one of them does --- */

WF_FACE_CODE static weft_task *steal(struct wf_taskdeque **last)
{
	struct wf_taskdeque *d;
	weft_task *t;
	bool has_lost;

	if (*last && wf_deque_steal(&(*last)->deque, &t) == WF_DEQUE_SOME)
		return t;
	do {
		has_lost = false;
		for (d = wf_load_acquire(&wf_taskdeque_all); d; d = d->next) {
			enum wf_deque_haul haul = WF_DEQUE_EMPTY;

			if (wf_deque_has_any(&d->deque))
				haul = wf_deque_steal(&d->deque, &t);
			if (haul == WF_DEQUE_SOME) {
				*last = d;
				return t;
			}
			has_lost |= haul == WF_DEQUE_LOST;
		}
	} while (has_lost);
	return NULL;
}

WF_FACE_CODE static bool is_any_forked(void)
{
	for (struct wf_taskdeque *d = wf_load_acquire(&wf_taskdeque_all); d; d = d->next)
		if (wf_deque_has_any(&d->deque))
			return true;
	return false;
}

WF_FACE_CODE static weft_task *search(struct wf_taskdeque **last)
{
	for (int round = 0; round < SEARCH_ROUNDS; round++) {
		weft_task *t = steal(last);

		if (t)
			return t;
		for (int i = 0; i < PAUSES_PER_ROUND; i++)
			wf_cpu_pause();
	}
	return NULL;
}

/* Under the lock. False: nobody has called for long. */
WF_FACE_CODE static bool sleep_until_called(void)
{
	struct timespec until;

	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += IDLE_SECONDS;
	while (!crew.nr_called)
		if (pthread_cond_timedwait(&crew.work, &crew.lock, &until) == ETIMEDOUT &&
		    !crew.nr_called)
			return false;
	crew.nr_called--;
	return true;
}

/* A filter of the program's may refuse it. Then a task may wait for its join, beside a crew that sleeps. */
WF_FACE_CODE static void pass_barrier(void)
{
	if (crew.has_barrier)
		(void)syscall(__NR_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
}

/* False: it is to end. */
WF_FACE_CODE static bool rest(void)
{
	bool goes_on = true;

	(void)pthread_mutex_lock(&crew.lock);
	crew.nr_asleep++;
	if (wf_deque_may_sleep(&wf_crew.calls, pass_barrier, is_any_forked))
		goes_on = sleep_until_called();
	crew.nr_asleep--;
	if (!goes_on)
		crew.nr--;
	(void)pthread_mutex_unlock(&crew.lock);
	return goes_on;
}

WF_FACE_CODE static void wake(struct wf_joiner *j)
{
	const int kept = errno;

	/* Once it is set, j may be gone: a wake-up of an address that is no futex, or another one, does nothing. */
	wf_store_release(&j->is_done, 1u);
	(void)syscall(__NR_futex, &j->is_done, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, NULL, NULL, 0);
	errno = kept;
}

/* As a thread that a group has made there, for as long as it takes. */
WF_FACE_CODE static void call_in_scope(weft_task *t)
{
	struct wf_scopes *sc = wf_scopes_self();
	struct wf_thread *self = wf_face_enter();

	wf_group_help(self, sc, wf_task_of(t)->of->scopes, wf_task_of(t)->scope);
	wf_face_leave(self);
	t->fn(t->arg);
	self = wf_face_enter();
	wf_group_help_no_more(self, sc);
	wf_face_leave(self);
}

WF_FACE_CODE static void run(weft_task *t)
{
	struct wf_joiner *j;

	wf_watched_acquire(t);
	wf_taskdeque_mine->shown.runs_of = wf_load_relaxed(&wf_task_of(t)->of->shown.tid);
	if (wf_task_of(t)->scope)
		call_in_scope(t);
	else
		t->fn(t->arg);
	wf_taskdeque_mine->shown.runs_of = 0;
	wf_watched_release(t);
	j = wf_join_finish(&wf_task_of(t)->word);
	if (j)
		wake(j);
}

WF_FACE_CODE static void *run_crew(void *arg)
{
	struct wf_taskdeque *last = NULL;
	char name[16];

	(void)arg;
	snprintf(name, sizeof(name), "crew-%u", wf_fetch_add(&crew.last, 1u) + 1);
	(void)pthread_setname_np(pthread_self(), name);
	if (!wf_taskdeque_make()) {
		(void)pthread_mutex_lock(&crew.lock);
		crew.nr--;
		(void)pthread_mutex_unlock(&crew.lock);
		return NULL;
	}
	wf_taskdeque_mine->is_crew = true;
	do {
		weft_task *t;

		while ((t = search(&last))) {
			/* Somebody else may be called, by whoever forks next; or at once, if there is more. */
			wf_store_release(&wf_crew.calls, 1u);
			if (wf_deque_has_any(&last->deque))
				wf_crew_call();
			run(t);
		}
	} while (rest());
	return NULL;
}

/* --- joins --- */

WF_FACE_CODE void wf_crew_wait(uint64_t *word, bool is_crew)
{
	struct wf_joiner j = { 0 };
	const int kept = errno;

	for (int i = 0; i < WAIT_ROUNDS; i++) {
		if (wf_load_acquire(word) == WF_JOIN_DONE)
			return;
		wf_cpu_pause();
	}
	if (!wf_join_begin(word, &j))
		return;
	/* This thread runs nothing meanwhile; one of the crew may. */
	if (is_crew)
		(void)wf_fetch_add(&crew.nr_waiting, 1u);
	wf_store_release(&wf_crew.calls, 1u);
	if (is_any_forked())
		wf_crew_call();
	while (!wf_load_acquire(&j.is_done))
		(void)syscall(__NR_futex, &j.is_done, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 0, NULL,
			      NULL, 0);
	if (is_crew)
		(void)wf_fetch_sub(&crew.nr_waiting, 1u);
	errno = kept;
}
