// SPDX-License-Identifier: Apache-2.0
/*
 * A guest in the poller while threads compute: it swallows no wake-up that was meant for a worker, it goes when it is
 * told to, and what it sees while every worker computes is served at once, in virtual time.
 */
#include "machine.h"
#include "model.h"
#include "reader.h"
#include "sched/poller.h"

#include "tap.h"

#include <stdio.h>

#define EVENT_NS (43 * WF_MS + 700 * WF_US) /* at no tick of the monitor's */
#define END_NS (150 * WF_MS)
#define SERVES_NS (40 * WF_MS)

static int64_t began;

static void begin(uint32_t nr_workers)
{
	reader_reset(nr_workers);
	began = model_now();
}

/* --- a wake-up on its way while it comes or goes --- */

static bool is_guest_there(void *arg)
{
	return wf_rt.poller.kthread;
}

static void wait_for_guest(void *arg)
{
	(void)model_wait(is_guest_there, NULL, WF_NEVER);
}

static bool is_running(void *arg)
{
	return wf_rt.workers[0].kthread->cur;
}

/* Three looks of a monitor: the guest is wanted, comes, and is sent away. */
static void invite(void *arg)
{
	(void)model_wait(is_running, NULL, WF_NEVER);
	wf_poller_look(0);
	wf_poller_look(10 * WF_MS);
	(void)model_wait(is_guest_there, NULL, WF_NEVER);
	wf_rt.workers[0].has_idled = true;
	wf_poller_look(20 * WF_MS);
	wf_rt.workers[0].has_idled = true;
	wf_poller_look(50 * WF_MS);
}

static void nothing(void *arg)
{
	model_step();
}

static void submit(void *arg)
{
	wait_for_guest(NULL);
	wf_worker_ready(arg);
}

static void setup_work(void)
{
	struct wf_thread *t;

	begin(1);
	(void)machine_door(invite, NULL);
	machine_queue(&wf_rt.workers[0], machine_thread(wait_for_guest, NULL));
	t = machine_thread(nothing, NULL);
	t->home = &wf_rt.workers[0];
	machine_stranger(submit, t);
}

/* The worker's own poll, or the guest's, sees the event; the work that comes with it needs the same worker. */
static void event_and_work(void *arg)
{
	wait_for_guest(NULL);
	reader_data_comes();
	wf_worker_ready(arg);
}

static void setup_event(void)
{
	struct wf_thread *t;

	begin(1);
	(void)machine_door(invite, NULL);
	machine_queue(&wf_rt.workers[0], machine_thread(reader_reads, NULL));
	machine_queue(&wf_rt.workers[0], machine_thread(wait_for_guest, NULL));
	t = machine_thread(nothing, NULL);
	t->home = &wf_rt.workers[0];
	machine_stranger(event_and_work, t);
}

#define MODEL(name, b)                                                                             \
	static const struct model name = {                                                         \
		.setup = setup_##name, .check = machine_check, .bound = (b), .walks = 20000        \
	}
MODEL(work, 1);
MODEL(event, 1);

TEST(a_guest_in_the_poller_swallows_no_wake_up)
{
	model_verify(&work);
}

TEST(an_event_and_work_beside_a_guest_are_both_seen)
{
	model_verify(&event);
}

/* --- with the real monitor, over time --- */

static bool never(void *arg)
{
	return false;
}

static void event_comes(void *arg)
{
	(void)model_wait(never, NULL, began + EVENT_NS);
	reader_data_comes();
}

static bool has_been_read(void *arg)
{
	return reader_read_at != 0;
}

static bool is_past_end(void *arg)
{
	return model_now() >= began + END_NS;
}

static void computes_until_read(void *arg)
{
	machine_compute(has_been_read, NULL);
}

static void computes_until_end(void *arg)
{
	machine_compute(is_past_end, NULL);
}

/* Somebody must see the end: the clock moves to where somebody waits for it. */
static void clock_ends(void *arg)
{
	(void)model_wait(never, NULL, began + END_NS);
}

/* Two that compute until the event is read share a worker with who reads it, one on the other goes on. */
static void setup_computing(void)
{
	begin(2);
	(void)machine_door(machine_monitor, NULL);
	machine_stranger(event_comes, NULL);
	machine_stranger(clock_ends, NULL);
	machine_queue(&wf_rt.workers[0], machine_thread(reader_reads, NULL));
	for (int i = 0; i < 2; i++)
		machine_queue(&wf_rt.workers[0], machine_thread(computes_until_read, NULL));
	machine_queue(&wf_rt.workers[1], machine_thread(computes_until_end, NULL));
}

static void check_computing(void)
{
	char text[64];

	machine_check();
	snprintf(text, sizeof(text), "the reader is late by %lld us",
		 (long long)(reader_read_at - began - EVENT_NS) / WF_US);
	model_expect(reader_read_at == began + EVENT_NS, text);
	model_expect(wf_rt.poller.kthread, "nobody came to the poller");
	model_expect(wf_rt.poller.state == WF_POLLER_AWAY, "the guest stays beside an idle worker");
}

static const struct model computing = { .setup = setup_computing, .check = check_computing };

TEST(an_event_beside_threads_that_compute_is_served_at_once)
{
	model_verify_walk(&computing, 300);
}

/* No descriptor that anybody waits for. */
static bool nobody_waits(void)
{
	return false;
}

static void setup_alone(void)
{
	begin(2);
	(void)machine_door(machine_monitor, NULL);
	machine_stranger(clock_ends, NULL);
	for (int i = 0; i < 4; i++)
		machine_queue(&wf_rt.workers[i & 1], machine_thread(computes_until_end, NULL));
	reader_driver.has_waiters = nobody_waits;
}

static void check_alone(void)
{
	machine_check();
	model_expect(!wf_rt.poller.kthread, "a kernel thread came for nobody");
}

static const struct model alone = { .setup = setup_alone, .check = check_alone };

TEST(threads_that_only_compute_have_no_guest)
{
	model_verify_walk(&alone, 50);
}

/* Turns of milliseconds, and a pause after each. */
static void serves(void *arg)
{
	while (model_now() < began + SERVES_NS) {
		(void)model_wait(never, NULL, model_now() + 3 * WF_MS);
		wf_park_begin(0, WF_WAIT_SLEEP, 0);
		(void)wf_park(model_now() + (int64_t)(1 + model_random(3)) * WF_MS / 2);
	}
}

static void setup_serving(void)
{
	begin(2);
	(void)machine_door(machine_monitor, NULL);
	for (int i = 0; i < 2; i++)
		machine_queue(&wf_rt.workers[i], machine_thread(serves, NULL));
}

static const struct model serving = { .setup = setup_serving, .check = check_alone };

TEST(a_server_has_no_guest)
{
	model_verify_walk(&serving, 50);
}
