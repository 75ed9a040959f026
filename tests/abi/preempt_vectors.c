// SPDX-License-Identifier: Apache-2.0
/*
 * Preemption keeps the whole machine: every x87 and vector register that the processor has, the general ones and
 * the flags, also of threads whose signal handlers destroy them all.
 */
#if defined(__x86_64__)
#include "vectors.h"

#define NR 6
#define RUN_NS (200 * MS)
#define SPINS 20000

static int64_t end_ns;
static int nr_wanted;
static pthread_t threads[NR];

/*
 * Load s, count in a general register with all others full, store what the registers are then. Not
 * 0: a general register or the carry flag, which lives across it, was not what it should be.
 */
static long spin_with(const struct state *s, struct state *after, long seed)
{
	struct state mine;
	long sum;

	memset(&mine, 0, sizeof(mine));
	memset(after, 0, sizeof(*after));
	store_state(&mine);
	__asm__ volatile("movl %[mask], %%eax\n"
			 "xorl %%edx, %%edx\n"
			 "xrstor64 (%[s])\n"
			 "movq %[seed], %%r8\n"
			 "movq %%r8, %%r9\n"
			 "movq %%r8, %%r10\n"
			 "movq %%r8, %%r11\n"
			 "movq %%r8, %%r12\n"
			 "movq %%r8, %%r13\n"
			 "movq %%r8, %%r14\n"
			 "movq %%r8, %%r15\n"
			 "movq %[spins], %%rcx\n"
			 "stc\n"
			 "1:\n"
			 "leaq 1(%%r8), %%r8\n"
			 "decq %%rcx\n"
			 "jnz 1b\n"
			 "setc %%al\n"
			 "movzbl %%al, %%eax\n"
			 "subq %%r9, %%r8\n" /* spins */
			 "addq %%rax, %%r8\n"
			 "xorq %%r11, %%r10\n"
			 "addq %%r10, %%r8\n"
			 "xorq %%r13, %%r12\n"
			 "addq %%r12, %%r8\n"
			 "xorq %%r15, %%r14\n"
			 "addq %%r14, %%r8\n"
			 "movl %[mask], %%eax\n"
			 "xorl %%edx, %%edx\n"
			 "xsave64 (%[after])\n"
			 "xrstor64 (%[mine])\n"
			 "movq %%r8, %[sum]\n"
			 : [sum] "=m"(sum)
			 : [mask] "m"(state_mask), [s] "D"(s), [after] "S"(after),
			   [mine] "b"(&mine), [seed] "m"(seed), [spins] "i"(SPINS)
			 : "rax", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14",
			   "r15", "cc", "memory");
	return sum - SPINS - 1;
}

/* A leaf: its variables lie in the red zone. */
static __attribute__((noinline)) int spin_in_red_zone(int seed)
{
	volatile int a[16];

	for (int i = 0; i < 16; i++)
		a[i] = seed + i;
	for (int n = 0; n < SPINS; n++)
		a[n % 16]++;
	for (int i = 0; i < 16; i++)
		if (a[i] != seed + i + SPINS / 16)
			return 0;
	return 1;
}

/* On a busy machine the time may be over before the first signal comes. */
static int is_over(void)
{
	return now_ns() >= end_ns && LOAD(&nr_destroyed) >= nr_wanted;
}

static void *spins(void *arg)
{
	unsigned seed = (unsigned)(intptr_t)arg;
	struct state *s = aligned_alloc(64, 2 * sizeof(*s));
	int part;

	do {
		fill_state(&s[0], ++seed);
		CHECK_EQ(spin_with(&s[0], &s[1], seed * 0x123456789l), 0);
		part = differs(&s[0], &s[1]);
		if (part >= 0) {
			dprintf(2, "part %d of the registers changed\n", part);
			ADD(&abi_failures, 1);
		}
		CHECK(spin_in_red_zone((int)seed));
	} while (!is_over());
	free(s);
	return NULL;
}

static void *signals_all(void *arg)
{
	/* Each signal takes a while of the one that it is for: it must get on, too. */
	do {
		for (int i = 0; i < NR; i++)
			(void)pthread_kill(threads[i], SIGUSR1);
		sleep_ns(MS);
	} while (!is_over());
	return arg;
}

static void run(const char *name, int has_signals)
{
	pthread_t killer;

	end_ns = now_ns() + RUN_NS;
	nr_wanted = has_signals;
	for (intptr_t i = 0; i < NR; i++)
		threads[i] = start(spins, (void *)(i * 1000));
	if (has_signals)
		killer = start(signals_all, NULL);
	if (has_signals)
		join(killer);
	for (int i = 0; i < NR; i++)
		join(threads[i]);
	ok(name);
}

int main(void)
{
	int skip = begin_destroying();

	if (skip)
		return skip;
	run("preempted", 0);
	run("preempted, with handlers that destroy all registers", 1);
	return finish();
}
#else
int main(void)
{
	return 77; /* EXIT_SKIP */
}
#endif
