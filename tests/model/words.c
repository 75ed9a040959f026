// SPDX-License-Identifier: Apache-2.0
/*
 * Which words more than one CPU uses. An operation on any other word can be moved to the next one on a shared word,
 * so the search makes no choice there; that leaves a tenth of the executions or less.
 *
 * It is learnt: a word is private until a second user was seen. Since a path is a row of choices, what is
 * learnt in an execution takes effect after it, and the search starts again. Interrupts of a CPU are users of their
 * own. A word that is written plainly, without an atomic operation, must not be what an atomic one waits for.
 */
#include "engine.h"

#include <stdlib.h>
#include <string.h>

#define NR_WORDS (1u << 14)

static struct word {
	const void *at;
	uint8_t user;
	bool is_shared, was_shared; /* was: when this search began */
} words[NR_WORDS];
static uint32_t nr_words;
static bool has_grown;

void engine_words_reset(void)
{
	memset(words, 0, sizeof(words));
	nr_words = 0;
	has_grown = false;
}

static struct word *find(const void *at)
{
	uint64_t i = ((uintptr_t)at >> 2) * 0x9e3779b97f4a7c15ull >> 50;

	while (words[i].at && words[i].at != at)
		i = (i + 1) % NR_WORDS;
	return &words[i];
}

bool engine_word_is_shared(const void *at)
{
	uint8_t user = (uint8_t)(1 + engine.cur * 2 + engine_cpu()->is_closed);
	struct word *w = find(at);

	if (!w->at) {
		if (++nr_words > NR_WORDS / 2)
			abort();
		*w = (struct word){ .at = at, .user = user };
	} else if (w->user != user && !w->is_shared) {
		w->is_shared = has_grown = true;
	}
	return w->was_shared;
}

bool engine_words_grew(void)
{
	if (!has_grown)
		return false;
	for (size_t i = 0; i < NR_WORDS; i++)
		words[i].was_shared = words[i].is_shared;
	has_grown = false;
	return true;
}
