// SPDX-License-Identifier: Apache-2.0
/*
 * The model checker; see model.h. Here: who goes on, switches, waits, interrupts, executions.
 *
 * The choices of an execution are a path; the search takes the last of them that has another option, and repeats.
 */
#include "engine.h"
#include "model_atomic.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* The real ones: the core is compiled against model_arch_switch() and friends. */
void wf_arch_switch(void **save_sp, void *to_sp);
void wf_arch_switch_last(void *to_sp) __attribute__((noreturn));
struct wf_ucontext;
void *wf_arch_make_context(void *top, void (*entry)(void *), void *arg);
void *wf_arch_make_resume(void *top, void (*entry)(void *), void *arg, struct wf_ucontext *uc);

struct engine engine;
void *model_gs;
char model_stranger[8192] __attribute__((aligned(64)));

/* --- switching --- */

static struct wf_san_stack *stack_of(const void *sp)
{
	size_t i = (size_t)((const char *)sp - engine.arena) / MODEL_STACK_BYTES;

	return (const char *)sp >= engine.arena && i < MAX_STACKS ? &engine.stacks[i]
								  : &engine.main_stack;
}

void model_arch_switch(void **save_sp, void *to_sp)
{
	void *fake = NULL;

	wf_san_leave(&fake, stack_of(to_sp));
	wf_arch_switch(save_sp, to_sp);
	wf_san_arrive(fake);
}

__attribute__((noreturn)) void model_arch_switch_last(void *to_sp);
void model_arch_switch_last(void *to_sp)
{
	/* Never NULL for out_fake: the sanitizer frees the fake stack too early for code that still runs here. */
	void *fake = NULL;

	wf_san_leave(&fake, stack_of(to_sp));
	wf_arch_switch_last(to_sp);
}

void *model_stack_top(void)
{
	char *bottom = engine.arena + (size_t)engine.nr_stacks * MODEL_STACK_BYTES;

	if (engine.nr_stacks == MAX_STACKS)
		abort();
	wf_san_stack_init(&engine.stacks[engine.nr_stacks++], bottom, MODEL_STACK_BYTES);
	return bottom + MODEL_STACK_BYTES;
}

/* Some are made for stacks that are big enough for the core, but not for the checker below it. */
static void *big_enough(void *top)
{
	return stack_of((char *)top - 1) == &engine.main_stack ? model_stack_top() : top;
}

void *model_arch_make_context(void *top, void (*entry)(void *), void *arg);
void *model_arch_make_context(void *top, void (*entry)(void *), void *arg)
{
	return wf_arch_make_context(big_enough(top), entry, arg);
}

void *model_arch_make_resume(void *top, void (*entry)(void *), void *arg, struct wf_ucontext *uc);
void *model_arch_make_resume(void *top, void (*entry)(void *), void *arg, struct wf_ucontext *uc)
{
	return wf_arch_make_resume(big_enough(top), entry, arg, uc);
}

static void end_execution(void)
{
	model_arch_switch_last(engine.main_sp);
}

static void fail(const char *what)
{
	if (!engine.result.has_failed)
		snprintf(engine.result.what, sizeof(engine.result.what), "%s", what);
	engine.result.has_failed = true;
}

void model_expect(bool holds, const char *what)
{
	if (holds)
		return;
	fail(what);
	if (engine.is_running)
		end_execution();
}

/* --- choosing --- */

static void at_depth(int depth)
{
	engine.depth = depth;
	engine.next_choice = depth < engine.length ? engine.path[depth].step : 0;
}

static uint64_t next_random(void)
{
	engine.rng = engine.rng * 6364136223846793005ull + 1442695040888963407ull;
	return engine.rng >> 33;
}

uint32_t model_random(uint32_t n)
{
	return (uint32_t)next_random() % n;
}

int engine_choose(int n)
{
	if (n == 1)
		return 0;
	if (engine.is_random)
		return next_random() % 4 ? 0 : (int)(next_random() % (unsigned)n);
	if (engine.depth == MAX_CHOICES) {
		fail("the model's path is too long");
		end_execution();
	}
	if (engine.depth == engine.length) {
		engine.path[engine.length].chosen = 0;
		engine.path[engine.length].step = (uint16_t)engine.steps & 0x7fff;
		engine.path[engine.length].is_pick = false;
		engine.path[engine.length++].options = (uint8_t)n;
	}
	if (engine.path[engine.depth].options != n) {
		fail("the model is not deterministic");
		end_execution();
	}
	at_depth(engine.depth + 1);
	return engine.path[engine.depth - 1].chosen;
}

/* Go to the next unvisited path; false when all were visited. */
static bool next_path(void)
{
	while (engine.length &&
	       engine.path[engine.length - 1].chosen + 1 == engine.path[engine.length - 1].options)
		engine.length--;
	if (!engine.length)
		return false;
	engine.path[engine.length - 1].chosen++;
	return true;
}

