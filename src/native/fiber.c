// SPDX-License-Identifier: Apache-2.0
/*
 * Fibers: further stacks of a thread; see weft/fiber.h for the rules and sched/fibers.h for the states.
 *
 * All of it is the program's code, and nothing here knows of the scheduler: a fiber is a stack and the registers on it, and the
 * thread is what is preempted, parked and moved. The one that leaves does everything for the one that goes on, and goes there as the
 * last thing, so that both return straight into the program.
 *
 * Invariant: home->current is RUNNING, and no other fiber of the thread is. Between the store to it and the switch the
 * thread is still on the other one's stack: a handler that runs then finds a fiber that is about to run, which is why none may
 * resume, yield or transfer. sp of whoever is not RUNNING is a frame of wf_arch_fiber_switch() or wf_arch_make_fiber().
 *
 * Considered and refused: a fiber that another thread may go on with. The compiler's knowledge of thread-local variables,
 * errno and locks would be another thread's after a call that looks like any other.
 */
#include "native/fiber.h"
#include "linux/abi.h"
#include "linux/overflow.h"
#include "native/glibc.h"
#include "native/misuse.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <unwind.h>

#define MESSAGE_BYTES 512

/* Of the C++ runtime, if the program has one. */
void *__cxa_get_globals(void) WF_WEAK;

static __thread struct wf_fiber_home *mine __attribute__((tls_model("initial-exec")));
static struct wf_fiber_home *unused; /* (a) homes of threads that have ended */
static uint64_t last_id;             /* (a) */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t at_thread_end;
static bool has_key;        /* (p) by once */
static ptrdiff_t mine_from; /* (p) by once: where mine is, from a thread's pointer on */

/* --- what is said of mistakes --- */

struct text {
	char bytes[MESSAGE_BYTES];
	size_t len;
};

WF_PRINTF(2, 3) WF_FACE_CODE static void put(struct text *t, const char *format, ...)
{
	const size_t room = sizeof(t->bytes) - t->len;
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(t->bytes + t->len, room, format, args);
	va_end(args);
	t->len += n < 0 ? 0 : WF_MIN((size_t)n, room - 1);
}

WF_FACE_CODE static void put_fiber(struct text *t, const struct weft_fiber *f)
{
	if (f->name)
		put(t, "fiber \"%.60s\"", f->name);
	else
		put(t, "fiber %p", (const void *)f);
}

WF_FACE_CODE static void put_self(struct text *t)
{
	const struct wf_fiber_home *home = mine;
	char name[16] = "";

	if (home && home->current != &home->own) {
		put_fiber(t, home->current);
		put(t, " of ");
	}
	(void)pthread_getname_np(pthread_self(), name, sizeof(name));
	put(t, "thread %ld \"%s\"", syscall(__NR_gettid), name);
}

/* f: NULL, or with whom. */
WF_NORETURN WF_NOINLINE WF_FACE_CODE static void refuse(const char *what,
							const struct weft_fiber *f, const char *why)
{
	struct text t = { .len = 0 };

	put_self(&t);
	put(&t, " cannot %s", what);
	if (f) {
		put(&t, " ");
		put_fiber(&t, f);
	}
	put(&t, ": %s", why);
	wf_misuse("%s", t.bytes);
}

WF_NORETURN WF_NOINLINE WF_FACE_CODE static void refuse_foreign(const char *what,
								const struct weft_fiber *f)
{
	char why[80], name[16] = "";

	if (wf_load_acquire(&f->home->id) == f->home_id) {
		(void)pthread_getname_np(f->home->thread, name, sizeof(name));
		snprintf(why, sizeof(why), "it is one of thread %d \"%s\"", f->home->tid, name);
	} else {
		snprintf(why, sizeof(why), "it is one of a thread that has ended");
	}
	refuse(what, f, why);
}

WF_FACE_CODE static bool is_foreign(const struct wf_fiber_home *home, const struct weft_fiber *f)
{
	return !home || f->home != home || f->home_id != home->id;
}

