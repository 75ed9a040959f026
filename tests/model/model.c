// SPDX-License-Identifier: Apache-2.0
/* The model checker; see model.h. */
#include "model.h"
#include "base/san.h"
#include "model_atomic.h"

#include "tap.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* The real ones: the core is compiled against model_arch_switch() and friends. */
void wf_arch_switch(void **save_sp, void *to_sp);
void wf_arch_switch_last(void *to_sp) __attribute__((noreturn));
void *wf_arch_make_context(void *top, void (*entry)(void *), void *arg);

#ifdef WF_SAN_ADDRESS
#define SLOWDOWN 1 /* the sanitizer takes its time: one choice less than usual */
#else
#define SLOWDOWN 0
#endif
#define MAX_CPUS 16
#define MAX_STACKS 160
#define MAX_BUFFER 12
#define MAX_CHOICES 16384
#define MAX_STEPS 12000 /* more: it does not end */
#define MAX_TURN 300 /* steps of one CPU in a row: it may wait for another one without saying so */
#define MAX_LOG MAX_STEPS
#define SHOWN_STEPS 150 /* of a failed execution's beginning, and of its end */

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
	uint64_t seen_writes; /* CPU_SPINS: goes on when somebody wrote */
	int nr_stores;
	struct store buffer[MAX_BUFFER];
	void (*fn)(void *);
	void *fn_arg;
};

static struct {
	const struct model *model;
	bool is_running; /* the code under test runs; else setup() or check() */
	struct cpu cpus[MAX_CPUS];
	int nr_cpus, cur, budget, nr_pending, nr_stacks, steps, turn;
	uint64_t writes;
	int64_t now;
	void *main_sp;
	struct wf_san_stack main_stack, stacks[MAX_STACKS];
	char *arena;
	bool is_random;
	uint64_t rng;
	struct {
		uint16_t chosen, options;
	} path[MAX_CHOICES];
	int depth, length;
	struct {
		const char *func, *op;
		int cpu;
	} log[MAX_LOG];
	struct model_result result;
} m;

void *model_gs;
char model_stranger[8192] __attribute__((aligned(64)));

/* --- switching --- */

static struct wf_san_stack *stack_of(const void *sp)
{
	size_t i = (size_t)((const char *)sp - m.arena) / MODEL_STACK_BYTES;

	return (const char *)sp >= m.arena && i < MAX_STACKS ? &m.stacks[i] : &m.main_stack;
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
	char *bottom = m.arena + (size_t)m.nr_stacks * MODEL_STACK_BYTES;

	if (m.nr_stacks == MAX_STACKS)
		abort();
	wf_san_stack_init(&m.stacks[m.nr_stacks++], bottom, MODEL_STACK_BYTES);
	return bottom + MODEL_STACK_BYTES;
}

static void end_execution(void)
{
	model_arch_switch_last(m.main_sp);
}

static void fail(const char *what)
{
	if (!m.result.has_failed)
		snprintf(m.result.what, sizeof(m.result.what), "%s", what);
	m.result.has_failed = true;
}

void model_expect(bool holds, const char *what)
{
	if (holds)
		return;
	fail(what);
	if (m.is_running)
		end_execution();
}

/* --- memory --- */

static uint64_t get(const void *at, size_t size)
{
	uint64_t v = 0;

	memcpy(&v, at, size);
	return v;
}

/* What c has in its buffer disappears from memory before others run, and comes back before c does. */
static void hide_stores(struct cpu *c)
{
	for (int i = c->nr_stores; i-- > 0;) {
		struct store *s = &c->buffer[i];

		s->value = get(s->at, s->size);
		memcpy(s->at, &s->under, s->size);
	}
}

static void show_stores(struct cpu *c)
{
	for (int i = 0; i < c->nr_stores; i++) {
		struct store *s = &c->buffer[i];

		s->under = get(s->at, s->size);
		memcpy(s->at, &s->value, s->size);
	}
}

/* The oldest store of a hidden buffer becomes visible to all. */
static void drain_one(struct cpu *c)
{
	struct store *s = &c->buffer[0];

	memcpy(s->at, &s->value, s->size);
	memmove(s, s + 1, (size_t)--c->nr_stores * sizeof(*s));
	m.nr_pending--;
	m.writes++;
}

/* The running CPU's stores are in memory already: they merely stop being pending. */
static void flush(struct cpu *c)
{
	m.nr_pending -= c->nr_stores;
	c->nr_stores = 0;
	m.writes++;
}

