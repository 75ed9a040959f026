// SPDX-License-Identifier: Apache-2.0
/*
 * The watchdog; see watchdog.h.
 *
 * It looks at what the monitor has at hand, without a lock: who was picked, who waits for a worker, in which state threads
 * are. Two things are certain enough to be told, or to end a test for:
 *
 *   - threads are ready, and for all of the time no worker has begun anything;
 *   - every thread waits for a futex of this process, without a time limit, and no handler of a signal is installed: nobody is
 *     left who could wake one of them.
 *
 * Circles in a part of the threads are not looked for: that takes the owner of a mutex, which is libc's and the program's
 * memory. `weft watch`, `weft top` and `weft dump` find those from outside.
 *
 * Invariant: an idle program is looked at once more, after the time has passed, and then slept for.
 */
#include "linux/watchdog.h"
#include "base/fmt.h"
#include "linux/sigdefault.h"

#include <fcntl.h>
#include <signal.h>
#include <time.h>

#define LOOKS 8                /* in the time that is waited */
#define AGAIN_NS (60 * WF_SEC) /* between two reports */
#define LATE_NS (100 * WF_MS)  /* a look that is so late: nobody ran, we neither */

#define CHANCE_NS (100 * WF_MS)

/* The door's own. */
static struct {
	uint64_t progress;
	int64_t since, next, told_at, cpu_used;
	bool was_told, has_told;
} dog;

static uint64_t mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
	return hash ^ hash >> 29;
}

/* Another number: some worker has begun a turn, a slice or a call, or went to sleep. */
static uint64_t progress(void)
{
	uint64_t hash = 1;

	for (uint32_t i = 0; i < wf_rt.nr_workers; i++) {
		const struct wf_worker *w = &wf_rt.workers[i];

		hash = mix(hash, wf_load_hint(&w->picks));
		hash = mix(hash, wf_load_relaxed(&w->slice_seq));
		hash = mix(hash, wf_load_relaxed(&w->calls));
	}
	return hash;
}

static bool is_queued(const struct wf_worker *w)
{
	return wf_runq_nr(&w->rq) || wf_load_relaxed(&w->inbox);
}

static void show(struct lx_stall *s, const struct wf_thread *t, int64_t call)
{
	if (s->nr_shown == LX_STALL_SHOWN)
		return;
	s->shown[s->nr_shown].t = (const struct lx_thread *)t;
	s->shown[s->nr_shown++].call = call;
}

/* Threads are ready, and those that are on the workers are shown. */
static bool is_stuck(struct lx_stall *s)
{
	bool is_any = false;

	for (uint32_t i = 0; i < wf_rt.nr_workers; i++)
		is_any |= is_queued(&wf_rt.workers[i]);
	if (!is_any)
		return false;
	for (uint32_t i = 0; i < wf_thread_slots(); i++)
		s->nr += wf_state_of(wf_load_acquire(&wf_thread_slot(i)->state)) == WF_READY;
	for (uint32_t i = 0; i < wf_rt.nr_workers; i++) {
		const struct wf_kthread *k = wf_load_acquire(&wf_rt.workers[i].kthread);
		const struct wf_thread *t = k ? wf_load_acquire(&k->cur) : NULL;

		if (t)
			show(s, t,
			     wf_load_relaxed(&k->insys) ? (int64_t)wf_load_relaxed(&k->call_nr)
							: -1);
	}
	return s->nr > 0;
}

/* The first two real-time signals are libc's own. */
static bool has_handlers(void)
{
	for (int sig = 1; sig <= (int)WF_NR_SIGNALS; sig++) {
		const void *handler = wf_load_relaxed(&lx.action[sig].handler);

		if (sig >= LX_FIRST_REALTIME && sig < LX_FIRST_REALTIME + 2)
			continue;
		if (handler != (void *)SIG_DFL && handler != (void *)SIG_IGN)
			return true;
	}
	return false;
}

/* A ring waits for shared futexes, which another process may wake. */
static bool has_ring(void)
{
	uint32_t nr = wf_load_acquire(&wf_rt.nr_kthreads);

	for (uint32_t i = 0; i < nr; i++) {
		const struct wf_kthread *k = wf_load_acquire(&wf_rt.kthreads[i]);

		if (k && k->is_helper && !wf_load_relaxed(&k->is_poller))
			return true;
	}
	return false;
}

