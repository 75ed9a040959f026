// SPDX-License-Identifier: Apache-2.0
/*
 * Scopes, as the program calls them; see weft/scope.h and sched/scope.h.
 *
 * To open and close one is to store a few words, by code that is preempted and interrupted anywhere. Invariant: a scope is
 * written before it becomes the top, so that a signal handler in between finds the chain whole, and leaves it as it was.
 */
#include "native/scope.h"
#include "linux/abi.h"
#include "linux/scope.h"
#include "native/glibc.h"
#include "native/misuse.h"
#include "native/watched.h"
#include "native/why.h"
#include "sched/group.h"
#include "weft/scope.h"
#include "weft/weft.h"

#include <asm/unistd.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

_Static_assert(sizeof(weft_scope) == sizeof(struct wf_scope), "one is the other");
_Static_assert(offsetof(weft_scope, name) == offsetof(struct wf_scope, name), "one is the other");

static __thread struct wf_scopes own __attribute__((tls_model("initial-exec")));

extern void *__libc_stack_end; /* of the dynamic loader */

#define MAIN_STACK_MOST (1ul << 30)

/* Where its scopes lie if they do not lie elsewhere: what lies below the stack pointer there was left. */
static WF_FACE_CODE void find_stack(struct wf_scopes *sc, struct wf_thread *self)
{
	pthread_attr_t attr;
	void *low;
	size_t bytes;

	if (getpid() == syscall(__NR_gettid)) {
		struct rlimit limit = { 0 };
		rlim_t most;

		(void)getrlimit(RLIMIT_STACK, &limit);
		most = WF_MIN(limit.rlim_cur, (rlim_t)MAIN_STACK_MOST);
		sc->stack_high = (uintptr_t)__libc_stack_end;
		sc->stack_low = sc->stack_high - most;
		return;
	}
	if (self && lx_of(self)->stack_low) {
		sc->stack_low = lx_of(self)->stack_low;
		sc->stack_high = lx_of(self)->stack_high;
		return;
	}
	if (pthread_getattr_np(pthread_self(), &attr))
		return;
	if (!pthread_attr_getstack(&attr, &low, &bytes)) {
		sc->stack_low = (uintptr_t)low;
		sc->stack_high = (uintptr_t)low + bytes;
	}
	(void)pthread_attr_destroy(&attr);
}

/* A wait of libc's that is over before it begins, and goes through where pthread_cond_wait() waits; see lx_scope_is_once(). */
static WF_FACE_CODE void probe_once(struct wf_scopes *sc)
{
	const struct timespec past = { 1, 0 };
	int state;
	sem_t sem;

	sc->is_probing = true;
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	if (!sem_init(&sem, 0, 0)) {
		(void)sem_timedwait(&sem, &past);
		(void)sem_destroy(&sem);
	}
	(void)pthread_setcancelstate(state, NULL);
	sc->is_probing = false;
}

/* The program's first thread is made in a scope. */
static WF_FACE_CODE void probe_of_main(void)
{
	const int kept = errno;

	probe_once(wf_scopes_of_main);
	errno = kept;
}

static WF_FACE_CODE void *do_nothing(void *arg)
{
	return arg;
}

/*
 * A program that has made no thread yet: its calls are the kernel's, and no scope would end one. The first thread starts the
 * runtime, so there is one, for a moment.
 */
static WF_FACE_CODE struct wf_thread *start_runtime(void)
{
	pthread_t thread;

	if (weft_mode(NULL) == WEFT_MODE_ATTACHED &&
	    wf_load_relaxed(&wf_arch_gate_on) == WF_GATE_OFF && getpid() == syscall(__NR_gettid) &&
	    !pthread_create(&thread, NULL, do_nothing, NULL))
		(void)pthread_join(thread, NULL);
	return wf_face_enter();
}

