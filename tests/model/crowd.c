// SPDX-License-Identifier: Apache-2.0
/* A kernel thread that the kernel gives no processor: what comes for its worker runs where another one has a processor. */
#include "machine.h"
#include "model.h"

#include "tap.h"

#include <stdio.h>

#define SLEEPS_NS (23 * WF_MS)
#define END_NS (60 * WF_MS)

static struct wf_thread *sleeper;
static bool has_woken;
static int64_t began, woke_at;

static bool is_asleep(void *arg)
{
	return wf_state_of(sleeper->state) == WF_PARKED;
}

static bool is_awake(void *arg)
{
	return has_woken;
}

static bool never(void *arg)
{
	return false;
}

static void clock_ends(void *arg)
{
	(void)model_wait(never, NULL, began + END_NS);
}

static void sleeps(void *arg)
{
	wf_park_begin(0, WF_WAIT_SLEEP, 0);
	(void)wf_park(began + SLEEPS_NS);
	woke_at = model_now();
	has_woken = true;
}

/* Where the sleeper ran no processor is had until it runs elsewhere; on the other worker kicks are taken. */
static void computes(void *arg)
{
	(void)model_wait(is_asleep, NULL, WF_NEVER);
	if (wf_own_kthread()->worker == sleeper->home)
		(void)model_wait(is_awake, NULL, WF_NEVER);
	else
		machine_compute(is_awake, NULL);
}

static void setup_stalled(void)
{
	machine_reset(2);
	began = model_now();
	has_woken = false;
	wf_rt.is_crowded = true;
	for (int i = 0; i < 2; i++)
		(void)machine_kthread(&wf_rt.workers[i]);
	(void)machine_door(machine_monitor, NULL);
	machine_stranger(clock_ends, NULL);
	sleeper = machine_thread(sleeps, NULL);
	machine_queue(&wf_rt.workers[0], sleeper);
	for (int i = 0; i < 2; i++)
		machine_queue(&wf_rt.workers[i], machine_thread(computes, NULL));
}

static void check_stalled(void)
{
	char text[64];
	int64_t late = woke_at - began - SLEEPS_NS;

	machine_check();
	snprintf(text, sizeof(text), "the sleeper is late by %lld us", (long long)late / WF_US);
	model_expect(has_woken && late <= 2 * WF_WAKE_GRANULARITY_NS, text);
	model_expect(!wf_rt.offers || !wf_rt.offers->inbox, "an offer outlives its thread");
}

static const struct model stalled = { .setup = setup_stalled, .check = check_stalled };

TEST(a_thread_whose_worker_has_no_processor_runs_on_another)
{
	model_verify_walk(&stalled, 300);
}