WF_NORETURN WF_NOINLINE WF_FACE_CODE static void refuse_resume(const struct weft_fiber *f)
{
	static const char *const why[] = {
		[WF_FIBER_RUNNING] = "it is the one that runs",
		[WF_FIBER_RESUMES] = "it has resumed a fiber itself, and waits for that one",
		[WF_FIBER_TRANSFERRED] = "it was left by a transfer, and only a transfer goes on "
					 "with it",
		[WF_FIBER_DONE] = "it is done",
	};

	if (is_foreign(mine, f))
		refuse_foreign("resume", f);
	refuse("resume", f, why[f->state]);
}

WF_NORETURN WF_NOINLINE WF_FACE_CODE static void refuse_transfer(const struct weft_fiber *f)
{
	static const char *const why[] = {
		[WF_FIBER_RESUMES] = "it has resumed a fiber, and waits for that one",
		[WF_FIBER_YIELDED] = "it has yielded, and only a resume goes on with it",
		[WF_FIBER_DONE] = "it is done",
	};

	if (!mine)
		refuse("transfer", NULL, "no fiber is this thread's");
	if (f == &mine->own)
		refuse("transfer to its thread's own stack", NULL, why[f->state]);
	if (is_foreign(mine, f))
		refuse_foreign("transfer to", f);
	refuse("transfer to", f, why[f->state]);
}

/* --- what a thread has --- */

/* The running fiber of this thread, as the fault handler asks: its thread pointer may be anything, and so may what is there. */
static bool find_running(struct lx_overflow_fiber *out)
{
	const uintptr_t at = wf_arch_get_tls() + (uintptr_t)mine_from;
	struct wf_fiber_home *home;
	struct weft_fiber f, *current;

	if (wf_arch_copy(&home, (const void *)at, sizeof(home)) < 0 || !home ||
	    wf_arch_copy(&current, &home->current, sizeof(current)) < 0 ||
	    wf_arch_copy(&f, current, sizeof(f)) < 0 || current == &home->own)
		return false;
	if (f.home != home || f.state != WF_FIBER_RUNNING)
		return false;
	out->low = (uintptr_t)f.low;
	out->high = out->low + wf_stackpool_bytes(f.class);
	out->name[0] = '\0';
	for (size_t i = 0; f.name && i < sizeof(out->name) - 1; i++) {
		if (wf_arch_copy(&out->name[i], f.name + i, 1) < 0)
			out->name[i] = '\0';
		out->name[i + 1] = '\0';
		if (!out->name[i])
			break;
	}
	return true;
}

WF_FACE_CODE static void leave_home(void *arg)
{
	struct wf_fiber_home *home = arg;

	mine = NULL;
	wf_fiberbook_close(home->book);
	wf_stackpool_done(&home->pool);
	wf_store_release(&home->id, 0ull);
	home->next = wf_load_relaxed(&unused);
	while (!wf_cas(&unused, &home->next, home))
		;
}

WF_FACE_CODE void wf_fiber_forget_others(void)
{
	wf_fiberbook_forget_others(mine ? mine->book : NULL);
	if (!mine)
		return;
	mine->tid = (int)syscall(__NR_gettid);
	wf_fiberbook_open(mine->book, mine->id, mine->tid);
}

WF_FACE_CODE static void begin(void)
{
	mine_from = (char *)&mine - (char *)__builtin_thread_pointer();
	has_key = pthread_key_create(&at_thread_end, leave_home) == 0;
	wf_store_release(&lx_config.find_fiber, find_running);
}

/* All are taken and all but one put back: so no thread can follow a pointer that another one has changed. */
WF_FACE_CODE static struct wf_fiber_home *take_unused(void)
{
	struct wf_fiber_home *home = wf_exchange(&unused, NULL), *rest, *last, *head;

	if (!home || !home->next)
		return home;
	rest = last = home->next;
	while (last->next)
		last = last->next;
	head = wf_load_relaxed(&unused);
	do
		last->next = head;
	while (!wf_cas(&unused, &head, rest));
	return home;
}

