// SPDX-License-Identifier: Apache-2.0
/*
 * Workers that rest while the program runs narrow: nobody sent to one of them waits for ever, somebody is always left
 * to wait for descriptors, and all come back.
 */
#include "model.h"
#include "reader.h"
#include "sched/width.h"
#include "sched/insys.h"

#include "tap.h"

static void nothing(void *arg)
{
	model_step();
}

static void submit(void *arg)
{
	wf_worker_ready(arg);
}

static void submit_on_1(void *arg)
{
	wf_worker_ready_on(&wf_rt.workers[1], arg);
}

static void narrow(uint32_t nr_workers)
{
	reader_reset(nr_workers);
	wf_width_set(true);
}

static struct wf_thread *work(uint32_t home)
{
	struct wf_thread *t = machine_thread(nothing, NULL);

	t->home = &wf_rt.workers[home];
	return t;
}

static void check(void)
{
	uint32_t nr_resting = 0;

	for (uint32_t i = 0; i < wf_rt.nr_workers; i++)
		nr_resting += wf_rt.workers[i].rests;
	machine_check();
	model_expect(wf_rt.nr_idle, "nobody waits for descriptors");
	model_expect(nr_resting < wf_rt.nr_workers, "everybody rests");
	model_expect(wf_rt.width.is_narrow || !nr_resting, "somebody goes on resting");
}

static void setup_inbox(void)
{
	narrow(2);
	machine_stranger(submit, work(0));
	machine_stranger(submit_on_1, work(1));
}

static void event(void *arg)
{
	reader_data_comes();
}

static void setup_an_event(void)
{
	narrow(3);
	machine_queue(&wf_rt.workers[1], machine_thread(reader_reads, NULL));
	machine_stranger(event, NULL);
}

/* A kernel thread leaves its worker for a call that lasts until somebody else has read. */
static bool has_been_read(void *arg)
{
	return reader_read_at;
}

static void blocks(void *arg)
{
	wf_call_enter(true);
	(void)model_wait(has_been_read, NULL, WF_NEVER);
	wf_call_leave();
}

static void setup_call(void)
{
	narrow(2);
	(void)machine_kthread(NULL);
	machine_queue(&wf_rt.workers[0], machine_thread(reader_reads, NULL));
	machine_queue(&wf_rt.workers[0], machine_thread(blocks, NULL));
	machine_stranger(event, NULL);
}

static void widen(void *arg)
{
	wf_width_set(false);
}

static void setup_wide(void)
{
	narrow(2);
	machine_stranger(widen, NULL);
	machine_stranger(submit_on_1, work(1));
}

#define MODEL(name, b)                                                                             \
	static const struct model name = {                                                         \
		.setup = setup_##name, .check = check, .bound = (b), .walks = 20000                \
	}
MODEL(inbox, 1);
MODEL(an_event, 1);
MODEL(call, 1);
MODEL(wide, 1);

TEST(who_is_sent_to_a_worker_that_rests_runs)
{
	model_verify(&inbox);
}

TEST(an_event_is_seen_while_others_rest)
{
	model_verify(&an_event);
}

TEST(an_event_is_seen_while_the_only_other_worker_loses_its_carrier)
{
	model_verify(&call);
}

TEST(all_come_back_when_it_is_wide_again)
{
	model_verify(&wide);
}

TEST(a_rest_without_its_fence_is_caught)
{
	struct model deeper = inbox;

	deeper.bound = 2;
	model_catches(deeper, "wf_width_rest", "fence");
}
