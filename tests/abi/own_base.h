// SPDX-License-Identifier: Apache-2.0
/*
 * A program may have its own use for the GS base, and count on this: it is a thread's own, in its code, over calls and
 * preemption, in handlers, and in what the thread makes.
 *
 * Included by: own_base*.c, which differ in how they write it and in when the first instruction that does is there.
 */
#ifndef WEFT_TESTS_ABI_OWN_BASE_H
#define WEFT_TESTS_ABI_OWN_BASE_H

#include "check.h"

#include <asm/prctl.h>
#include <sched.h>
#include <spawn.h>
#include <sys/auxv.h>

#define NR 6
#define RUN_NS (60 * MS)
#define HWCAP2_FSGSBASE 2

static void (*set_base)(uintptr_t base);
static uintptr_t (*get_base)(void);

static inline int has_base_insns(void)
{
	return (getauxval(AT_HWCAP2) & HWCAP2_FSGSBASE) != 0;
}

static inline void set_base_by_call(uintptr_t base)
{
	CHECK_SYS(syscall(SYS_arch_prctl, ARCH_SET_GS, base));
}

static inline uintptr_t get_base_by_call(void)
{
	uintptr_t base = 0;

	CHECK_SYS(syscall(SYS_arch_prctl, ARCH_GET_GS, &base));
	return base;
}

/* The first word of what the base points to; each block holds its own address there. */
static inline uintptr_t word_at_base(void)
{
	uintptr_t word;

	__asm__ volatile("movq %%gs:0, %0" : "=r"(word));
	return word;
}

struct block {
	uintptr_t self, other[63];
};

static inline void take(struct block *b)
{
	b->self = (uintptr_t)b;
	set_base(b->self);
}

static inline int has(const struct block *b)
{
	return word_at_base() == (uintptr_t)b && get_base() == (uintptr_t)b &&
	       get_base_by_call() == (uintptr_t)b;
}

static int64_t end_ns;

static void *calls(void *arg)
{
	struct block b;
	int fds[2];

	take(&b);
	CHECK_SYS(pipe(fds));
	do {
		char c = 0;

		sched_yield();
		CHECK(has(&b));
		sleep_ns(100000);
		CHECK(has(&b));
		CHECK_EQ(write(fds[1], "x", 1), 1);
		CHECK_EQ(read(fds[0], &c, 1), 1);
		CHECK(has(&b));
	} while (now_ns() < end_ns);
	close(fds[0]);
	close(fds[1]);
	return arg;
}

static void *spins(void *arg)
{
	struct block b;
	int is_same = 1;

	take(&b);
	do
		for (int i = 0; i < 20000; i++)
			is_same &= word_at_base() == (uintptr_t)&b;
	while (now_ns() < end_ns);
	CHECK(is_same && has(&b));
	return arg;
}

/* One that never writes it runs among them. */
static void *leaves_it(void *arg)
{
	uintptr_t before = get_base_by_call();

	do
		sched_yield();
	while (now_ns() < end_ns);
	CHECK_EQ(get_base_by_call(), before);
	return arg;
}

static inline void run(void *(*fn)(void *), const char *name)
{
	pthread_t t[NR], other;

	end_ns = now_ns() + RUN_NS;
	for (int i = 0; i < NR; i++)
		t[i] = start(fn, NULL);
	other = start(leaves_it, NULL);
	for (int i = 0; i < NR; i++)
		join(t[i]);
	join(other);
	ok(name);
}

static void *is_inherited(void *arg)
{
	CHECK(has(arg));
	return NULL;
}

static void *makes(void *arg)
{
	struct block b;

	take(&b);
	join(start(is_inherited, &b));
	CHECK(has(&b));
	return arg;
}

static struct block in_handler, *expected;
static int nr_handled;

static inline void sees(int sig)
{
	CHECK(word_at_base() == (uintptr_t)expected && get_base_by_call() == (uintptr_t)expected);
	sched_yield();
	CHECK(word_at_base() == (uintptr_t)expected);
	ADD(&nr_handled, 1);
	(void)sig;
}

static inline void changes(int sig)
{
	sees(sig);
	take(&in_handler);
}

static inline void on_signal(int sig, void (*handler)(int))
{
	struct sigaction act = { .sa_handler = handler, .sa_flags = SA_RESTART };

	CHECK_SYS(sigaction(sig, &act, NULL));
}

/* In a call, at a fault, and one that writes it itself: that stays. */
static void *raises(void *arg)
{
	struct block b;

	take(&b);
	expected = &b;
	on_signal(SIGUSR1, sees);
	on_signal(SIGTRAP, sees);
	CHECK_PT(pthread_kill(pthread_self(), SIGUSR1));
	CHECK(has(&b));
	__asm__ volatile("int3");
	CHECK(has(&b));
	on_signal(SIGUSR1, changes);
	CHECK_PT(pthread_kill(pthread_self(), SIGUSR1));
	CHECK(has(&in_handler));
	return arg;
}

static int is_spinning;

static void *is_interrupted(void *arg)
{
	struct block b;

	take(&b);
	expected = &b;
	STORE(&is_spinning, 1);
	while (LOAD(&is_spinning))
		CHECK(word_at_base() == (uintptr_t)&b);
	CHECK(has(&b));
	return arg;
}

static inline void interrupt(void)
{
	pthread_t t;

	on_signal(SIGUSR1, sees);
	STORE(&nr_handled, 0);
	t = start(is_interrupted, NULL);
	while (!LOAD(&is_spinning))
		sched_yield();
	for (int i = 0; i < 50; i++) {
		int before = LOAD(&nr_handled);

		CHECK_PT(pthread_kill(t, SIGUSR1));
		while (LOAD(&nr_handled) == before)
			sched_yield();
	}
	STORE(&is_spinning, 0);
	join(t);
	ok("signals while it computes");
}

static inline void ends_well(pid_t pid)
{
	CHECK_SYS(pid);
	if (pid > 0)
		reap(pid);
}

static void *makes_processes(void *arg)
{
	char *const argv[] = { "true", NULL }, *const envp[] = { NULL };
	struct block b;
	pid_t pid;

	take(&b);
	pid = fork();
	if (pid == 0) {
		CHECK(has(&b));
		join(start(is_inherited, &b));
		run(calls, "in a child");
		CHECK(has(&b));
		_exit(finish());
	}
	ends_well(pid);
	CHECK(has(&b));
	pid = vfork();
	if (pid == 0)
		_exit(word_at_base() != (uintptr_t)&b);
	ends_well(pid);
	CHECK(has(&b));
	CHECK_PT(posix_spawn(&pid, "/bin/true", NULL, NULL, argv, envp));
	reap(pid);
	CHECK(has(&b));
	return arg;
}

/* Linux keeps something for its kernel thread from then on. */
static void *is_bound(void *arg)
{
	struct block b;

	take(&b);
	CHECK_SYS(unshare(CLONE_FS));
	CHECK(has(&b));
	join(start(is_inherited, &b));
	return calls(arg);
}

static inline void run_all(void)
{
	run(calls, "calls");
	run(spins, "preempted");
	join(start(makes, NULL));
	ok("inherited");
	join(start(raises, NULL));
	ok("handlers");
	interrupt();
	join(start(makes_processes, NULL));
	ok("processes");
	run(is_bound, "with something of its own");
	CHECK_ERRNO(syscall(SYS_arch_prctl, ARCH_SET_GS, -4096l), EPERM);
	ok("no address");
}

#endif