/* A library that came by dlopen() may have brought the C++ runtime where its names are found by nobody else. */
WF_FACE_CODE static struct wf_fiber_cxx *find_cxx(void)
{
	static const char *const libraries[] = { "libstdc++.so.6", "libc++abi.so.1" };

	if (__cxa_get_globals)
		return __cxa_get_globals();
	for (size_t i = 0; i < ARRAY_LEN(libraries); i++) {
		void *library = dlopen(libraries[i], RTLD_LAZY | RTLD_NOLOAD);
		void *(*get)(void) = NULL;

		if (!library)
			continue;
		*(void **)&get = dlsym(library, "__cxa_get_globals");
		(void)dlclose(library);
		if (get)
			return get();
	}
	return NULL;
}

/* Where the thread's own stack is. */
WF_FACE_CODE static bool find_own_stack(char **out_low, size_t *out_bytes)
{
	pthread_attr_t attr;
	void *low;
	bool is_found;

	if (pthread_getattr_np(pthread_self(), &attr) != 0)
		return false;
	is_found = pthread_attr_getstack(&attr, &low, out_bytes) == 0;
	(void)pthread_attr_destroy(&attr);
	if (is_found)
		*out_low = low;
	return is_found;
}

WF_FACE_CODE static void watch_own_stack(struct wf_fiber_home *home)
{
	char *low = NULL;
	size_t bytes = 0;

	home->is_watched = true;
	(void)find_own_stack(&low, &bytes);
	wf_watched_adopt(&home->own.watched, low, bytes);
}

WF_FACE_CODE static struct wf_fiber_home *make_home_and_book(void)
{
	struct wf_fiber_home *home = malloc(sizeof(*home));

	if (home)
		home->book = wf_fiberbook_new(&home->own, &home->current);
	if (home && !home->book) {
		free(home);
		return NULL;
	}
	return home;
}

/* This thread's; NULL: no memory. */
WF_NOINLINE WF_FACE_CODE static struct wf_fiber_home *make_home(void)
{
	struct wf_fiber_home *home;
	struct wf_fiberbook *book;

	(void)pthread_once(&once, begin);
	home = has_key ? take_unused() : NULL;
	if (has_key && !home)
		home = make_home_and_book();
	if (!home)
		return NULL;
	book = home->book;
	*home = (struct wf_fiber_home){ .current = &home->own, .cxx = find_cxx(), .book = book };
	home->own.state = WF_FIBER_RUNNING;
	home->own.home = home;
	home->own.home_id = wf_fetch_add(&last_id, 1ull) + 1;
	home->tid = (int)syscall(__NR_gettid);
	home->thread = pthread_self();
	home->scopes = wf_scopes_peek();
	if (wf_watched_is_any())
		watch_own_stack(home);
	wf_store_release(&home->id, home->own.home_id);
	wf_fiberbook_open(book, home->own.home_id, home->tid);
	mine = home;
	if (pthread_setspecific(at_thread_end, home) != 0) {
		leave_home(home);
		return NULL;
	}
	return home;
}

/* --- from one to another --- */

WF_NOINLINE WF_FACE_CODE static void *go_watched(struct weft_fiber *self, struct weft_fiber *to,
						 void *value)
{
	wf_watched_leave(&self->watched, &to->watched, self->state == WF_FIBER_DONE);
	value = wf_arch_fiber_switch(&self->sp, to->sp, value);
	wf_watched_arrive(&self->watched, false);
	return value;
}

/* The thread's own stack keeps its scopes in force, and so does a fiber that has resumed another one. */
WF_NOINLINE WF_FACE_CODE static void switch_scopes(struct wf_fiber_home *home,
						   struct weft_fiber *self, struct weft_fiber *to,
						   bool begins, uintptr_t sp)
{
	bool stays = self == &home->own || self->state == WF_FIBER_RESUMES;

	wf_scopes_switch(stays ? NULL : &self->scopes,
			 begins && to != &home->own ? &to->scopes : NULL, sp);
	if (!begins)
		wf_scopes_return(&to->scopes);
}

/* The states of both say already what will be. begins: to goes on for somebody, and not because one that it has resumed stops. */
WF_INLINE void *go(struct wf_fiber_home *home, struct weft_fiber *self, struct weft_fiber *to,
		   void *value, bool begins)
{
	if (WF_UNLIKELY(home->scopes->top != home->scopes->ground || to->scopes.top ||
			self->scopes.link || to->scopes.link))
		switch_scopes(home, self, to, begins, (uintptr_t)__builtin_dwarf_cfa());
	if (home->cxx) {
		self->cxx = *home->cxx;
		*home->cxx = to->cxx;
	}
	home->current = to;
	if (WF_UNLIKELY(home->is_watched))
		return go_watched(self, to, value);
	return wf_arch_fiber_switch(&self->sp, to->sp, value);
}

