// SPDX-License-Identifier: Apache-2.0
/*
 * A call that every kernel thread makes exactly once (linux/everybody.c), while others are made, end, and come back. The
 * call counts up something that the kernel keeps for a kernel thread, and that a new one has from its maker.
 */
#include "arch/arch.h"
#include "linux/everybody.h"
#include "machine.h"
#include "model.h"
#include "sched/staff.h"

#include "tap.h"

#include <errno.h>
#include <signal.h>

#define FIRST_TID 100
#define COUNT_UP __NR_setreuid /* the number of the call */
#define SOMETHING_ELSE __NR_openat
#define MAX_TASKS 16

struct lx_config lx_config;

static uint32_t counts[MAX_TASKS]; /* by tid: what the kernel keeps */
static uint32_t nr_made;           /* requests that are over */

static uint32_t *count_of(const struct wf_kthread *k)
{
	return &counts[k->tid - FIRST_TID];
}

static void answer(void)
{
	lx_everybody_answer(wf_self_kthread());
}

/* As the real one: from here on it takes kicks, and looks for what came before. */
void wf_preempt_init_kthread(struct wf_kthread *k)
{
	model_open_interrupts();
	lx_everybody_answer(k);
}

static void cloned(int cpu)
{
	counts[cpu] = *count_of(wf_self_kthread());
	if (!model_is_mutated("spawn", "mask"))
		model_close_interrupts(cpu);
}

static long kernel(long nr, long a, long b, long c, long d)
{
	(void)d;
	switch (nr) {
	case SOMETHING_ELSE:
		model_expect(false, "a call that is nobody's own was made for another one");
		return 0;
	case COUNT_UP:
		model_fence(__func__);
		return ++*count_of(wf_self_kthread());
	case __NR_tgkill:
		model_fence(__func__);
		if (b > 0)
			model_interrupt((int)b - FIRST_TID);
		return 0;
	case __NR_rt_sigprocmask:
		if (a != SIG_SETMASK || model_is_mutated("spawn", "mask"))
			return 0;
		if (*(const uint64_t *)b == ~0ull)
			model_close_interrupts(-1);
		else
			model_open_interrupts();
		(void)c;
		return 0;
	default:
		return 0;
	}
}

static bool never(void *arg)
{
	(void)arg;
	return false;
}

static void idle(void *arg)
{
	(void)arg;
	for (;;) /* a kick ends it */
		(void)model_wait(never, NULL, WF_NEVER);
}

static void check_counts(void)
{
	for (uint32_t i = 0; i < wf_rt.nr_kthreads; i++)
		if (wf_rt.kthreads[i]->tid > 0)
			model_expect(*count_of(wf_rt.kthreads[i]) == nr_made,
				     "a kernel thread has not made each call once");
}

static void ask(void *arg)
{
	const struct lx_everybody call = { .nr = COUNT_UP };
	uint32_t seq;

	(void)arg;
	lx_everybody_lock();
	(void)lx_everybody_make(&call, &seq);
	nr_made++;
	check_counts();
	lx_everybody_unlock();
}

static void ask_and_stay(void *arg)
{
	ask(arg);
	idle(arg);
}

static void ask_twice(void *arg)
{
	ask(arg);
	ask_and_stay(arg);
}

/* As somebody would who can write to the request. */
static void ask_for_something_else(void *arg)
{
	const struct lx_everybody call = { .nr = SOMETHING_ELSE };
	uint32_t seq;

	(void)arg;
	lx_everybody_lock();
	model_expect(lx_everybody_make(&call, &seq) == -EPERM, "it was made");
	lx_everybody_unlock();
	idle(arg);
}

static void helper(void *arg)
{
	wf_arch_set_self(arg);
	wf_preempt_init_kthread(arg);
	idle(arg);
}

static void make(void *arg)
{
	model_expect(wf_staff_spawn_helper(helper, NULL), "no kernel thread could be made");
	idle(arg);
}

/* The kernel clears its tid when it has ended. */
static void end(void *arg)
{
	struct wf_kthread *k = arg;

	wf_staff_end(k);
	model_close_interrupts(-1);
	wf_store_seq_cst(&k->tid, 0);
}

static bool has_ended(void *arg)
{
	(void)arg;
	return wf_rt.ended && !wf_rt.ended->tid;
}

static void revive(void *arg)
{
	while (!has_ended(NULL)) /* so does it this one */
		(void)model_wait(has_ended, NULL, WF_NEVER);
	make(arg);
}

static void begin(void)
{
	machine_reset(1);
	machine_kernel = kernel;
	machine_cloned = cloned;
	model_on_interrupt(answer);
	lx_everybody_forget();
	nr_made = 0;
	for (uint32_t i = 0; i < MAX_TASKS; i++)
		counts[i] = 0;
}

/* One is made meanwhile. */
static void setup_new(void)
{
	begin();
	(void)machine_door(ask_twice, NULL);
	(void)machine_helper(make);
}

/* One ends, and comes back: it stands before its maker in the table. */
static void setup_revived(void)
{
	begin();
	(void)machine_door(ask_twice, NULL);
	(void)machine_helper(end);
	(void)machine_helper(revive);
}

/* A kernel thread that waits for its turn answers, and a kick may find it at that. */
static void setup_two(void)
{
	begin();
	(void)machine_door(ask_and_stay, NULL);
	(void)machine_helper(ask_and_stay);
	(void)machine_helper(idle);
}

static void setup_else(void)
{
	begin();
	(void)machine_door(ask_for_something_else, NULL);
	(void)machine_helper(idle);
}

/* The model says by itself when it was made. */
static void check_nothing(void)
{
}

static void check(void)
{
	model_expect(nr_made == 2, "a request is not over");
	check_counts();
}

#define MODEL(name, b)                                                                             \
	static const struct model name = {                                                         \
		.setup = setup_##name, .check = check, .bound = (b), .walks = 20000                \
	}
MODEL(new, 2);
MODEL(revived, 2);
MODEL(two, 2);
static const struct model other = {
	.setup = setup_else, .check = check_nothing, .bound = 2, .walks = 20000
};

TEST(one_that_is_made_meanwhile_is_as_the_others)
{
	model_verify(&new);
}

TEST(one_that_comes_back_is_as_the_others)
{
	model_verify(&revived);
}

TEST(two_that_ask_wait_for_each_other)
{
	model_verify(&two);
}

TEST(a_call_that_opens_something_is_made_by_nobody)
{
	model_verify(&other);
}

TEST(what_makes_it_so_cannot_be_left_out)
{
	model_catches(new, "inherit_requests", "look");
	model_catches(new, "spawn", "mask");
	model_catches(revived, "ask_and_wait", "look");
	model_catches(two, "lx_everybody_answer", "cas");
}
