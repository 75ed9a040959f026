// SPDX-License-Identifier: Apache-2.0
/*
 * The model checker: runs the real lock-free code under every schedule of small size.
 *
 * Each virtual CPU is a context of its own; all of them run on one kernel thread. At each atomic operation
 * the checker chooses who goes on, and at each plain store whether it stays in the CPU's store buffer
 * (x86-TSO). Choices that differ from "the same CPU goes on, its store is seen at once" cost one of the
 * bound; a search with bound b visits every execution that needs at most b of them. So no report means: none
 * within the bound. Words that one CPU alone uses leave nothing to choose (words.c).
 *
 * Store buffers: a CPU's own pending stores are written to memory while it runs and taken out again while
 * others run, so that plain reads of its own stores are right without instrumentation.
 */
#ifndef WF_TESTS_MODEL_H
#define WF_TESTS_MODEL_H

#include "base/base.h"

struct model {
	void (*setup)(void); /* fresh state and model_cpu() for each CPU */
	void (*check)(void); /* nothing can run any more: is everything as it must be? */
	int bound;
	uint64_t walks;                      /* random executions after those, without a bound */
	const char *mutate_func, *mutate_op; /* NULL: the code as it is */
};

struct model_result {
	uint64_t executions;
	bool is_complete; /* every execution within the bound */
	bool has_failed;
	char what[160];
};

struct model_result model_explore(const struct model *m);
/* Random schedules from a seed instead of all of them: no bound. */
struct model_result model_walk(const struct model *m, uint64_t seed, uint64_t executions);

/* TAP checks around model_explore(): the code holds; the mutated code is caught. */
void model_verify(const struct model *m);
void model_verify_walk(const struct model *m, uint64_t executions);
void model_catches(struct model m, const char *func, const char *op);
/* WEFT_SEED, or 1. */
uint64_t model_seed(void);

/* In setup(): a CPU that runs fn(arg) with base register gs. Returns its number. */
int model_cpu(const char *name, void (*fn)(void *), void *arg, void *gs);
/* A stack for a weft thread, good for one execution; returns its top. */
#define MODEL_STACK_BYTES (32ul << 10)
void *model_stack_top(void);

/* In CPUs: wait, as in the kernel, until is_ready(arg) or the virtual clock reaches until. False: time. */
bool model_wait(bool (*is_ready)(void *), void *arg, int64_t until);
/* Did an interrupt end the last one? */
bool model_is_wait_broken(void);
void model_expect(bool holds, const char *what);
/* A point at which another CPU may go on. */
void model_step(void);
int64_t model_now(void);
uint32_t model_random(uint32_t n);
/* Interrupt cpu at its next step, also out of a wait; fn runs there, with further interrupts blocked until it returns. */
void model_on_interrupt(void (*fn)(void));
void model_interrupt(int cpu);
void model_open_interrupts(void);
/* On that CPU, -1 for the caller's: none is taken until it opens them. */
void model_close_interrupts(int cpu);
/* Every CPU's stores become visible. */
void model_membarrier(void);
void model_fence(const char *func);
void model_pause(void);
/* Does the model that is explored leave op out of func? For machines that have something to be left out. */
bool model_is_mutated(const char *func, const char *op);

#endif
