// SPDX-License-Identifier: Apache-2.0
/* futex: where addresses go in the table of waiters, by a key that nobody knows. */
#include "linux/futex_table.h"

#include "tap.h"

#include <string.h>

#define BUCKETS (LX_FUTEX_GROUPS * LX_FUTEX_GROUP_BUCKETS)
#define NR 4096u
#define KEYS 2000

static uint64_t seed = 88172645463325252ull;

static uint64_t next_random(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static uint32_t *addr_of(uint64_t n)
{
	return (uint32_t *)(uintptr_t)n; /* never looked at */
}

static size_t bucket_of(uint64_t addr)
{
	return (size_t)(lx_futex_bucket_of(addr_of(addr)) - lx_futex_group(0));
}

/* How many of the addresses share the fullest bucket. */
static unsigned fullest(const uint64_t *addrs, size_t nr)
{
	static unsigned counts[BUCKETS];
	unsigned most = 0;

	memset(counts, 0, sizeof(counts));
	for (size_t i = 0; i < nr; i++) {
		unsigned n = ++counts[bucket_of(addrs[i])];

		most = n > most ? n : most;
	}
	return most;
}

TEST(every_bucket_is_in_the_table)
{
	lx_futex_init(next_random());
	for (int i = 0; i < 100000; i++)
		CHECK(bucket_of(next_random() & ((1ull << 47) - 4)) < BUCKETS);
}

TEST(addresses_chosen_for_one_key_are_spread_by_another)
{
	static uint64_t chosen[NR];
	unsigned worst = 0;
	size_t nr = 0, bucket;

	lx_futex_init(0x9e3779b97f4a7c15ull);
	bucket = bucket_of(0x7f0000001000);
	for (uint64_t addr = 0x7f0000001000; nr < NR; addr += 64)
		if (bucket_of(addr) == bucket)
			chosen[nr++] = addr;
	CHECK_EQ(fullest(chosen, nr), NR);
	for (int i = 0; i < KEYS; i++) {
		lx_futex_init(next_random());
		worst = fullest(chosen, nr) > worst ? fullest(chosen, nr) : worst;
	}
	CHECK(worst < NR / 64);
}

TEST(regular_distances_are_spread_by_every_key)
{
	static uint64_t addrs[NR];
	unsigned worst = 0;

	for (int key = 0; key < KEYS; key++) {
		uint64_t distance = 4 * (1 + next_random() % 64);

		lx_futex_init(next_random());
		for (int shift = 0; shift < 22; shift++) {
			unsigned n;

			for (size_t i = 0; i < NR; i++)
				addrs[i] = 0x550000000000 + (i << shift) * distance;
			n = fullest(addrs, NR);
			worst = n > worst ? n : worst;
		}
	}
	CHECK(worst < NR / 16);
}
