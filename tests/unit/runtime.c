// SPDX-License-Identifier: Apache-2.0
/*
 * The runtime without the gate: the core and the poller alone, with threads of its own. No call of libc's is patched, and no
 * handler of linux/ is in this program.
 */
#include "arch/arch.h"
#include "io/epoll_driver.h"
#include "io/uses.h"
#include "mem/stack.h"
#include "sched/kick.h"
#include "sched/monitor.h"
#include "sched/park.h"
#include "sched/preempt.h"
#include "sched/runtime.h"

#include "tap.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#define STACK_BYTES (64ul << 10)
/* As the program's code, which a kick preempts; src/native/face.h. */
#define PREEMPTED __attribute__((section("weft_face")))

static uint64_t mask_before;
static uint32_t nr_ended;

static void thread_exited(struct wf_thread *t)
{
	wf_thread_free(t);
	(void)wf_fetch_add(&nr_ended, 1u);
	wf_kick(wf_rt.door);
}

/* This thread is the door from here on. */
static void start(uint32_t nr_workers, const struct wf_sched_hooks *hooks)
{
	const struct wf_runtime_config config = {
		.io = &wf_epoll_driver,
		.hooks = hooks,
		.nr_workers = nr_workers,
		.min_sigstack = getauxval(AT_MINSIGSTKSZ),
	};
	const char *call = NULL;

	(void)sys_sigprocmask(SIG_SETMASK, NULL, &mask_before);
	CHECK_EQ(wf_epoll_init(&call), 0);
	CHECK(wf_runtime_start(&config) != NULL);
	wf_preempt_take_kicks();
	wf_arch_set_self(wf_rt.door);
	wf_preempt_init_kthread(wf_rt.door);
	nr_ended = 0;
	/* There is no gate, but handlers go by this: the base register is ours on each kernel thread that has one. */
	wf_store_release(&wf_arch_gate_on, WF_GATE_ON);
}

static void stop(void)
{
	const struct wf_stack_t none = { .flags = SS_DISABLE };

	wf_runtime_stop();
	wf_store_release(&wf_arch_gate_on, WF_GATE_OFF);
	wf_epoll_forget(false);
	wf_arch_set_self(NULL);
	(void)sys2(__NR_sigaltstack, &none, NULL);
	(void)sys_sigprocmask(SIG_SETMASK, &mask_before, NULL);
}

/* As the door of linux/ does: look, wait for a kick. The alarm of a test that hangs comes through. */
static void serve_until(bool (*is_over)(void))
{
	const uint64_t kick = 1ull << (WF_SIG_KICK - 1) | 1ull << (WF_SIG_KICK_SPARE - 1);
	const uint64_t alarm = 1ull << (SIGALRM - 1);

	(void)sys_sigprocmask(SIG_UNBLOCK, &alarm, NULL);
	while (!is_over()) {
		int64_t now = sys_now(), next = wf_monitor_tick(now), wait;
		struct __kernel_timespec ts;

		wf_store_seq_cst(&wf_rt.monitor_until, next);
		if (next == WF_NEVER && wf_load_seq_cst(&wf_rt.monitor_armed))
			continue;
		wait = WF_MAX(next - now, 0);
		ts = (struct __kernel_timespec){ wait / WF_SEC, wait % WF_SEC };
		if (sys4(__NR_rt_sigtimedwait, &kick, NULL, next == WF_NEVER ? NULL : &ts,
			 sizeof(kick)) < 0)
			continue;
		wf_store_seq_cst(&wf_rt.door->kick_sent, 0u);
		wf_rt_door_kicked();
	}
}

static bool has_one_ended(void)
{
	return wf_load_acquire(&nr_ended) == 1;
}

static bool have_two_ended(void)
{
	return wf_load_acquire(&nr_ended) == 2;
}

static uint32_t nr_kernel_threads(void)
{
	DIR *d = opendir("/proc/self/task");
	uint32_t nr = 0;

	while (d && readdir(d))
		nr++;
	(void)closedir(d);
	return nr - 2;
}

static void run(void *fn)
{
	wf_worker_finish_switch(wf_own_kthread());
	((void (*)(void))fn)();
	wf_store_release(&wf_self()->state, WF_DEAD);
	wf_worker_switch_last(wf_own_kthread(), WF_PREV_DEAD);
}

/* A thread of the runtime's own. Its stack stays after it, as the test does. */
static struct wf_thread *make(char *stack, void (*fn)(void))
{
	struct wf_thread *t = wf_thread_new();

	t->tls = wf_arch_get_tls();
	t->sp = wf_arch_make_context(stack + STACK_BYTES, run, (void *)fn);
	wf_store_release(&t->state, WF_READY);
	return t;
}

static const struct wf_sched_hooks hooks = { .thread_exited = thread_exited };

/* --- one that waits to be woken --- */

static struct wf_thread *waiter;
static uint32_t state_seen, reason_seen;

static void wait_for_wake(void)
{
	wf_park_begin(0, WF_WAIT_EVENT, 0);
	reason_seen = wf_park(WF_NEVER);
}

/* With one worker it runs when the waiter has left. */
static void wake_waiter(void)
{
	state_seen = wf_state_of(wf_load_acquire(&waiter->state));
	CHECK(wf_unpark(waiter, WF_WAKE_EVENT));
	CHECK(!wf_unpark(waiter, WF_WAKE_EVENT));
}