/* --- choosing --- */

static uint64_t next_random(void)
{
	m.rng = m.rng * 6364136223846793005ull + 1442695040888963407ull;
	return m.rng >> 33;
}

uint32_t model_random(uint32_t n)
{
	return (uint32_t)next_random() % n;
}

/* One of n; 0 is what costs nothing. */
static int choose(int n)
{
	if (n == 1)
		return 0;
	if (m.is_random)
		return next_random() % 4 ? 0 : (int)(next_random() % (unsigned)n);
	if (m.depth == MAX_CHOICES) {
		fail("the model's path is too long");
		end_execution();
	}
	if (m.depth == m.length) {
		m.path[m.length].chosen = 0;
		m.path[m.length++].options = (uint16_t)n;
	}
	if (m.path[m.depth].options != n) {
		fail("the model is not deterministic");
		end_execution();
	}
	return m.path[m.depth++].chosen;
}

/* Go to the next unvisited path; false when all were visited. */
static bool next_path(void)
{
	while (m.length && m.path[m.length - 1].chosen + 1 == m.path[m.length - 1].options)
		m.length--;
	if (!m.length)
		return false;
	m.path[m.length - 1].chosen++;
	return true;
}

static bool can_run(struct cpu *c)
{
	switch (c->state) {
	case CPU_RUNS:
		return true;
	case CPU_WAITS:
		return c->is_timed_out || c->is_ready(c->arg);
	case CPU_SPINS:
		return c->seen_writes != m.writes;
	case CPU_DONE:
		break;
	}
	return false;
}

/* Nobody can run: let time pass until somebody's wait ends. False: nobody waits for time. */
static bool pass_time(void)
{
	int64_t first = WF_NEVER;

	for (int i = 0; i < m.nr_cpus; i++)
		if (m.cpus[i].state == CPU_WAITS)
			first = WF_MIN(first, m.cpus[i].until);
	if (first == WF_NEVER)
		return false;
	m.now = WF_MAX(m.now, first);
	for (int i = 0; i < m.nr_cpus; i++)
		m.cpus[i].is_timed_out = m.cpus[i].state == CPU_WAITS && m.cpus[i].until <= m.now;
	return true;
}

static bool release_spinners(void)
{
	bool any = false;

	for (int i = 0; i < m.nr_cpus; i++)
		if (m.cpus[i].state == CPU_SPINS) {
			m.cpus[i].seen_writes--;
			any = true;
		}
	return any;
}

/* Who goes on, with all buffers hidden. */
static int pick_cpu(void)
{
	for (;;) {
		int options[MAX_CPUS], n = 0, next;
		bool may_stay = can_run(&m.cpus[m.cur]), is_turn_over = m.turn >= MAX_TURN;
		bool may_go = !may_stay || is_turn_over || m.budget > 0;

		if (may_stay && !is_turn_over)
			options[n++] = m.cur;
		for (int i = 0; i < m.nr_cpus && may_go; i++)
			if (i != m.cur && can_run(&m.cpus[i]))
				options[n++] = i;
		if (!n && may_stay)
			options[n++] = m.cur;
		if (!n && m.nr_pending) {
			for (int i = 0; i < m.nr_cpus; i++)
				while (m.cpus[i].nr_stores)
					drain_one(&m.cpus[i]);
			continue;
		}
		if (!n && (release_spinners() || pass_time()))
			continue;
		if (!n)
			end_execution();
		if (is_turn_over ||
		    m.cpus[m.cur].state == CPU_SPINS) { /* in turn, so that everybody comes */
			for (int i = 0; i < n; i++)
				if (options[i] > m.cur)
					return options[i];
			return options[0];
		}
		next = options[choose(n)];
		if (may_stay && next != m.cur && !m.is_random)
			m.budget--;
		return next;
	}
}

static void point(const char *func, const char *op)
{
	struct cpu *self = &m.cpus[m.cur];
	int next;

	if (!m.is_running)
		return;
	if (m.steps < MAX_LOG) {
		m.log[m.steps].func = func;
		m.log[m.steps].op = op;
		m.log[m.steps].cpu = m.cur;
	}
	if (++m.steps == MAX_STEPS) {
		fail("it does not end");
		end_execution();
	}
	if (self->state == CPU_RUNS && m.budget <= 0 && m.turn++ < MAX_TURN)
		return;
	hide_stores(self);
	next = pick_cpu();
	m.turn = next == m.cur && m.turn < MAX_TURN ? m.turn + 1 : 0;
	if (next != m.cur) {
		m.cur = next;
		model_gs = m.cpus[next].gs;
		model_arch_switch(&self->sp, m.cpus[next].sp);
	}
	self->state = CPU_RUNS;
	show_stores(self);
}