static bool is_ready(struct cpu *c)
{
	switch (c->state) {
	case CPU_RUNS:
		return true;
	case CPU_WAITS:
		return c->is_timed_out || c->is_ready(c->arg);
	case CPU_SPINS:
		return c->seen_writes != engine.writes;
	case CPU_DONE:
		break;
	}
	return false;
}

static bool can_run(struct cpu *c)
{
	return is_ready(c) || (c->is_interrupted && !c->is_closed && c->state != CPU_DONE);
}

/* Nobody can run: let time pass until somebody's wait ends. False: nobody waits for time. */
static bool pass_time(void)
{
	int64_t first = WF_NEVER;

	for (int i = 0; i < engine.nr_cpus; i++)
		if (engine.cpus[i].state == CPU_WAITS)
			first = WF_MIN(first, engine.cpus[i].until);
	if (first == WF_NEVER)
		return false;
	engine.now = WF_MAX(engine.now, first);
	for (int i = 0; i < engine.nr_cpus; i++)
		engine.cpus[i].is_timed_out = engine.cpus[i].state == CPU_WAITS &&
					      engine.cpus[i].until <= engine.now;
	return true;
}

static bool release_spinners(void)
{
	bool any = false;

	for (int i = 0; i < engine.nr_cpus; i++)
		if (engine.cpus[i].state == CPU_SPINS) {
			engine.cpus[i].seen_writes--;
			any = true;
		}
	return any;
}

/* The choice of who goes on, with all buffers hidden. */
static int pick_cpu(void)
{
	for (;;) {
		int options[MAX_CPUS], n = 0, next;
		bool may_stay = can_run(engine_cpu()), is_turn_over = engine.turn >= MAX_TURN;
		bool may_go = !may_stay || is_turn_over || engine.budget > 0;

		if (may_stay && !is_turn_over)
			options[n++] = engine.cur;
		for (int i = 0; i < engine.nr_cpus && may_go; i++)
			if (i != engine.cur && can_run(&engine.cpus[i]))
				options[n++] = i;
		if (!n && may_stay)
			options[n++] = engine.cur;
		if (!n && engine.nr_pending) {
			engine_drain_all();
			continue;
		}
		/* One that still spins after another look may wait for what time brings. */
		if (!n && engine.spun_at != engine.writes && release_spinners()) {
			engine.spun_at = engine.writes;
			continue;
		}
		if (!n && (pass_time() || release_spinners()))
			continue;
		if (!n)
			end_execution();
		if (is_turn_over || engine.cpus[engine.cur].state ==
					    CPU_SPINS) { /* in turn, so that everybody comes */
			for (int i = 0; i < n; i++)
				if (options[i] > engine.cur)
					return options[i];
			return options[0];
		}
		next = options[engine_choose(n)];
		if (n > 1 && !engine.is_random)
			engine.path[engine.depth - 1].is_pick = true;
		if (may_stay && next != engine.cur && !engine.is_random)
			engine.budget--;
		return next;
	}
}

/* The path leads on, and here to nobody else; engine_point() knows of the steps before its next choice. */
static bool stays_by_path(void)
{
	if (engine.depth == engine.length || engine.turn >= MAX_TURN || engine.is_random ||
	    engine.path[engine.depth].step < engine.steps)
		return false;
	if (engine.path[engine.depth].step > engine.steps || !engine.path[engine.depth].is_pick)
		return true;
	if (engine.path[engine.depth].chosen)
		return false;
	at_depth(engine.depth + 1);
	return true;
}

static void let_others_run(void)
{
	struct cpu *self = engine_cpu();
	int next;

	if (self->state == CPU_RUNS && engine.budget <= 0 && engine.turn++ < MAX_TURN)
		return;
	if (self->state == CPU_RUNS && engine.budget > 0 && stays_by_path()) {
		engine.turn++;
		return;
	}
	engine_hide_stores(self);
	next = pick_cpu();
	engine.turn = next == engine.cur && engine.turn < MAX_TURN ? engine.turn + 1 : 0;
	if (next != engine.cur) {
		engine.cur = next;
		engine.self = &engine.cpus[next];
		model_gs = engine.cpus[next].gs;
		model_arch_switch(&self->sp, engine.cpus[next].sp);
	}
	engine_show_stores(self);
}

/*
 * An interrupt comes at once, or for one of the bound at any later step; but it comes where the CPU would not go on
 * without it.
 */
static bool is_interrupted_now(struct cpu *c)
{
	if (!c->is_interrupted || c->is_closed)
		return false;
	if (!is_ready(c))
		return true;
	if (!engine.is_random && !c->is_put_off && engine.budget <= 0)
		return true;
	if (!engine_choose(2))
		return true;
	if (!engine.is_random && !c->is_put_off)
		engine.budget--;
	c->is_put_off = true;
	return false;
}

void engine_end_at_limit(void)
{
	fail("it does not end");
	end_execution();
	__builtin_unreachable();
}

