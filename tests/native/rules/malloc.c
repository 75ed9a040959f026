// SPDX-License-Identifier: Apache-2.0
/* Memory of the allocator of the program, whichever it is: kept over waits, grown, and freed by another thread. */
#include "rules.h"

#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define NR_SLOTS 64

struct block {
	size_t bytes;
	unsigned char mark, text[];
};

/* Blocks that anybody may take. */
static struct block *slots[NR_SLOTS];

static struct block *make(size_t bytes, unsigned mark)
{
	struct block *b = mark % 3 ? malloc(sizeof(*b) + bytes)
				   : memalign(64u << mark % 4, sizeof(*b) + bytes);

	if (!CHECK(b != NULL))
		exit(2);
	b->bytes = bytes;
	b->mark = (unsigned char)mark;
	memset(b->text, b->mark, bytes);
	return b;
}

static bool is_whole(const struct block *b)
{
	/* Of long ones some bytes in all parts. */
	for (size_t i = 0; i < b->bytes; i += 1 + b->bytes / 1024)
		if (b->text[i] != b->mark)
			return false;
	return true;
}

static struct block *grow(struct block *b, size_t bytes)
{
	b = realloc(b, sizeof(*b) + bytes);
	if (!CHECK(b != NULL))
		exit(2);
	if (bytes > b->bytes)
		memset(b->text + b->bytes, b->mark, bytes - b->bytes);
	b->bytes = bytes;
	return b;
}

static void allocates(int nr)
{
	static const size_t sizes[] = { 0, 1, 24, 100, 1000, 5000, 40000, 300000 };
	struct block *kept = make(500, (unsigned)nr);
	unsigned x = (unsigned)nr + 1;

	for (int i = 0; i < 120; i++) {
		struct block *b = make(sizes[(x >> 16) % 8], x >> 20);

		x = x * 1103515245 + 12345;
		if (i % 5 == 0)
			rule_turn();
		b = grow(b, sizes[(x >> 16) % 8]);
		CHECK(is_whole(b));
		b = __atomic_exchange_n(&slots[(x >> 8) % NR_SLOTS], b, __ATOMIC_ACQ_REL);
		if (b)
			CHECK(is_whole(b));
		free(b);
	}
	CHECK(is_whole(kept));
	free(kept);
}

static void free_rest(enum rule_place place)
{
	(void)place;
	for (int i = 0; i < NR_SLOTS; i++) {
		if (slots[i])
			CHECK(is_whole(slots[i]));
		free(slots[i]);
		slots[i] = NULL;
	}
}

RULE(memory_is_kept_grown_and_freed_elsewhere, allocates, free_rest)