static void park_and_wake(void)
{
	char *stacks;

	start(1, &hooks);
	stacks = wf_stack_map(STACK_BYTES, 2);
	waiter = make(stacks, wait_for_wake);
	wf_worker_ready(waiter);
	wf_worker_ready(make(stacks + WF_STACK_STRIDE(STACK_BYTES), wake_waiter));
	serve_until(have_two_ended);
	stop();
	wf_stack_unmap(stacks, STACK_BYTES, 2);
	CHECK_EQ(state_seen, WF_PARKED);
	CHECK_EQ(reason_seen, WF_WAKE_EVENT);
	CHECK_EQ(nr_kernel_threads(), 1);
}

TEST(a_thread_of_the_runtimes_own_parks_is_woken_and_ends)
{
	park_and_wake();
}

TEST(a_runtime_that_was_stopped_starts_again)
{
	park_and_wake();
	park_and_wake();
}

/* --- one that waits for time, one for a descriptor --- */

static int64_t began, woke;

static void sleep_a_bit(void)
{
	began = sys_now();
	wf_park_begin(0, WF_WAIT_SLEEP, 0);
	reason_seen = wf_park(began + WF_MS);
	woke = sys_now();
}

static void run_alone(void (*fn)(void), uint32_t nr_workers)
{
	char *stack;

	start(nr_workers, &hooks);
	stack = wf_stack_map(STACK_BYTES, 1);
	wf_worker_ready(make(stack, fn));
	serve_until(has_one_ended);
	stop();
	wf_stack_unmap(stack, STACK_BYTES, 1);
	CHECK_EQ(nr_kernel_threads(), 1);
}

TEST(a_deadline_ends_a_park)
{
	run_alone(sleep_a_bit, 2);
	CHECK_EQ(reason_seen, WF_WAKE_TIMEOUT);
	CHECK(woke - began >= WF_MS);
}

static int ends[2];
static char got;

static void read_pipe(void)
{
	struct wf_fd_use use;
	uint32_t seq = wf_fd_use_init(&use, ends[0]);

	while (sys3(__NR_read, ends[0], &got, 1) < 0) {
		CHECK_EQ(wf_fd_wait(&use, EPOLLIN, seq, WF_NEVER), 0);
		seq = wf_fd_seq(ends[0]);
	}
	wf_fd_use_done(&use);
}

static void write_pipe(void)
{
	state_seen = wf_state_of(wf_load_acquire(&waiter->state));
	CHECK_EQ(sys_write(ends[1], "x", 1), 1);
}

TEST(a_thread_waits_for_a_descriptor)
{
	char *stacks;

	CHECK_EQ(pipe2(ends, O_NONBLOCK), 0);
	start(1, &hooks);
	stacks = wf_stack_map(STACK_BYTES, 2);
	waiter = make(stacks, read_pipe);
	wf_worker_ready(waiter);
	wf_worker_ready(make(stacks + WF_STACK_STRIDE(STACK_BYTES), write_pipe));
	serve_until(have_two_ended);
	stop();
	wf_stack_unmap(stacks, STACK_BYTES, 2);
	CHECK_EQ(state_seen, WF_PARKED);
	CHECK_EQ(got, 'x');
	(void)close(ends[0]);
	(void)close(ends[1]);
}

/* --- one that computes --- */

static uint32_t turn;

PREEMPTED static void compute_until_other_runs(uint32_t own, uint32_t other)
{
	wf_store_release(&turn, own);
	while (wf_load_acquire(&turn) != other)
		;
}

PREEMPTED static void compute_first(void)
{
	compute_until_other_runs(1, 2);
}

PREEMPTED static void compute_second(void)
{
	while (wf_load_acquire(&turn) != 1)
		;
	wf_store_release(&turn, 2u);
}

static void preempt_one(void)
{
	char *stacks;

	turn = 0;
	start(1, &hooks);
	stacks = wf_stack_map(STACK_BYTES, 2);
	wf_worker_ready(make(stacks, compute_first));
	wf_worker_ready(make(stacks + WF_STACK_STRIDE(STACK_BYTES), compute_second));
	serve_until(have_two_ended);
	stop();
	wf_stack_unmap(stacks, STACK_BYTES, 2);
	CHECK_EQ(turn, 2);
}

TEST(a_thread_that_computes_is_preempted)
{
	preempt_one();
}

/* --- hooks that nobody has handed in --- */

static uint32_t is_done;

static void say_done(void)
{
	wf_store_release(&is_done, 1u);
	wf_kick(wf_rt.door);
}

static bool is_over(void)
{
	return wf_load_acquire(&is_done);
}

TEST(without_hooks_a_thread_that_ends_is_free_again)
{
	char *stack;
	struct wf_thread *t;

	is_done = 0;
	start(2, NULL);
	stack = wf_stack_map(STACK_BYTES, 1);
	t = make(stack, say_done);
	wf_worker_ready(t);
	serve_until(is_over);
	while (wf_state_of(wf_load_acquire(&t->state)) != WF_FREE)
		sys_relax(1);
	CHECK(wf_thread_new() == t);
	stop();
	wf_stack_unmap(stack, STACK_BYTES, 1);
	CHECK_EQ(nr_kernel_threads(), 1);
}

/* The last one: the limit stays. */
TEST(a_kick_comes_where_no_signal_can_be_queued)
{
	const struct rlimit none = { 0, 0 };

	CHECK_EQ(setrlimit(RLIMIT_SIGPENDING, &none), 0);
	preempt_one();
}
