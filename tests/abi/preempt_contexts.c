// SPDX-License-Identifier: Apache-2.0
/*
 * Programs that switch stacks by themselves, in threads that are preempted: contexts of ucontext.h, jumps out of
 * frames and out of handlers, and a switch of a few instructions as coroutine libraries have it, between stacks
 * of a few KiB, with calls that wait and signals that arrive on them.
 */
#include "check.h"

#include <setjmp.h>
#include <sys/mman.h>
#include <ucontext.h>

#define NR 4
#define RUN_NS (200 * MS)
#define STACK_BYTES 16384

static int64_t end_ns;
static pthread_t threads[NR];
static int nr_handled;

/* --- ucontext --- */

struct pair {
	ucontext_t main, other;
	char stack[STACK_BYTES];
	long count;
	int stop;
};

static void counts_in_context(unsigned hi, unsigned lo)
{
	struct pair *p = (struct pair *)((uintptr_t)hi << 32 | lo);

	while (!p->stop) {
		p->count++;
		for (volatile int i = 0; i < 1000; i++)
			;
		swapcontext(&p->other, &p->main);
	}
}

static void *swaps(void *arg)
{
	struct pair *p = calloc(1, sizeof(*p));
	volatile long want = 0;

	getcontext(&p->other);
	p->other.uc_stack.ss_sp = p->stack;
	p->other.uc_stack.ss_size = STACK_BYTES;
	p->other.uc_link = &p->main;
	makecontext(&p->other, (void (*)(void))counts_in_context, 2, (unsigned)((uintptr_t)p >> 32),
		    (unsigned)(uintptr_t)p);
	do {
		swapcontext(&p->main, &p->other);
		want++;
		if (p->count != want)
			break;
	} while (now_ns() < end_ns);
	CHECK_EQ(p->count, want);
	p->stop = 1;
	swapcontext(&p->main, &p->other); /* ends it, and comes back by uc_link */
	free(p);
	return arg;
}

/* --- setjmp and longjmp --- */

static __attribute__((noinline)) void jump_from(jmp_buf to, int depth, int value)
{
	volatile char room[64];

	room[0] = (char)depth;
	if (depth <= 0)
		longjmp(to, value);
	if (depth < 1000)
		jump_from(to, depth - 1, value);
	CHECK_EQ(room[0], (char)depth);
}

static void *jumps(void *arg)
{
	volatile int want = 0;
	jmp_buf here;

	do {
		int got = setjmp(here);

		if (!got)
			jump_from(here, 20, want + 1);
		CHECK_EQ(got, want + 1);
		want++;
	} while (now_ns() < end_ns);
	return arg;
}

/* A handler that leaves by a jump, as those do that limit how long something takes. */
static __thread sigjmp_buf out_of_loop;
static __thread volatile int is_in_loop;

static void leaves_loop(int sig)
{
	(void)sig;
	ADD(&nr_handled, 1);
	if (is_in_loop)
		siglongjmp(out_of_loop, 1);
}

static void *loops_until_signal(void *arg)
{
	sigset_t now;

	do {
		if (!sigsetjmp(out_of_loop, 1)) {
			is_in_loop = 1;
			CHECK_PT(pthread_kill(pthread_self(), SIGUSR1));
			for (;;) /* it was for us, and is handled by now */
				CHECK(!"the handler did not jump");
		}
		is_in_loop = 0;
		for (volatile int i = 0; i < 1000; i++)
			;
		CHECK_PT(pthread_sigmask(SIG_SETMASK, NULL, &now));
		CHECK(!sigismember(&now, SIGUSR1));
	} while (now_ns() < end_ns);
	return arg;
}

/* --- coroutines --- */

#if defined(__x86_64__)
void switch_stack(void **save, void *to);
__asm__(".text\n"
	".type switch_stack, @function\n"
	"switch_stack:\n"
	"	pushq %rbp\n"
	"	pushq %rbx\n"
	"	pushq %r12\n"
	"	pushq %r13\n"
	"	pushq %r14\n"
	"	pushq %r15\n"
	"	movq %rsp, (%rdi)\n"
	"	movq %rsi, %rsp\n"
	"	popq %r15\n"
	"	popq %r14\n"
	"	popq %r13\n"
	"	popq %r12\n"
	"	popq %rbx\n"
	"	popq %rbp\n"
	"	ret\n"
	".size switch_stack, . - switch_stack\n");

#define COROUTINES 8

struct coroutine {
	void *sp, *main_sp;
	long count;
	void *room[];
};

static __thread struct coroutine *current;

static __attribute__((noinline)) struct coroutine *running(void)
{
	return current;
}

static void coroutine_body(void)
{
	struct coroutine *c = running();

	for (;;) {
		struct timespec ts = timespec_of(1000);

		c->count++;
		if (c->count % 64 == 0)
			sched_yield();
		if (c->count % 512 == 0)
			nanosleep(&ts, NULL);
		for (volatile int i = 0; i < 500; i++)
			;
		CHECK(running() == c);
		switch_stack(&c->sp, c->main_sp);
	}
}

static void *runs_coroutines(void *arg)
{
	struct coroutine *c[COROUTINES];
	char *stacks = mmap(NULL, COROUTINES * STACK_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long rounds = 0;

	CHECK(stacks != MAP_FAILED);
	for (int i = 0; i < COROUTINES; i++) {
		void **sp = (void **)(stacks + (i + 1) * STACK_BYTES);

		c[i] = (struct coroutine *)(stacks + i * STACK_BYTES);
		sp -= 2;
		*sp = (void *)coroutine_body; /* entered as if it had been called */
		c[i]->sp = sp - 6;
	}
	do {
		for (int i = 0; i < COROUTINES; i++) {
			current = c[i];
			switch_stack(&c[i]->main_sp, c[i]->sp);
		}
		rounds++;
	} while (now_ns() < end_ns);
	for (int i = 0; i < COROUTINES; i++)
		CHECK_EQ(c[i]->count, rounds);
	munmap(stacks, COROUTINES * STACK_BYTES);
	return arg;
}
#else
static void *runs_coroutines(void *arg)
{
	return arg;
}
#endif

static void run_all(void *(*fn)(void *), const char *name)
{
	int64_t until = now_ns() + RUN_NS;

	end_ns = until;
	for (intptr_t i = 0; i < NR; i++)
		threads[i] = start(fn, (void *)i);
	while (fn == runs_coroutines && now_ns() < until) {
		for (int i = 0; i < NR; i++)
			(void)pthread_kill(threads[i], SIGUSR1);
		sleep_ns(MS);
	}
	for (int i = 0; i < NR; i++)
		join(threads[i]);
	ok(name);
}

int main(void)
{
	struct sigaction sa = { .sa_handler = leaves_loop };

	sigaction(SIGUSR1, &sa, NULL);
	run_all(swaps, "swapcontext");
	run_all(jumps, "longjmp");
	run_all(loops_until_signal, "siglongjmp out of a handler");
	run_all(runs_coroutines, "coroutines, with signals");
	CHECK(nr_handled > 0);
	return finish();
}