/* --- operations --- */

static bool is_mutated(const char *func, const char *op)
{
	const struct model *t = m.model;

	return m.is_running && t->mutate_func && !strcmp(op, t->mutate_op) &&
	       !strcmp(func, t->mutate_func);
}

/*
 * The running CPU is about to use a word: what others have in their buffers for it may have arrived before, or
 * not. That it could arrive at other moments makes no difference to anybody.
 */
static void meet_stores(const void *at)
{
	struct cpu *self = &m.cpus[m.cur];

	for (int i = 0; m.is_running && m.nr_pending && i < m.nr_cpus; i++) {
		struct cpu *c = &m.cpus[i];
		int nr_first = 0;

		for (int j = 0; j < c->nr_stores && c != self; j++)
			if (c->buffer[j].at == at)
				nr_first = j + 1;
		if (!nr_first || choose(2))
			continue;
		hide_stores(self);
		while (nr_first--)
			drain_one(c);
		show_stores(self);
	}
}

void model_step(void)
{
	point("model", "step");
}

void model_load(const char *func, const void *at)
{
	point(func, "load");
	meet_stores(at);
}

void model_fence(const char *func)
{
	if (is_mutated(func, "fence"))
		return;
	point(func, "fence");
	if (m.is_running)
		flush(&m.cpus[m.cur]);
}

void model_rmw(const char *func, const char *op, const void *at)
{
	point(func, op);
	meet_stores(at);
	if (m.is_running)
		flush(&m.cpus[m.cur]);
}

void model_tear(const char *func, const char *op)
{
	if (is_mutated(func, op))
		point(func, "torn");
}

void model_store(const char *func, void *at, const void *value, size_t size, bool is_seq_cst)
{
	struct cpu *c = &m.cpus[m.cur];
	bool is_late;

	point(func, "store");
	if (!m.is_running) {
		memcpy(at, value, size);
		return;
	}
	meet_stores(at);
	if (is_seq_cst && is_mutated(func, "store"))
		is_seq_cst = false;
	if (is_seq_cst)
		flush(c);
	is_late = !is_seq_cst && c->nr_stores < MAX_BUFFER &&
		  (c->nr_stores || (m.budget > 0 && choose(2)));
	if (!is_late) {
		flush(c);
		memcpy(at, value, size);
		return;
	}
	if (!c->nr_stores && !m.is_random)
		m.budget--;
	c->buffer[c->nr_stores++] = (struct store){ .at = at,
						    .size = size,
						    .under = get(at, size) };
	m.nr_pending++;
	memcpy(at, value, size);
}

bool model_wait(bool (*is_ready)(void *), void *arg, int64_t until)
{
	struct cpu *c = &m.cpus[m.cur];

	flush(c); /* the kernel takes locks on the way to sleep */
	c->is_ready = is_ready;
	c->arg = arg;
	c->until = until;
	c->is_timed_out = until <= m.now;
	c->state = CPU_WAITS;
	point("model", "wait");
	return is_ready(arg);
}

/* A spinning CPU goes on when somebody wrote, or when nobody else can. */
void model_pause(const char *func)
{
	struct cpu *c = &m.cpus[m.cur];

	if (!m.is_running || !strcmp(func, "search")) /* a delay, which means nothing here */
		return;
	c->state = CPU_SPINS;
	c->seen_writes = m.writes;
	point("model", "pause");
}

int64_t model_now(void)
{
	return m.now;
}

/* --- executions --- */

static void cpu_start(void *arg)
{
	struct cpu *c = arg;

	wf_san_arrive(NULL);
	c->fn(c->fn_arg);
	c->state = CPU_DONE;
	point("model", "done");
	abort();
}

int model_cpu(const char *name, void (*fn)(void *), void *arg, void *gs)
{
	struct cpu *c = &m.cpus[m.nr_cpus];

	if (m.nr_cpus == MAX_CPUS)
		abort();
	*c = (struct cpu){ .name = name, .gs = gs, .fn = fn, .fn_arg = arg, .until = WF_NEVER };
	c->sp = wf_arch_make_context(model_stack_top(), cpu_start, c);
	return m.nr_cpus++;
}

