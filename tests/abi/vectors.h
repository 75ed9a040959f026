// SPDX-License-Identifier: Apache-2.0
/*
 * The whole x87 and vector state that this processor has, as XSAVE lays it out: to be filled, loaded, stored
 * and compared.
 *
 * Included by: programs that show that this state stays what it is. Where there is no XSAVE they skip.
 */
#ifndef WEFT_TESTS_ABI_VECTORS_H
#define WEFT_TESTS_ABI_VECTORS_H

#include "check.h"

#include <cpuid.h>

#define STATE_BYTES 4096
#define LEGACY_BYTES 512
#define STATE_MASK 0xe7u /* x87, SSE, AVX, and the three parts of AVX-512 */

struct state {
	unsigned char at[STATE_BYTES];
} __attribute__((aligned(64)));

static unsigned state_mask;

static int has_state(void)
{
	unsigned a, b, c, d;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE))
		return 0;
	__asm__("xgetbv" : "=a"(state_mask), "=d"(d) : "c"(0));
	state_mask &= STATE_MASK;
	return __get_cpuid_count(13, 0, &a, &b, &c, &d) && b <= STATE_BYTES;
}

static void store_state(struct state *s)
{
	__asm__ volatile("xsave64 %0" : "+m"(*s) : "a"(state_mask), "d"(0));
}

static void load_state(const struct state *s)
{
	__asm__ volatile("xrstor64 %0" ::"m"(*s), "a"(state_mask), "d"(0) : "memory");
}

/* Where a part lies; 0 bytes: not on this machine. */
static unsigned part_at(unsigned part, unsigned *bytes)
{
	unsigned size = 0, at = 0, c, d;

	if (state_mask & 1u << part)
		(void)__get_cpuid_count(13, part, &size, &at, &c, &d);
	*bytes = size;
	return at;
}

/* Another pattern for every seed, in each register; eight numbers on the x87 stack, and both rounding modes. */
static void fill_state(struct state *s, unsigned seed)
{
	unsigned bytes, at;

	memset(s, 0, sizeof(*s));
	*(unsigned short *)s->at = (unsigned short)(0x37f | (seed % 4) << 10);
	s->at[4] = 0xff; /* all eight hold something */
	*(unsigned *)(s->at + 24) = 0x1f80 | (seed % 4) << 13;
	*(unsigned *)(s->at + 28) = 0;
	for (unsigned i = 0; i < 8; i++) {
		*(unsigned long *)(s->at + 32 + 16 * i) = 1ul << 63 | (seed * 8ul + i);
		*(unsigned short *)(s->at + 40 + 16 * i) = 0x3fff;
	}
	for (unsigned i = 160; i < 416; i++)
		s->at[i] = (unsigned char)(seed * 31 + i);
	for (unsigned part = 2; part < 8; part++) {
		at = part_at(part, &bytes);
		for (unsigned i = 0; i < bytes; i++)
			s->at[at + i] = (unsigned char)(seed * 37 + part * 11 + i);
	}
	*(unsigned long *)(s->at + LEGACY_BYTES) = state_mask;
}

/* The number of the first part that differs, or -1: x87 is 0, SSE 1, the others as the processor counts them. */
static int differs(const struct state *a, const struct state *b)
{
	unsigned bytes, at;

	if (memcmp(a->at, b->at, 2) != 0 || a->at[4] != b->at[4])
		return 0;
	for (unsigned i = 0; i < 8; i++)
		if (memcmp(a->at + 32 + 16 * i, b->at + 32 + 16 * i, 10) != 0)
			return 0;
	if (memcmp(a->at + 24, b->at + 24, 4) != 0 || memcmp(a->at + 160, b->at + 160, 256) != 0)
		return 1;
	for (unsigned part = 2; part < 8; part++) {
		at = part_at(part, &bytes);
		if (memcmp(a->at + at, b->at + at, bytes) != 0)
			return (int)part;
	}
	return -1;
}

static struct state garbage;
static int nr_destroyed; /* atomic */

static void destroys(int sig)
{
	(void)sig;
	load_state(&garbage);
	ADD(&nr_destroyed, 1);
}

/* From here on the handler of SIGUSR1 leaves nothing of this state. 0, or what to exit with. */
static int begin_destroying(void)
{
	struct sigaction sa = { .sa_handler = destroys };

	if (!has_state()) {
		dprintf(2, "no XSAVE\n");
		return EXIT_SKIP;
	}
	fill_state(&garbage, 0xabcdef);
	sigaction(SIGUSR1, &sa, NULL);
	return 0;
}

#endif
