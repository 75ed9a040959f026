// SPDX-License-Identifier: Apache-2.0
/*
 * A system call keeps every register of the program but three: also those of the x87 and vector units, which
 * compilers keep values in across an inline `syscall` instruction. Other threads run meanwhile, and handlers.
 */
#if defined(__x86_64__)
#include "vectors.h"

#include <linux/futex.h>

#define NR 4
#define ROUNDS 50

static int fds[2], turn;

/* Load s, make the call, store what the registers are then. One piece, so that nothing comes between. */
static long call_with(const struct state *s, struct state *after, long nr, long a, long b, long c,
		      long d)
{
	struct state mine;
	long ret;

	memset(&mine, 0, sizeof(mine));
	memset(after, 0, sizeof(*after));
	store_state(&mine);
	__asm__ volatile("movl %[mask], %%eax\n"
			 "xorl %%edx, %%edx\n"
			 "xrstor64 (%[s])\n"
			 "movq %[nr], %%rax\n"
			 "movq %[c], %%rdx\n"
			 "movq %[d], %%r10\n"
			 "syscall\n"
			 "movq %%rax, %%rcx\n"
			 "movl %[mask], %%eax\n"
			 "xorl %%edx, %%edx\n"
			 "xsave64 (%[after])\n"
			 "xrstor64 (%[mine])\n"
			 : "=&c"(ret)
			 : [mask] "m"(state_mask), [s] "r"(s), [after] "r"(after),
			   [mine] "r"(&mine), [nr] "m"(nr), "D"(a), "S"(b), [c] "m"(c), [d] "m"(d)
			 : "rax", "rdx", "r10", "r11", "memory");
	return ret;
}

static void check_call(unsigned seed, long nr, long a, long b, long c, long d)
{
	struct state s, after;
	int part;

	fill_state(&s, seed);
	CHECK(call_with(&s, &after, nr, a, b, c, d) >= -EAGAIN);
	part = differs(&s, &after);
	if (part >= 0) {
		dprintf(2, "call %ld destroyed part %d of the registers\n", nr, part);
		ADD(&abi_failures, 1);
	}
}

static void *yields(void *arg)
{
	for (unsigned i = 0; i < ROUNDS; i++)
		check_call((unsigned)(intptr_t)arg * ROUNDS + i, SYS_sched_yield, 0, 0, 0, 0);
	return NULL;
}

/* A ring: each waits for its turn, and says whose is next. */
static void *waits_for_turn(void *arg)
{
	int me = (int)(intptr_t)arg, now;

	for (unsigned i = 0; i < ROUNDS; i++) {
		while ((now = LOAD(&turn)) % NR != me)
			check_call((unsigned)now, SYS_futex, (long)&turn,
				   FUTEX_WAIT | FUTEX_PRIVATE_FLAG, now, 0);
		ADD(&turn, 1);
		check_call(i, SYS_futex, (long)&turn, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, NR, 0);
	}
	return NULL;
}

static void *reads(void *arg)
{
	char c;

	check_call((unsigned)(intptr_t)arg, SYS_read, fds[0], (long)&c, 1, 0);
	return NULL;
}

static void *signals_itself(void *arg)
{
	for (unsigned i = 0; i < ROUNDS; i++)
		check_call((unsigned)(intptr_t)arg * ROUNDS + i, SYS_tgkill, getpid(), gettid(),
			   SIGUSR1, 0);
	return NULL;
}

static void run_all(void *(*fn)(void *), const char *name)
{
	pthread_t t[NR];

	for (intptr_t i = 0; i < NR; i++)
		t[i] = start(fn, (void *)i);
	if (fn == reads) {
		let_others_block();
		CHECK_EQ(write(fds[1], "1234", NR), NR);
	}
	for (int i = 0; i < NR; i++)
		join(t[i]);
	ok(name);
}

int main(void)
{
	int skip = begin_destroying();

	if (skip)
		return skip;
	CHECK_SYS(pipe(fds));
	run_all(yields, "sched_yield");
	run_all(waits_for_turn, "futex");
	run_all(reads, "read");
	run_all(signals_itself, "a handler in between");
	return finish();
}
#else
int main(void)
{
	return 77; /* EXIT_SKIP */
}
#endif