static WF_NOINLINE WF_FACE_CODE void get_ready(struct wf_scopes *sc)
{
	const int kept = errno;
	struct wf_thread *self = wf_face_enter();

	if (!self)
		self = start_runtime();
	find_stack(sc, self);
	wf_scopes_init(sc, self);
	if (self) {
		wf_store_release(&self->scopes, sc);
		if (!lx_scope_knows_once())
			probe_once(sc);
	} else if (getpid() == syscall(__NR_gettid)) {
		wf_scopes_of_main = sc;
		lx_config.probe_scopes = probe_of_main;
	}
	errno = kept;
}

struct wf_scopes *wf_scopes_self(void)
{
	struct wf_scopes *sc = &own;

	if (WF_UNLIKELY(!sc->is_ready))
		get_ready(sc);
	return sc;
}

static WF_FACE_CODE void read_own_name(char out[16])
{
	if (pthread_getname_np(pthread_self(), out, 16))
		out[0] = '\0';
}

void wf_scopes_leave_all(const char *name)
{
	struct wf_scopes *sc = &own;
	struct wf_thread *self;
	const char *group = NULL;

	if (!sc->is_ready)
		return;
	/* Only the thread itself adds to them. */
	if (!wf_list_is_empty(&sc->groups)) {
		self = wf_face_enter();
		group = wf_group_in(self, sc, NULL);
		wf_face_leave(self);
	}
	if (group)
		wf_misuse("thread '%s' ends, and nobody has waited for its group '%s'", name,
			  group);
	wf_scopes_set_base(sc, NULL);
	sc->base_once = 0;
}

void wf_scopes_renew(weft_scope *user, const char *name)
{
	struct wf_scope *s = (struct wf_scope *)user;

	s->name = name;
	s->ended_what = s->ended_nr = 0;
	s->check = wf_scope_check_of(s);
	wf_store_relaxed(&s->state, 0u);
}

/* A canceller has told the thread since, as any other time. */
void wf_scopes_enter(weft_scope *user)
{
	struct wf_scopes *sc = &own;

	sc->noted[0] = sc->top = (struct wf_scope *)user;
	wf_store_relaxed(&sc->ground, sc->top);
	sc->nr_open = 1;
	sc->until = sc->top->until;
}

/* A group lies in s, which is to be closed. */
static WF_NOINLINE WF_FACE_CODE void check_groups(struct wf_scopes *sc, const struct wf_scope *s)
{
	struct wf_thread *self = wf_face_enter();
	const char *group = wf_group_in(self, sc, s);
	char name[16];

	wf_face_leave(self);
	if (!group)
		return;
	read_own_name(name);
	wf_misuse("thread '%s' closes scope '%s', and nobody has waited for group '%s' in it", name,
		  s->name ? s->name : "", group);
}

/* The innermost one that is still there. Called before s is written to, which may lie where another one was left. */
static WF_NOINLINE WF_FACE_CODE struct wf_scope *prune(struct wf_scopes *sc, uintptr_t sp,
						       const struct wf_scope *s)
{
	struct wf_scope *top = wf_scopes_prune(sc, sp, s);
	struct wf_thread *self;
	const char *group;
	char name[16];

	if (wf_list_is_empty(&sc->groups))
		return top;
	self = wf_face_enter();
	group = wf_group_lost(self, sc);
	wf_face_leave(self);
	if (!group)
		return top;
	read_own_name(name);
	wf_misuse("thread '%s' has left the scope of group '%s', and nobody has waited for it",
		  name, group);
}

static inline WF_FACE_CODE bool is_doubtful(const struct wf_scopes *sc, const struct wf_scope *top,
					    const struct wf_scope *fresh, uintptr_t sp)
{
	const uint32_t nr = WF_MIN(sc->nr_open, (uint32_t)WF_SCOPES_NOTED);

	if (nr == WF_SCOPES_NOTED)
		return true;
	/* Of one that was left, with others in it. */
	for (uint32_t i = 0; i < nr; i++)
		if ((uintptr_t)sc->noted[i] - (uintptr_t)fresh + sizeof(*fresh) - 1 <
		    2 * sizeof(*fresh) - 1)
			return true;
	/* The usual one lies above the new one, and that above the stack pointer; others are looked at closely. */
	return (uintptr_t)top - (uintptr_t)fresh < sizeof(*top) ||
	       (uintptr_t)top <= (uintptr_t)fresh ||
	       (top != sc->base && !wf_scope_is_sound(sc, top)) || (uintptr_t)top < sp;
}

