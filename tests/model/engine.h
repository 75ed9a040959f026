// SPDX-License-Identifier: Apache-2.0
/*
 * Shared by the files of the checker: model.c chooses who goes on, memory.c keeps the store buffers and
 * performs operations, words.c knows which words are shared, report.c tells what was found.
 */
#ifndef WF_TESTS_ENGINE_H
#define WF_TESTS_ENGINE_H

#include "base/san.h"
#include "model.h"

#define MAX_CPUS 16
#define MAX_STACKS 160
#define MAX_BUFFER 12
#define MAX_CHOICES 16384
#define MAX_STEPS 12000 /* more: it does not end */
#define MAX_LOG MAX_STEPS
#define MAX_TURN 300 /* steps of one CPU in a row: it may wait for another one without saying so */
#define NR_BLOCKS 256u
#define BLOCK_BYTES 4096u

struct store {
	void *at;
	size_t size;
	uint64_t value, under; /* under: what memory holds for the others, while we run */
};

enum cpu_state {
	CPU_RUNS,
	CPU_WAITS,
	CPU_SPINS,
	CPU_DONE
};

struct cpu {
	const char *name;
	void *sp, *gs;
	enum cpu_state state;
	bool (*is_ready)(void *);
	void *arg;
	int64_t until;
	bool is_timed_out;
	bool is_interrupted, is_put_off; /* an interrupt waits; not for the next step */
	bool is_closed;                  /* none is taken */
	bool is_broken;                  /* one came during the last wait */
	uint64_t seen_writes;            /* CPU_SPINS: goes on when somebody wrote */
	int nr_stores;
	struct store buffer[MAX_BUFFER];
	void (*fn)(void *);
	void *fn_arg;
};

extern struct engine {
	const struct model *model;
	bool is_running; /* the code under test runs; else setup() or check() */
	struct cpu cpus[MAX_CPUS];
	struct cpu *self; /* number cur */
	int nr_cpus, cur, budget, nr_pending, nr_stacks, steps, turn;
	int next_choice; /* the step of the path's next one; 0: there is none */
	uint64_t writes, spun_at;
	int64_t now;
	void *main_sp;
	struct wf_san_stack main_stack, stacks[MAX_STACKS];
	char *arena;
	void (*on_interrupt)(void);
	bool is_random;
	uint64_t rng;
	/* step: at which the choice was made; is_pick: it was of who goes on, of which a step has one at most */
	struct {
		uint8_t chosen, options;
		uint16_t step : 15, is_pick : 1;
	} path[MAX_CHOICES];
	int depth, length;
	struct {
		const char *func, *op;
		int cpu;
	} log[MAX_LOG];
	struct model_result result;
} engine;

WF_INLINE struct cpu *engine_cpu(void)
{
	return engine.self;
}

/* model.c. One of n; 0 is what costs nothing. */
int engine_choose(int n);
__attribute__((noreturn, cold)) void engine_end_at_limit(void);

/* A step for the log; too many are an end. */
WF_INLINE void engine_step(const char *func, const char *op)
{
	if (engine.steps < MAX_LOG) {
		engine.log[engine.steps].func = func;
		engine.log[engine.steps].op = op;
		engine.log[engine.steps].cpu = engine.cur;
	}
	if (WF_UNLIKELY(++engine.steps == MAX_STEPS))
		engine_end_at_limit();
}

void engine_point_with_choice(void);

/*
 * A step at which another CPU may go on, and the running one's interrupt come. Where the path leads on beyond it, and here
 * to nobody else, who could have gone on was seen when it was found: the executions of a search have most of their steps
 * in common.
 */
WF_INLINE void engine_point(const char *func, const char *op)
{
	const struct cpu *c = engine_cpu();

	if (!engine.is_running)
		return;
	engine_step(func, op);
	if (c->state == CPU_RUNS && !c->is_interrupted && engine.turn < MAX_TURN &&
	    (engine.budget <= 0 || engine.steps < engine.next_choice))
		engine.turn++;
	else
		engine_point_with_choice();
}

/* memory.c. The stores in c's buffer disappear from memory before others run, and come back before c does. */
void engine_hide_stores(struct cpu *c);
void engine_show_stores(struct cpu *c);
/* Of all CPUs, whose buffers are hidden. */
void engine_drain_all(void);
/* The running CPU's stores are in memory already: they merely stop being pending. */
void engine_flush(struct cpu *c);

/* words.c. */
void engine_words_reset(void);
/* Knowledge of words: a byte for each address, by blocks, so that what lies together is noted together. */
enum {
	WORD_USER = 0x3f, /* 0: none yet */
	WORD_IS_SHARED = 0x40,
	WORD_WAS_SHARED = 0x80, /* when this search began */
};

extern uintptr_t engine_block_numbers[NR_BLOCKS]; /* 0: of none */
extern uint8_t engine_block_words[NR_BLOCKS][BLOCK_BYTES];

WF_INLINE size_t engine_block_place(uintptr_t number)
{
	return number * 0x9e3779b97f4a7c15ull >> 56;
}

uint8_t *engine_word_find(const void *at);
/* A first user, or one more. */
void engine_word_use(uint8_t *word, uint8_t user);

/* Note a use by the running CPU. False: nobody else uses it, so that its moment makes no difference. */
WF_INLINE bool engine_word_is_shared(const void *at)
{
	uint8_t user = (uint8_t)(1 + engine.cur * 2 + engine_cpu()->is_closed), *word;
	uintptr_t number = (uintptr_t)at / BLOCK_BYTES;
	size_t i = engine_block_place(number);

	if (WF_LIKELY(engine_block_numbers[i] == number))
		word = &engine_block_words[i][(uintptr_t)at % BLOCK_BYTES];
	else
		word = engine_word_find(at);
	if (!(*word & WORD_IS_SHARED) && *word != user)
		engine_word_use(word, user);
	return *word & WORD_WAS_SHARED;
}
/* Were words found to be shared that passed for private until now? They are shared from now on. */
bool engine_words_grew(void);

#endif
