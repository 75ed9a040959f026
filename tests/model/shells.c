// SPDX-License-Identifier: Apache-2.0
/*
 * Shells (native/shell.c): threads that rest between two functions, whoever joins them, gives them back and takes them again, and the
 * end of main. No function runs twice or not at all, one caller joins, and no wake-up reaches a later wait.
 */
#include "native/shell.h"
#include "sync.h"

#include "tap.h"

#define USES 2

struct wf_kthread *wf_self_come_in(void);
struct lx_config lx_config;
struct lx_process lx;

static struct weft_thread shell;
static int nr_runs, nr_joins, nr_begun;
static bool has_ended, is_given;

/* --- what shell.c asks of linux/ --- */

struct wf_kthread *wf_self_come_in(void)
{
	return wf_self_kthread();
}

bool lx_shell_may_inherit(const struct lx_thread *self)
{
	return true;
}

void lx_shell_inherit(const struct lx_thread *self, struct lx_shell_heritage *out)
{
	*out = (struct lx_shell_heritage){ 0 };
}

bool lx_shell_is_plain(const struct lx_thread *self)
{
	return true;
}

void lx_shell_rest(struct lx_thread *self)
{
}

void lx_shell_pass_on(void)
{
}

void lx_shell_begin(struct lx_thread *self, const struct lx_shell_heritage *h)
{
	nr_begun++;
}

/* --- the cast --- */

/* As set_up() of native/thread.c. */
static void set_up(struct weft_thread *t)
{
	t->is_joined = 0;
	wf_store_relaxed(&t->uses, t->uses + 1);
	wf_store_release(&t->state, WF_USE_RUNNING);
}

static void is_shell(void *arg)
{
	do
		nr_runs++;
	while (wf_shell_rest(me(), &shell) == WF_REST_RUNS);
	has_ended = true;
}

/* False: somebody else joins it. */
static bool join_until(int64_t until)
{
	struct wf_shell_join join = { 0 };

	while (wf_load_acquire(&shell.state) == WF_USE_RUNNING) {
		int ret = THROUGH_SIGNALS(wf_shell_await(me(), &shell, &join, until));

		if (ret == -EBUSY)
			return false;
		if (ret == -ETIMEDOUT) {
			sleep_undisturbed();
			until = WF_NEVER;
			continue;
		}
		model_expect(ret == 0, "a join failed");
	}
	if (!join.is_claimed && wf_exchange(&shell.is_joined, 1u))
		return false;
	model_expect(shell.state == WF_USE_DONE, "joined before its end");
	nr_joins++;
	return true;
}

static void start_again(void)
{
	struct weft_thread *t = wf_shell_take(me(), 0);

	model_expect(t == &shell, "what was given back is not there");
	set_up(t);
	wf_shell_start(me(), t);
}

static void joins_twice(void *arg)
{
	for (int i = 0; i < USES; i++) {
		if (i)
			start_again();
		(void)join_until(arg ? model_now() + WF_MS : WF_NEVER);
		if (arg)
			sleep_undisturbed();
		wf_shell_give(me(), &shell);
	}
	sleep_undisturbed();
	is_given = true;
}

/* Two at the same use: whoever joins it gives it back once both have looked. */
static void joins_once(void *arg)
{
	if (join_until(WF_NEVER))
		sleep_undisturbed();
}

/* The main thread has ended. */
static void end_main(void *arg)
{
	void (*hook)(void);

	wf_store_seq_cst(&lx.main_has_ended, true);
	hook = wf_load_seq_cst(&lx_config.on_main_end);
	if (hook)
		hook();
}

static void begin_shells(uint32_t nr_workers, void (*others)(void *), void *arg, int nr_others)
{
	machine_object_bytes = sizeof(struct lx_thread);
	begin(nr_workers);
	wf_shell_forget();
	lx.main_has_ended = false;
	lx_config.on_main_end = NULL;
	nr_runs = nr_joins = nr_begun = 0;
	has_ended = is_given = false;
	shell = (struct weft_thread){ 0 };
	set_up(&shell);
	for (int i = 0; i < nr_others; i++)
		add(i % (int)nr_workers, others, arg);
	add((int)nr_workers - 1, is_shell, NULL);
	shell.core = threads[nr_threads - 1];
}

static void setup_joined(void)
{
	begin_shells(2, joins_twice, NULL, 1);
}

static void setup_late(void)
{
	begin_shells(2, joins_twice, "late", 1);
	machine_stranger(expire, NULL);
}

static void interrupt_shell(void *arg)
{
	model_step();
	(void)wf_unpark(shell.core, WF_WAKE_INTERRUPTED);
}

static void setup_interrupted(void)
{
	begin_shells(1, joins_twice, NULL, 1);
	machine_stranger(interrupt_shell, NULL);
}

static void setup_two(void)
{
	begin_shells(2, joins_once, NULL, 2);
}

static void setup_detached(void)
{
	begin_shells(1, NULL, NULL, 0);
	shell.is_detached = true;
	machine_stranger(end_main, NULL);
}

/* It rests, parked, which machine_check() would take for a thread that was forgotten: it is ended first. */
static void check_uses(void)
{
	model_expect(is_given && nr_joins == USES, "a join has not returned");
	model_expect(nr_runs == USES && nr_begun == USES - 1, "a function ran too often, or not");
	model_expect(wf_state_of(shell.core->state) == WF_PARKED, "the shell does not rest");
}

static void check_two(void)
{
	model_expect(nr_joins == 1, "two have joined one, or nobody");
}

static void check_detached(void)
{
	machine_check();
	model_expect(has_ended, "a shell rests after the end of main");
}

static const struct model joined = {
	.setup = setup_joined, .check = check_uses, .bound = 1, .walks = 5000
};
static const struct model late = {
	.setup = setup_late, .check = check_uses, .bound = 1, .walks = 5000
};
static const struct model interrupted = { .setup = setup_interrupted,
					  .check = check_uses,
					  .bound = 2 };
static const struct model two = {
	.setup = setup_two, .check = check_two, .bound = 1, .walks = 5000
};
static const struct model detached = { .setup = setup_detached,
				       .check = check_detached,
				       .bound = 2 };

TEST(what_is_joined_is_taken_again)
{
	model_verify(&joined);
}

TEST(a_join_that_is_late_comes_again_and_nothing_disturbs_it_in_between)
{
	model_verify(&late);
}

TEST(no_signal_ends_its_rest)
{
	model_verify(&interrupted);
}

TEST(one_of_two_joins_it)
{
	model_verify(&two);
}

TEST(none_rests_after_the_end_of_main)
{
	model_verify(&detached);
}

TEST(two_joins_without_a_lock_are_caught)
{
	struct model m = two;

	m.bound = 2;
	model_catches(m, "wf_spin_lock", "exchange");
}