/* Up to top. A handler that was left in the midst of a close has left the count as it was. */
static inline WF_FACE_CODE uint32_t count_to(const struct wf_scopes *sc, const struct wf_scope *top)
{
	return top == sc->ground ? top != sc->base : sc->nr_open;
}

static inline __attribute__((always_inline)) WF_FACE_CODE void open_in(
	struct wf_scopes *sc, struct wf_scope *top, struct wf_scope *s, weft_time deadline,
	const char *name, uint32_t state)
{
	const int64_t until = state & WF_SCOPE_SHIELD ? deadline : WF_MIN(deadline, sc->until);
	const uint32_t nr = count_to(sc, top);

	s->deadline = deadline;
	s->name = name;
	s->outer = top;
	s->until = until;
	s->owner = sc;
	s->check = wf_scope_check_of(s);
	wf_store_relaxed(&s->state, state);
	if (WF_LIKELY(nr < WF_SCOPES_NOTED))
		sc->noted[nr] = s;
	/* For a handler that interrupts us. Until `until` is stored, waits go by the outer scope. */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	sc->top = s;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	sc->until = until;
	sc->nr_open = nr + 1;
	/* The handler may have noted one of its own there. */
	if (WF_LIKELY(nr < WF_SCOPES_NOTED))
		sc->noted[nr] = s;
}

static WF_NOINLINE WF_FACE_CODE void open_rarely(struct wf_scope *s, weft_time deadline,
						 const char *name, uint32_t state, uintptr_t sp)
{
	struct wf_scopes *sc = wf_scopes_self();

	open_in(sc, prune(sc, sp, s), s, deadline, name, state);
}

/* In others that the program has opened, or as the thread's first one. */
static WF_NOINLINE WF_FACE_CODE void open_nested(struct wf_scope *s, weft_time deadline,
						 const char *name, uint32_t state, uintptr_t sp)
{
	struct wf_scopes *sc = &own;
	struct wf_scope *top = sc->top;

	if (WF_UNLIKELY(!sc->is_ready || (top && is_doubtful(sc, top, s, sp))))
		open_rarely(s, deadline, name, state, sp);
	else
		open_in(sc, top, s, deadline, name, state);
}

WF_FACE void weft_scope_open(weft_scope *s, weft_time deadline, const char *name)
{
	if (WF_LIKELY(own.is_ready && own.top == own.ground))
		open_in(&own, own.top, (struct wf_scope *)s, deadline, name, 0);
	else
		open_nested((struct wf_scope *)s, deadline, name, 0,
			    (uintptr_t)__builtin_dwarf_cfa());
}

WF_FACE void weft_scope_shield(weft_scope *s, weft_time deadline, const char *name)
{
	open_nested((struct wf_scope *)s, deadline, name, WF_SCOPE_SHIELD,
		    (uintptr_t)__builtin_dwarf_cfa());
}

void wf_scopes_shield(weft_scope *user, const char *name)
{
	struct wf_scopes *sc = wf_scopes_self();
	struct wf_scope *s = (struct wf_scope *)user;

	open_in(sc, wf_scopes_prune(sc, 0, s), s, WEFT_NEVER, name, WF_SCOPE_SHIELD);
}

/* All that takes more than one store: inner ones that were left open, groups, and a result that the close is to report. */
static WF_NOINLINE WF_FACE_CODE int close_rarely(struct wf_scopes *sc, struct wf_scope *s)
{
	struct wf_scope *at = wf_scopes_top_of(sc);
	uint32_t state = wf_load_relaxed(&s->state);

	while (at && at != s && at != sc->base)
		at = wf_scopes_outer_of(sc, at);
	if (at == s) {
		if (state & WF_SCOPE_HAS_GROUPS)
			check_groups(sc, s);
		wf_scopes_cut(sc, wf_scopes_outer_of(sc, s));
		s->owner = NULL;
	}
	/* An end that a shield has kept out counts from now on. */
	wf_store_relaxed(&sc->is_told, 1u);
	state = wf_load_relaxed(&s->state);
	if (!(state & WF_SCOPE_HAS_ENDED))
		return 0;
	return state & WF_SCOPE_CANCELLED ? -ECANCELED : -ETIMEDOUT;
}