void engine_point_with_choice(void)
{
	let_others_run();
	while (is_interrupted_now(engine_cpu())) {
		engine_cpu()->is_interrupted = engine_cpu()->is_put_off = false;
		engine_cpu()->is_closed = engine_cpu()->is_broken = true;
		engine_cpu()->state = CPU_RUNS;
		engine_flush(engine_cpu());
		engine.on_interrupt();
		engine_cpu()->is_closed = false; /* maybe another CPU */
	}
	engine_cpu()->state = CPU_RUNS;
}

void model_on_interrupt(void (*fn)(void))
{
	engine.on_interrupt = fn;
}

void model_interrupt(int cpu)
{
	engine.cpus[cpu].is_interrupted = true;
}

void model_open_interrupts(void)
{
	engine.cpus[engine.cur].is_closed = false;
}

void model_close_interrupts(int cpu)
{
	engine.cpus[cpu < 0 ? engine.cur : cpu].is_closed = true;
}

/* --- what CPUs do --- */

void model_step(void)
{
	engine_point("model", "step");
}

bool model_wait(bool (*is_ready)(void *), void *arg, int64_t until)
{
	struct cpu *c = engine_cpu();

	engine_flush(c); /* the kernel takes locks on the way to sleep */
	c->is_ready = is_ready;
	c->arg = arg;
	c->until = until;
	c->is_timed_out = until <= engine.now;
	c->state = CPU_WAITS;
	c->is_broken = false;
	engine_point("model", "wait");
	return is_ready(arg);
}

/* A spinning CPU goes on when somebody wrote, or when nobody else can. */
void model_pause(void)
{
	struct cpu *c = engine_cpu();

	if (!engine.is_running)
		return;
	c->state = CPU_SPINS;
	c->seen_writes = engine.writes;
	engine_point("model", "pause");
}

bool model_is_wait_broken(void)
{
	return engine_cpu()->is_broken;
}

int64_t model_now(void)
{
	return engine.now;
}

/* --- executions --- */

static void cpu_start(void *arg)
{
	struct cpu *c = arg;

	wf_san_arrive(NULL);
	c->fn(c->fn_arg);
	c->state = CPU_DONE;
	engine_point("model", "done");
	abort();
}

int model_cpu(const char *name, void (*fn)(void *), void *arg, void *gs)
{
	struct cpu *c = &engine.cpus[engine.nr_cpus];

	if (engine.nr_cpus == MAX_CPUS)
		abort();
	*c = (struct cpu){ .name = name, .gs = gs, .fn = fn, .fn_arg = arg, .until = WF_NEVER };
	c->sp = wf_arch_make_context(model_stack_top(), cpu_start, c);
	return engine.nr_cpus++;
}

void model_sys_reset(void);

static void run_once(void)
{
	engine.nr_cpus = engine.nr_stacks = engine.nr_pending = engine.steps = engine.turn =
		engine.cur = 0;
	engine.self = engine.cpus;
	at_depth(0);
	engine.budget = engine.is_random ? 1 : engine.model->bound;
	engine.writes = 1;
	engine.spun_at = 0;
	if (!engine.is_random)
		engine.rng = 1;
	engine.now = 1000 * WF_SEC;
	model_sys_reset();
	engine.model->setup();
	engine.result.executions++;
	engine.cur = engine_choose(engine.nr_cpus);
	engine.self = &engine.cpus[engine.cur];
	model_gs = engine.cpus[engine.cur].gs;
	engine.is_running = true;
	model_arch_switch(&engine.main_sp, engine.cpus[engine.cur].sp);
	engine.is_running = false;
	model_gs = NULL;
	if (!engine.result.has_failed && engine.model->check)
		engine.model->check();
}

static void begin(const struct model *model)
{
	pthread_attr_t attr;
	void *bottom = NULL;
	size_t bytes = 0;

	if (!engine.arena) {
		engine.arena = mmap(NULL, MAX_STACKS * MODEL_STACK_BYTES, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (engine.arena == MAP_FAILED || pthread_getattr_np(pthread_self(), &attr))
			abort();
		(void)pthread_attr_getstack(&attr, &bottom, &bytes);
		(void)pthread_attr_destroy(&attr);
		wf_san_stack_adopt(&engine.main_stack, bottom, bytes);
	}
	engine.model = model;
	engine.result = (struct model_result){ 0 };
	engine.length = 0;
	engine_words_reset();
}

struct model_result model_explore(const struct model *model)
{
	begin(model);
	engine.is_random = false;
	for (;;) {
		run_once();
		if (engine_words_grew()) {
			/* Again from the beginning: a failure may come of a store that was taken for private. */
			engine.result = (struct model_result){ 0 };
			engine.length = 0;
		} else if (engine.result.has_failed) {
			return engine.result;
		} else if (!next_path()) {
			break;
		}
	}
	engine.result.is_complete = true;
	return engine.result;
}

struct model_result model_walk(const struct model *model, uint64_t seed, uint64_t executions)
{
	begin(model);
	engine.is_random = true;
	for (uint64_t i = 0; i < executions && !engine.result.has_failed; i++) {
		engine.rng = (seed + i) * 0x9e3779b97f4a7c15ull;
		run_once();
	}
	return engine.result;
}