WF_FACE void *weft_fiber_resume(weft_fiber *f, void *value)
{
	struct wf_fiber_home *home = mine;
	struct weft_fiber *self;

	if (WF_UNLIKELY(is_foreign(home, f) ||
			(f->state != WF_FIBER_YIELDED && f->state != WF_FIBER_NEW)))
		refuse_resume(f);
	self = home->current;
	self->state = WF_FIBER_RESUMES;
	self->resuming = f;
	f->resumer = f->parent = self;
	f->state = WF_FIBER_RUNNING;
	return go(home, self, f, value, true);
}

WF_FACE void *weft_fiber_yield(void *value)
{
	struct wf_fiber_home *home = mine;
	struct weft_fiber *self = home ? home->current : NULL, *to;

	if (WF_UNLIKELY(!self || !self->resumer))
		refuse("yield", NULL,
		       !self || self == &home->own
			       ? "it runs on no fiber"
			       : "it was transferred to, nobody has resumed it");
	to = self->resumer;
	self->resumer = NULL;
	self->state = WF_FIBER_YIELDED;
	to->resuming = NULL;
	to->state = WF_FIBER_RUNNING;
	return go(home, self, to, value, false);
}

WF_FACE void *weft_fiber_transfer(weft_fiber *f, void *value)
{
	struct wf_fiber_home *home = mine;
	struct weft_fiber *self;

	if (home && !f)
		f = &home->own;
	if (home && f == home->current)
		return value;
	if (WF_UNLIKELY(!f || is_foreign(home, f) ||
			(f->state != WF_FIBER_TRANSFERRED && f->state != WF_FIBER_NEW)))
		refuse_transfer(f);
	self = home->current;
	self->state = WF_FIBER_TRANSFERRED;
	if (!f->resumer)
		f->parent = &home->own;
	f->state = WF_FIBER_RUNNING;
	return go(home, self, f, value, true);
}

/* The fiber that goes on when self is done. */
WF_FACE_CODE static struct weft_fiber *next_after(struct wf_fiber_home *home,
						  struct weft_fiber *self)
{
	struct weft_fiber *to = self->resumer;

	if (to) {
		to->resuming = NULL;
		return to;
	}
	/* Nobody waits for it in particular: the end of what the thread's own stack waits for. */
	for (to = &home->own; to->resuming; to = to->resuming)
		;
	return to;
}

/* First and last function on a fiber's stack. */
WF_FACE_CODE static void run(void *fiber, void *value)
{
	struct weft_fiber *self = fiber, *to;
	struct wf_fiber_home *home = self->home;
	bool begins;

	if (WF_UNLIKELY(home->is_watched))
		wf_watched_arrive(&self->watched, true);
	value = self->fn(value);
	to = next_after(home, self);
	begins = !self->resumer; /* to was left by a transfer, its scopes with it */
	self->resumer = NULL;
	self->state = WF_FIBER_DONE;
	to->state = WF_FIBER_RUNNING;
	(void)go(home, self, to, value, begins);
	__builtin_unreachable();
}

_Unwind_Reason_Code wf_arch_fiber_personality(int version, _Unwind_Action actions,
					      _Unwind_Exception_Class class,
					      struct _Unwind_Exception *exception,
					      struct _Unwind_Context *context);

/*
 * An exception that fn does not catch ends here. Only a thread that ends, by pthread_exit() or cancellation, unwinds through: nothing is left of
 * the fiber then, and what is unwound next is the frames of its parent, on that one's stack.
 */
WF_FACE_CODE _Unwind_Reason_Code wf_arch_fiber_personality(int version, _Unwind_Action actions,
							   _Unwind_Exception_Class class,
							   struct _Unwind_Exception *exception,
							   struct _Unwind_Context *context)
{
	struct wf_fiber_home *home = mine;
	struct weft_fiber *self = home->current, *to = self->parent;