WF_FACE int weft_scope_close(weft_scope *user)
{
	struct wf_scopes *sc = &own;
	struct wf_scope *s = (struct wf_scope *)user, *outer = s->outer;
	const uint32_t nr = sc->nr_open;

	if (WF_UNLIKELY(sc->top != s || !nr || wf_load_relaxed(&s->state) ||
			(outer != sc->ground && (!outer || !wf_scope_is_sound(sc, outer)))))
		return close_rarely(sc, s);
	sc->top = outer;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	sc->until = outer ? outer->until : WF_NEVER;
	sc->nr_open = nr - 1;
	s->owner = NULL;
	return 0;
}

WF_FACE void weft_scope_cancel(weft_scope *s)
{
	struct wf_thread *self = wf_face_enter();

	wf_group_cancel_scope(self, (struct wf_scope *)s);
	wf_face_leave(self);
}

WF_FACE int weft_scope_check(void)
{
	struct wf_scopes *sc = &own;
	struct timespec now;

	if (!wf_scopes_top_of(sc))
		return 0;
	if (!wf_load_relaxed(&sc->is_told)) {
		if (sc->until == WF_NEVER)
			return 0;
		(void)clock_gettime(CLOCK_MONOTONIC, &now);
		if (now.tv_sec * WF_SEC + now.tv_nsec < sc->until)
			return 0;
	}
	return wf_group_check(wf_face_enter(), sc, WF_SCOPE_BY_CHECK);
}

struct wf_scopes *wf_scopes_peek(void)
{
	return &own;
}

__attribute__((constructor)) static void tell_misuse(void)
{
	wf_misuse_scopes = wf_scopes_peek;
}

static WF_FACE_CODE void hang_on(struct wf_scope *s, struct wf_scope *outer)
{
	wf_store_relaxed(&s->outer, outer);
	s->check = wf_scope_check_of(s);
}

/*
 * The fiber's own, which are those that were opened since it came, hang one on the other behind that without the notes; and the
 * outermost on what is there as long as the thread runs, since its resumer may close what lies in between. A crew thread is in a
 * scope of its forker's only until the task ends.
 */
static WF_FACE_CODE void leave(struct wf_scopes *sc, struct wf_scope_chain *chain)
{
	struct wf_scope *s = wf_scopes_top_of(sc), *top = NULL, *outermost = NULL;
	struct wf_scope *const lasting = sc->helps ? NULL : sc->ground;

	while (s && s != sc->ground && s != sc->base && s != chain->link &&
	       wf_scopes_place_of(sc, s) >= WF_MIN(chain->nr_around, (uint32_t)WF_SCOPES_NOTED)) {
		top = top ? top : s;
		if (outermost)
			hang_on(outermost, s);
		outermost = s;
		s = wf_scopes_outer_of(sc, s);
	}
	wf_scopes_cut(sc, s);
	if (outermost)
		hang_on(outermost, lasting);
	*chain = (struct wf_scope_chain){ .top = top, .link = top ? lasting : NULL };
}

/* From the outermost one of the chain to s: on, and one in the other. nr: how many lie around them; returned: s counted, too. */
static WF_FACE_CODE uint32_t hang(struct wf_scopes *sc, struct wf_scope *s,
				  const struct wf_scope *outermost, struct wf_scope *on,
				  uint32_t nr)
{
	if (s == outermost)
		wf_store_relaxed(&s->outer, on);
	else
		nr = hang(sc, s->outer, outermost, on, nr);
	s->until = s->deadline;
	if (s->outer && !(wf_load_relaxed(&s->state) & WF_SCOPE_SHIELD))
		s->until = WF_MIN(s->until, s->outer->until);
	s->check = wf_scope_check_of(s);
	if (nr < WF_SCOPES_NOTED)
		sc->noted[nr] = s;
	return nr + 1;
}