void model_sys_reset(void);

static void run_once(void)
{
	m.nr_cpus = m.nr_stacks = m.depth = m.nr_pending = m.steps = m.turn = m.cur = 0;
	m.budget = m.is_random ? 1 : m.model->bound;
	m.writes = 0;
	if (!m.is_random)
		m.rng = 1;
	m.now = 1000 * WF_SEC;
	model_sys_reset();
	m.model->setup();
	m.result.executions++;
	m.cur = choose(m.nr_cpus);
	model_gs = m.cpus[m.cur].gs;
	m.is_running = true;
	model_arch_switch(&m.main_sp, m.cpus[m.cur].sp);
	m.is_running = false;
	model_gs = NULL;
	if (!m.result.has_failed && m.model->check)
		m.model->check();
}

static void begin(const struct model *model)
{
	pthread_attr_t attr;
	void *bottom = NULL;
	size_t bytes = 0;

	if (!m.arena) {
		m.arena = mmap(NULL, MAX_STACKS * MODEL_STACK_BYTES, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (m.arena == MAP_FAILED || pthread_getattr_np(pthread_self(), &attr))
			abort();
		(void)pthread_attr_getstack(&attr, &bottom, &bytes);
		(void)pthread_attr_destroy(&attr);
		wf_san_stack_adopt(&m.main_stack, bottom, bytes);
	}
	m.model = model;
	m.result = (struct model_result){ 0 };
	m.length = 0;
}

struct model_result model_explore(const struct model *model)
{
	begin(model);
	m.is_random = false;
	do {
		run_once();
		if (m.result.has_failed)
			return m.result;
	} while (next_path());
	m.result.is_complete = true;
	return m.result;
}

struct model_result model_walk(const struct model *model, uint64_t seed, uint64_t executions)
{
	begin(model);
	m.is_random = true;
	for (uint64_t i = 0; i < executions && !m.result.has_failed; i++) {
		m.rng = (seed + i) * 0x9e3779b97f4a7c15ull;
		run_once();
	}
	return m.result;
}

/* The schedule that failed: one line for each time that a CPU had its turn. */
static void print_log(void)
{
	char line[400];
	int last = -1, n = 0, steps = WF_MIN(m.steps, MAX_LOG);

	for (int i = 0; i < steps; i++) {
		if (i == SHOWN_STEPS && steps > 2 * SHOWN_STEPS)
			i = steps - SHOWN_STEPS;
		if (m.log[i].cpu != last || n > 320) {
			if (n)
				tap_note("%s", line);
			last = m.log[i].cpu;
			n = snprintf(line, sizeof(line), "%s:", m.cpus[last].name);
		}
		n += snprintf(line + n, sizeof(line) - (size_t)n, " %.40s.%s", m.log[i].func,
			      m.log[i].op);
	}
	if (n)
		tap_note("%s", line);
}

uint64_t model_seed(void)
{
	const char *seed = getenv("WEFT_SEED");

	return seed ? strtoull(seed, NULL, 0) : 1;
}

static void report(struct model_result r)
{
	if (CHECK(!r.has_failed))
		return;
	tap_note("%s in execution %llu", r.what, (unsigned long long)r.executions);
	print_log();
}

void model_verify_walk(const struct model *model, uint64_t executions)
{
	tap_note("%llu executions at random, WEFT_SEED=%llu", (unsigned long long)executions,
		 (unsigned long long)model_seed());
	report(model_walk(model, model_seed(), executions));
}

void model_verify(const struct model *model)
{
	struct model shallower = *model;
	struct model_result r;

	shallower.bound -= SLOWDOWN;
	r = model_explore(&shallower);
	tap_note("%llu executions, bound %d%s", (unsigned long long)r.executions, shallower.bound,
		 r.is_complete ? ": all" : "");
	report(r);
	if (!r.has_failed && model->walks)
		model_verify_walk(model, model->walks);
}

void model_catches(struct model model, const char *func, const char *op)
{
	struct model_result r;

	model.mutate_func = func;
	model.mutate_op = op;
	r = model_explore(&model);
	tap_note("%s without its %s: %s after %llu executions", func, op,
		 r.has_failed ? r.what : "NOT FOUND", (unsigned long long)r.executions);
	CHECK(r.has_failed);
}