/* Plain reads of words that their owners write: nobody has run for all of the time. */
static bool is_circle(struct lx_stall *s)
{
	if (has_handlers() || has_ring())
		return false;
	for (uint32_t i = 0; i < wf_thread_slots(); i++) {
		const struct wf_thread *t = wf_thread_slot(i);
		enum wf_state state = wf_state_of(wf_load_acquire(&t->state));

		if (state == WF_FREE || state == WF_DEAD)
			continue;
		if (state != WF_PARKED || wf_load_relaxed(&t->wait_kind) != WF_WAIT_FUTEX ||
		    wf_load_relaxed(&t->timer.armed))
			return false;
		s->nr++;
		show(s, t, -1);
	}
	s->is_circle = s->nr > 0;
	return s->is_circle;
}

/* Of the whole process; 0: not known. */
static int64_t cpu_used(void)
{
	struct __kernel_timespec ts = { 0 };

	(void)sys2(__NR_clock_gettime, CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (int64_t)ts.tv_sec * WF_SEC + ts.tv_nsec;
}

/* Does it want a processor, as far as the kernel knows? */
static bool is_runnable(int tid)
{
	char text[128], *at = text;
	struct wf_fmt f;
	long fd, n;

	wf_fmt_init(&f, text, sizeof(text));
	wf_fmt_str(&f, "/proc/self/task/");
	wf_fmt_i64(&f, tid);
	wf_fmt_str(&f, "/stat");
	fd = sys4(__NR_openat, AT_FDCWD, text, O_RDONLY | O_CLOEXEC, 0);
	n = fd < 0 ? 0 : sys3(__NR_read, fd, text, sizeof(text) - 1);
	if (fd >= 0)
		(void)sys_close((int)fd);
	text[n > 0 ? n : 0] = '\0';
	/* Behind the name, which ends with the last parenthesis; what stands further on has none. */
	for (char *c = text; *c; c++)
		at = *c == ')' ? c : at;
	return at[0] && at[1] && at[2] == 'R';
}

/*
 * Workers that want to run and were let by nobody: the machine is overloaded, and the program can do nothing for it. One that
 * had the processor for CHANCE_NS has had its chance.
 */
static bool is_starved(int64_t for_ns)
{
	int64_t nr = 0;

	if (wf_load_acquire(&wf_rt.is_filtered))
		return false;
	for (uint32_t i = 0; i < wf_rt.nr_workers; i++) {
		const struct wf_kthread *k = wf_load_acquire(&wf_rt.workers[i].kthread);

		nr += k && is_runnable(wf_load_relaxed(&k->tid));
	}
	return cpu_used() - dog.cpu_used < nr * WF_MIN(for_ns / 4, CHANCE_NS);
}

static void begin_anew(int64_t now)
{
	dog.since = now;
	dog.was_told = false;
	dog.cpu_used = cpu_used();
}

static void tell(struct lx_stall *s, int64_t now)
{
	dog.was_told = true;
	if (!lx_config.on_stall || (dog.has_told && now - dog.told_at < AGAIN_NS && !s->ends))
		return;
	dog.has_told = true;
	dog.told_at = now;
	lx_config.on_stall(s);
	if (s->ends) {
		struct wf_siginfo info = { .signo = SIGABRT, .code = SI_USER };

		lx_signal_default_action(SIGABRT, &info);
	}
}

int64_t lx_watchdog_look(int64_t now)
{
	const int64_t after = lx_config.watchdog_ns, every = after / LOOKS;
	struct lx_stall s = { .ends = lx_config.watchdog_ends };
	uint64_t seen;

	if (WF_LIKELY(!after))
		return WF_NEVER;
	if (now < dog.next && wf_load_relaxed(&wf_rt.monitor_armed))
		return dog.next;
	seen = progress();
	/* The process was stopped meanwhile, or the machine slept. */
	if (seen != dog.progress || (dog.next != WF_NEVER && now - dog.next > every + LATE_NS)) {
		dog.progress = seen;
		begin_anew(now);
	}
	s.for_ns = now - dog.since;
	if (!dog.was_told && s.for_ns >= after) {
		if (is_stuck(&s) && is_starved(s.for_ns))
			begin_anew(now);
		else if (s.nr || is_circle(&s))
			tell(&s, now);
		else if (!wf_load_relaxed(&wf_rt.monitor_armed))
			dog.was_told = true; /* it is idle: looked at once more, and that was now */
	}
	if (!wf_load_relaxed(&wf_rt.monitor_armed))
		return dog.next = dog.was_told ? WF_NEVER : dog.since + after;
	return dog.next = now + every;
}