/* The fiber has left one whose memory a scope in force has by now, and those around it. */
static WF_FACE_CODE bool is_own(const struct wf_scopes *sc, const struct wf_scope *s,
				const struct wf_scope *link)
{
	return s && s != link && s != sc->base && wf_scope_is_sound(sc, s) &&
	       wf_scopes_place_of(sc, s) == WF_MIN(sc->nr_open, (uint32_t)WF_SCOPES_NOTED);
}

/* Threads that a fiber has begun lie in other scopes than before, and nobody has told them of these. */
static WF_FACE_CODE void tell_below(struct wf_scopes *sc, const struct wf_scope *s)
{
	struct wf_thread *self = wf_face_enter();

	wf_group_tell(self, sc, s);
	wf_face_leave(self);
}

static WF_FACE_CODE void enter(struct wf_scopes *sc, struct wf_scope_chain *chain, uintptr_t sp)
{
	struct wf_scope *on = wf_scopes_prune(sc, sp, NULL), *outermost = NULL;
	const uint32_t nr_around = count_to(sc, on);

	for (struct wf_scope *s = chain->top; is_own(sc, s, chain->link); s = s->outer)
		outermost = s;
	if (outermost) {
		wf_scopes_set_top(sc, chain->top, hang(sc, chain->top, outermost, on, nr_around));
		tell_below(sc, outermost);
	}
	*chain = (struct wf_scope_chain){ .link = on, .nr_around = nr_around };
}

void wf_scopes_switch(struct wf_scope_chain *left, struct wf_scope_chain *entered, uintptr_t sp)
{
	if (left)
		leave(&own, left);
	if (entered)
		enter(&own, entered, sp);
}

/* Some of those around it may have been closed behind a transfer. */
void wf_scopes_return(struct wf_scope_chain *to)
{
	struct wf_scope *top = wf_scopes_top_of(&own);
	const uint32_t nr = count_to(&own, top);

	if (nr < to->nr_around) {
		to->link = top;
		to->nr_around = nr;
	}
}

/* Natively a canceller only leaves word of it, and ThreadSanitizer keeps handlers back: so often is that looked for. */
#define NATIVE_LOOK_NS WF_WATCHED_LOOK_NS

int wf_scopes_futex_wait(uint32_t *word, uint32_t expected, int64_t until)
{
	struct wf_scopes *sc = wf_scopes_self();
	const bool is_native = !sc->thread && sc->top;
	const bool looks = is_native || (!sc->thread && wf_watched_by_threads);
	const int kept = errno;
	struct timespec ts;
	int64_t most = until;
	int ret;

	if (is_native) {
		ret = wf_group_check(NULL, sc, WF_SCOPE_BY_WAIT);
		if (ret)
			return ret;
	}
	if (looks)
		most = WF_MIN(WF_MIN(until, sc->until), weft_now() + NATIVE_LOOK_NS);
	ts = (struct timespec){ most / WF_SEC, most % WF_SEC };
	sc->wait_word = word;
	ret = (int)syscall(__NR_futex, word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, expected,
			   most == WF_NEVER ? NULL : &ts, NULL, FUTEX_BITSET_MATCH_ANY);
	sc->wait_word = NULL;
	if (ret < 0)
		ret = -errno;
	errno = kept;
	if (wf_watched_by_threads)
		wf_watched_run_handlers();
	if (ret == -ETIMEDOUT && most < until) {
		ret = wf_group_check(NULL, sc, WF_SCOPE_BY_WAIT);
		return ret ? ret : -EINTR;
	}
	return ret;
}

WF_FACE int weft_scope_why(const weft_scope *user, char *buf, size_t len)
{
	const struct wf_scope *s = (const struct wf_scope *)user;
	const uint32_t state = wf_load_relaxed(&s->state);

	if (len)
		buf[0] = '\0';
	if (!(state & WF_SCOPE_HAS_ENDED))
		return -ENOENT;
	wf_why_write(buf, len, s->name, state & WF_SCOPE_CANCELLED, wf_load_relaxed(&s->ended_nr),
		     wf_load_relaxed(&s->ended_what));
	return 0;
}
