// SPDX-License-Identifier: Apache-2.0
/*
 * The real scheduler on simulated CPUs: workers, spares and the monitor of a small machine, threads that do
 * random things, a virtual clock. Schedules, store buffers and scripts come from a seed: WEFT_SEED replays.
 *
 * Invariants at the end of each run: every thread ended, nothing is queued, every worker is carried by
 * exactly one kernel thread or vacant, no token and no lock is left; and meanwhile no thread runs twice.
 */
#include "machine.h"
#include "model.h"

#include "tap.h"

#include <stdlib.h>

#define NR_THREADS 8
#define NR_SEMAPHORES 2
#define OPS_PER_THREAD 5
#define RUNS 3000

struct waiter {
	struct wf_list link;
	struct wf_thread *thread;
};

static struct {
	struct wf_spin lock;
	int count;
	struct wf_list waiters;
} sems[NR_SEMAPHORES];

static uint32_t nr_workers, nr_spares, nr_made;
static int64_t latest; /* how late a sleeper came back, of the whole test */
static bool runs[NR_THREADS];

static void post(int s)
{
	struct wf_list *n;

	wf_spin_lock(&sems[s].lock);
	while ((n = wf_list_pop_head(&sems[s].waiters)))
		if (wf_unpark(container_of(n, struct waiter, link)->thread, WF_WAKE_EVENT))
			break;
	if (!n)
		sems[s].count++;
	wf_spin_unlock(&sems[s].lock);
}

/* False when the deadline came first. */
static bool wait_for(int s, int64_t deadline, bool *running)
{
	struct waiter w = { .thread = wf_self() };
	enum wf_reason reason;

	wf_list_init(&w.link);
	wf_spin_lock(&sems[s].lock);
	if (sems[s].count) {
		sems[s].count--;
		wf_spin_unlock(&sems[s].lock);
		return true;
	}
	wf_park_begin(0, WF_WAIT_FUTEX, 0);
	wf_list_push_tail(&sems[s].waiters, &w.link);
	wf_spin_unlock(&sems[s].lock);
	*running = false;
	reason = wf_park(deadline);
	model_expect(!*running, "a thread runs twice");
	*running = true;
	wf_spin_lock(&sems[s].lock);
	wf_list_remove(&w.link);
	wf_spin_unlock(&sems[s].lock);
	model_expect(reason == WF_WAKE_EVENT || reason == WF_WAKE_TIMEOUT, "woken for no reason");
	return reason == WF_WAKE_EVENT;
}

static void sleep_for(int64_t ns)
{
	int64_t deadline = model_now() + ns;
	enum wf_reason reason;

	wf_park_begin(0, WF_WAIT_SLEEP, 0);
	reason = wf_park(deadline);
	model_expect(reason == WF_WAKE_TIMEOUT, "a sleeper was woken by somebody");
	model_expect(model_now() >= deadline, "a timer fired early");
	latest = WF_MAX(latest, model_now() - deadline);
}

static bool is_after(void *arg)
{
	return model_now() >= *(int64_t *)arg;
}

static void block_in_kernel(uint32_t how)
{
	int64_t until = model_now() + (int64_t)model_random(3) * 300 * WF_US;

	if (how == 2)
		wf_call_enter_lazy();
	else
		wf_call_enter(how);
	(void)model_wait(is_after, &until, until);
	wf_call_leave();
	model_expect(wf_self_kthread()->worker &&
			     wf_self_kthread()->worker->kthread == wf_self_kthread(),
		     "a thread runs on a worker that another one carries");
}

static void wait_directly(void)
{
	int64_t until = model_now() + (int64_t)model_random(3) * WF_MS;

	(void)machine_wait_directly(is_after, &until, until);
}

static void script(void *arg)
{
	bool *running = arg;

	model_expect(!*running, "a thread runs twice");
	*running = true;
	for (int i = 0; i < OPS_PER_THREAD; i++) {
		int s = (int)model_random(NR_SEMAPHORES);

		switch (model_random(8)) {
		case 0:
			*running = false;
			wf_yield();
			model_expect(!*running, "a thread runs twice");
			*running = true;
			break;
		case 1:
			post(s);
			break;
		case 2: /* whoever waits has posted before: so all never wait at once */
			post(s);
			(void)wait_for(s, WF_NEVER, running);
			break;
		case 3:
			post(s);
			(void)wait_for(s, model_now() + (int64_t)model_random(3) * WF_MS / 2,
				       running);
			break;
		case 4:
			sleep_for((int64_t)(1 + model_random(4)) * 250 * WF_US);
			break;
		case 5:
			block_in_kernel(model_random(3));
			break;
		case 6:
			wait_directly();
			break;
		case 7:
			if (nr_made < NR_THREADS)
				wf_worker_ready(machine_thread(script, &runs[nr_made++]));
			break;
		}
	}
	*running = false;
}

static void setup(void)
{
	nr_workers = 1 + model_random(3);
	nr_spares = model_random(3);
	machine_reset(nr_workers);
	for (uint32_t i = 0; i < nr_workers; i++)
		if (!i || model_random(3))
			(void)machine_kthread(&wf_rt.workers[i]);
	for (uint32_t i = 0; i < nr_spares; i++)
		(void)machine_kthread(NULL);
	(void)machine_door(machine_monitor, NULL);
	for (int s = 0; s < NR_SEMAPHORES; s++) {
		sems[s].lock = (struct wf_spin){ 0 };
		sems[s].count = 0;
		wf_list_init(&sems[s].waiters);
	}
	for (int i = 0; i < NR_THREADS; i++)
		runs[i] = false;
	nr_made = 2 + model_random(3);
	for (uint32_t i = 0; i < nr_made; i++)
		machine_queue(&wf_rt.workers[0], machine_thread(script, &runs[i]));
}

static void sleep_again_and_again(void *arg)
{
	for (int i = 0; i < OPS_PER_THREAD; i++)
		sleep_for((int64_t)(1 + model_random(50)) * 100 * WF_US);
}

static void setup_sleepers(void)
{
	nr_workers = 1 + model_random(3);
	machine_reset(nr_workers);
	for (uint32_t i = 0; i < nr_workers; i++)
		(void)machine_kthread(&wf_rt.workers[i]);
	(void)machine_door(machine_monitor, NULL);
	for (uint32_t i = 0; i < NR_THREADS; i++)
		machine_queue(&wf_rt.workers[i % nr_workers],
			      machine_thread(sleep_again_and_again, NULL));
}

static const struct model sleepers = { .setup = setup_sleepers, .check = machine_check };
static const struct model simulation = { .setup = setup, .check = machine_check };

/* Nobody computes here, so that time passes only while everybody sleeps. */
TEST(idle_workers_wake_sleepers_on_time)
{
	latest = 0;
	model_verify_walk(&sleepers, RUNS);
	CHECK_EQ(latest, 0);
}

TEST(random_threads_all_end)
{
	const char *runs_text = getenv("WEFT_RUNS");
	uint64_t n = runs_text ? strtoull(runs_text, NULL, 0) : RUNS;

	latest = 0;
	model_verify_walk(&simulation, n);
	tap_note("a sleeper came back %lld us late at most", (long long)(latest / WF_US));
}
