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

uintptr_t engine_block_numbers[NR_BLOCKS];
uint8_t engine_block_words[NR_BLOCKS][BLOCK_BYTES];
static uint32_t nr_blocks;
static bool has_grown;

_Static_assert(1 + MAX_CPUS * 2 <= WORD_USER, "each has two users");

void engine_words_reset(void)
{
	for (size_t i = 0; i < NR_BLOCKS; i++)
		if (engine_block_numbers[i])
			memset(engine_block_words[i], 0, BLOCK_BYTES);
	memset(engine_block_numbers, 0, sizeof(engine_block_numbers));
	nr_blocks = 0;
	has_grown = false;
}

uint8_t *engine_word_find(const void *at)
{
	uintptr_t number = (uintptr_t)at / BLOCK_BYTES;
	size_t i = engine_block_place(number);

	for (; engine_block_numbers[i] != number; i = (i + 1) % NR_BLOCKS)
		if (!engine_block_numbers[i]) {
			if (++nr_blocks > NR_BLOCKS / 2)
				abort();
			engine_block_numbers[i] = number;
			break;
		}
	return &engine_block_words[i][(uintptr_t)at % BLOCK_BYTES];
}

void engine_word_use(uint8_t *word, uint8_t user)
{
	if (!*word) {
		*word = user;
	} else {
		*word |= WORD_IS_SHARED;
		has_grown = true;
	}
}

bool engine_words_grew(void)
{
	if (!has_grown)
		return false;
	for (size_t i = 0; i < NR_BLOCKS; i++)
		for (size_t j = 0; engine_block_numbers[i] && j < BLOCK_BYTES; j++)
			if (engine_block_words[i][j] & WORD_IS_SHARED)
				engine_block_words[i][j] |= WORD_WAS_SHARED;
	has_grown = false;
	return true;
}