	(void)version;
	(void)class;
	(void)exception;
	(void)context;
	if (actions & _UA_SEARCH_PHASE)
		return _URC_FATAL_PHASE1_ERROR;
	self->state = WF_FIBER_DONE;
	switch_scopes(home, self, to, to->state == WF_FIBER_TRANSFERRED, 0);
	self->resumer = to->resuming = NULL;
	to->state = WF_FIBER_RUNNING;
	if (home->cxx)
		*home->cxx = to->cxx;
	home->current = to;
	return _URC_CONTINUE_UNWIND;
}

/* --- all the rest --- */

WF_FACE_CODE static struct weft_fiber *make(struct wf_fiber_home *home, size_t bytes)
{
	const int class = wf_stackpool_class(bytes);
	char *low = class < 0 ? NULL : wf_stackpool_get(&home->pool, (unsigned)class);
	struct weft_fiber *f;
	char *top;

	if (!low)
		return NULL;
	top = low + wf_stackpool_bytes((unsigned)class) - sizeof(*f);
	f = (struct weft_fiber *)WF_ALIGN_DOWN((uintptr_t)top, (uintptr_t)WF_CACHE_LINE);
	*f = (struct weft_fiber){
		.home = home,
		.home_id = home->id,
		.parent = &home->own,
		.state = WF_FIBER_NEW,
		.class = (uint32_t) class,
		.low = low,
	};
	wf_watched_init(&f->watched, low, wf_stackpool_bytes(f->class));
	f->sp = wf_arch_make_fiber(f, run, f);
	return f;
}

WF_FACE weft_fiber *weft_fiber_new(void *(*fn)(void *first), const struct weft_fiber_opts *opts)
{
	const int kept = errno;
	struct weft_fiber_opts o = { .stack_bytes = WEFT_FIBER_STACK };
	struct wf_fiber_home *home = mine;
	struct weft_fiber *f;

	if (opts)
		memcpy(&o, opts, WF_MIN(opts->size, sizeof(o)));
	if (!o.stack_bytes)
		o.stack_bytes = WEFT_FIBER_STACK;
	if (!home)
		home = make_home();
	f = home ? make(home, o.stack_bytes) : NULL;
	if (f) {
		f->fn = fn;
		f->name = o.name;
		f->place = wf_fiberbook_enter(home->book, f);
	}
	errno = kept;
	return f;
}

WF_FACE void weft_fiber_free(weft_fiber *f)
{
	const int kept = errno;

	if (!f)
		return;
	if (wf_load_acquire(&f->home->id) == f->home_id) {
		if (f->state == WF_FIBER_RUNNING)
			refuse("free", f, "it runs");
		if (f->state == WF_FIBER_RESUMES)
			refuse("free", f, "it has resumed a fiber, and waits for that one");
		if (f->state == WF_FIBER_TRANSFERRED && f->resumer)
			refuse("free", f, "a fiber has resumed it, and waits for it");
	}
	wf_watched_done(&f->watched);
	wf_fiberbook_leave(mine == f->home ? mine->book : NULL, f->place);
	wf_stackpool_put(mine ? &mine->pool : NULL, f->class, f->low);
	errno = kept;
}

WF_FACE weft_fiber *weft_fiber_self(void)
{
	const struct wf_fiber_home *home = mine;

	return home && home->current != &home->own ? home->current : NULL;
}

WF_FACE bool weft_fiber_is_done(const weft_fiber *f)
{
	return f->state == WF_FIBER_DONE;
}

WF_FACE void weft_fiber_stack(const weft_fiber *f, void **out_low, void **out_high, void **out_sp)
{
	const struct wf_fiber_home *home = mine;
	char *low = NULL;
	size_t bytes = 0;
	bool is_running = home ? home->current == (f ? f : &home->own) : !f;

	if (f) {
		low = f->low;
		bytes = wf_stackpool_bytes(f->class);
	} else if (!find_own_stack(&low, &bytes)) {
		bytes = 0;
	}
	*out_low = low;
	*out_high = low + bytes;
	if (is_running)
		*out_sp = __builtin_frame_address(0);
	else
		*out_sp = f ? f->sp : home->own.sp;
}
