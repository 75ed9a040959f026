// SPDX-License-Identifier: Apache-2.0
/*
 * The machine of sim.c with few threads that each do what they are told: who runs when, and what the kernel hears of it.
 */
#include "machine.h"
#include "model.h"

#include "tap.h"

#include <string.h>

static bool is_after(void *arg)
{
	return model_now() >= *(int64_t *)arg;
}

/* A descriptor that is ready as soon as somebody waits for it. */
static struct wf_thread *reader;
static bool has_read;
static const struct wf_io_driver *idle_driver;

static bool poll_reader(int64_t timeout_ns)
{
	struct wf_thread *t = reader;

	reader = NULL;
	if (t)
		(void)wf_unpark(t, WF_WAKE_EVENT);
	return idle_driver->poll(t ? 0 : timeout_ns);
}

static bool is_watched;

static bool reader_waits(void)
{
	return reader && is_watched;
}

static struct wf_io_driver reader_driver = { .poll = poll_reader, .has_waiters = reader_waits };

static void reads(void *arg)
{
	wf_park_begin(0, WF_WAIT_FD, 0);
	reader = wf_self();
	(void)wf_park(WF_NEVER);
	has_read = true;
}

static void yields(void *arg)
{
	for (int i = 0; i < 3 && !has_read; i++)
		wf_yield();
	model_expect(has_read, "a loop of yields keeps a reader waiting");
}

/* A monitor that never comes to look. */
static void sleeps_at_door(void *arg)
{
	for (;;)
		(void)machine_sleep_at_door(WF_NEVER);
}

static void setup_yields(void)
{
	machine_reset(1);
	idle_driver = wf_rt.io;
	reader_driver.wake = idle_driver->wake;
	wf_rt.io = &reader_driver;
	reader = NULL;
	has_read = false;
	is_watched = true;
	(void)machine_kthread(&wf_rt.workers[0]);
	(void)machine_door(sleeps_at_door, NULL);
	machine_queue(&wf_rt.workers[0], machine_thread(reads, NULL));
	machine_queue(&wf_rt.workers[0], machine_thread(yields, NULL));
}

static const struct model yielding = { .setup = setup_yields, .check = machine_check };

TEST(a_yield_with_nobody_else_ready_looks_for_io)
{
	model_verify_walk(&yielding, 100);
}

static bool is_read(void *arg)
{
	return has_read;
}

/* The first call leaves the worker to nobody, so that the monitor goes to sleep; the second one needs it. */
static void calls_twice(void *arg)
{
	int64_t until = model_now() + 20 * WF_MS;

	wf_call_enter(true);
	(void)model_wait(is_after, &until, until);
	wf_call_leave();
	is_watched = true;
	wf_call_enter(false);
	(void)model_wait(is_read, NULL, WF_NEVER);
	wf_call_leave();
}

static void setup_calls(void)
{
	machine_reset(1);
	idle_driver = wf_rt.io;
	reader_driver.wake = idle_driver->wake;
	wf_rt.io = &reader_driver;
	reader = NULL;
	has_read = is_watched = false;
	(void)machine_kthread(&wf_rt.workers[0]);
	(void)machine_kthread(NULL);
	(void)machine_door(machine_monitor, NULL);
	machine_queue(&wf_rt.workers[0], machine_thread(reads, NULL));
	machine_queue(&wf_rt.workers[0], machine_thread(calls_twice, NULL));
}

static const struct model calling = { .setup = setup_calls, .check = machine_check };

TEST(a_call_that_gets_a_vacant_worker_back_is_watched_again)
{
	model_verify_walk(&calling, 300);
}

/* In cycles, of which the counter makes 2.5 in a nanosecond while the monitor has not measured it; yields are 24 us apart. */
#define YIELDS_APART 70000
#define LOOKS_APART 8000
#define LOOKS_CLOSE 100 /* turns are too short to be charged for */

static void yields_alone(void *arg)
{
	for (int i = 0; i < 640; i++)
		wf_yield();
	model_expect(machine_nr_yields() > 0, "the kernel never hears of a loop of yields");
	if (machine_cycles_per_look == YIELDS_APART)
		model_expect(machine_nr_yields() >= 600, "the kernel does not hear of slow yields");
	else
		model_expect(machine_nr_yields() <= 10, "the kernel hears of many yields");
}

/* The threads that ran, in order. */
static char turns[8];
static size_t nr_turns;
static const char *order; /* as it is to be */

/* With a door that only sleeps; what takes turns is queued next. */
static void setup_one_worker(void)
{
	machine_reset(1);
	nr_turns = 0;
	order = "hw12";
	(void)machine_kthread(&wf_rt.workers[0]);
	(void)machine_door(sleeps_at_door, NULL);
}

static void setup_yields_alone(void)
{
	setup_one_worker();
	machine_queue(&wf_rt.workers[0], machine_thread(yields_alone, NULL));
}

static const struct model yielding_alone = { .setup = setup_yields_alone, .check = machine_check };

TEST(the_kernel_hears_of_a_loop_of_yields_with_nobody_else_ready)
{
	machine_cycles_per_look = LOOKS_APART;
	model_verify_walk(&yielding_alone, 20);
	machine_cycles_per_look = YIELDS_APART;
	model_verify_walk(&yielding_alone, 20);
	machine_cycles_per_look = 0;
}

static void yields_in_pair(void *arg)
{
	for (int i = 0; i < 60; i++)
		wf_yield();
}

static void check_pair(void)
{
	machine_check();
	model_expect(machine_nr_yields() >= 5,
		     "the kernel never hears of two that yield to each other");
	model_expect(machine_nr_yields() <= 40, "the kernel hears of many of their yields");
}

static void setup_yields_in_pair(void)
{
	setup_one_worker();
	machine_queue(&wf_rt.workers[0], machine_thread(yields_in_pair, NULL));
	machine_queue(&wf_rt.workers[0], machine_thread(yields_in_pair, NULL));
}

static const struct model yielding_in_pair = { .setup = setup_yields_in_pair, .check = check_pair };

TEST(the_kernel_hears_of_threads_that_only_yield_to_each_other)
{
	machine_cycles_per_look = YIELDS_APART;
	model_verify_walk(&yielding_in_pair, 20);
	machine_cycles_per_look = 0;
}

/* The one that others wake. */
static struct wf_thread *helper;

static void takes_turn(void *name)
{
	turns[nr_turns++] = *(const char *)name;
}

static void helps(void *name)
{
	wf_park_begin(0, WF_WAIT_FUTEX, 0);
	helper = wf_self();
	(void)wf_park(WF_NEVER);
	takes_turn(name);
}

/* As the gate's exit does. */
static void obey_attention(void)
{
	if (wf_fetch_and(&wf_self()->attention, ~WF_ATT_RESCHED) & WF_ATT_RESCHED)
		wf_give_way();
}

static void wakes_helper(void *name)
{
	wf_self()->slice_left = WF_SLICE_NS;
	wf_self()->hog = wf_habits[WF_HABIT_HOG].from & 15u;
	(void)wf_unpark(helper, WF_WAKE_EVENT);
	obey_attention();
	takes_turn(name);
}

static void yields_once(void *name)
{
	wf_yield();
	takes_turn(name);
}

static void setup_yields_once(void)
{
	setup_one_worker();
	order = "12y";
	machine_queue(&wf_rt.workers[0], machine_thread(yields_once, "y"));
	machine_queue(&wf_rt.workers[0], machine_thread(takes_turn, "1"));
	machine_queue(&wf_rt.workers[0], machine_thread(takes_turn, "2"));
}

static void setup_gives_way(void)
{
	setup_one_worker();
	machine_queue(&wf_rt.workers[0], machine_thread(helps, "h"));
	machine_queue(&wf_rt.workers[0], machine_thread(wakes_helper, "w"));
	machine_queue(&wf_rt.workers[0], machine_thread(takes_turn, "1"));
	machine_queue(&wf_rt.workers[0], machine_thread(takes_turn, "2"));
}

static void check_turns(void)
{
	machine_check();
	turns[nr_turns] = 0;
	model_expect(!strcmp(turns, order), turns);
}

/* Whose turn it is follows from what the threads do to one another, and from no time that their turns take. */
static void verify_order(const struct model *m)
{
	machine_cycles_per_look = LOOKS_CLOSE;
	model_verify_walk(m, 100);
	machine_cycles_per_look = 0;
}

static const struct model yielding_once = { .setup = setup_yields_once, .check = check_turns };

TEST(a_thread_that_yields_goes_behind_those_that_are_ready)
{
	verify_order(&yielding_once);
}

static const struct model giving_way = { .setup = setup_gives_way, .check = check_turns };

TEST(a_thread_that_gives_way_to_one_it_wakes_keeps_its_turn)
{
	verify_order(&giving_way);
}

static void tells_its_maker(void *name)
{
	wf_self()->slice_left = WF_SLICE_NS;
	(void)wf_unpark(helper, WF_WAKE_EVENT);
	obey_attention();
	takes_turn(name);
}

static void setup_tells_its_maker(void)
{
	setup_one_worker();
	machine_queue(&wf_rt.workers[0], machine_thread(helps, "h"));
	machine_queue(&wf_rt.workers[0], machine_thread(tells_its_maker, "w"));
	machine_queue(&wf_rt.workers[0], machine_thread(takes_turn, "1"));
	machine_queue(&wf_rt.workers[0], machine_thread(takes_turn, "2"));
}

static const struct model telling = { .setup = setup_tells_its_maker, .check = check_turns };

TEST(the_first_that_a_thread_wakes_comes_at_once)
{
	verify_order(&telling);
}

static void helps_twice(void *name)
{
	helps(name);
	helps(name);
}

/* It has woken others before, and keeps the one that it wakes until its slice is over; then again. */
static void wakes_twice(void *name)
{
	wf_self()->slice_left = WF_SLICE_NS;
	wf_self()->has_woken = true;
	(void)wf_unpark(helper, WF_WAKE_EVENT);
	obey_attention();
	takes_turn(name);
	wf_runq_end_handoff(&wf_rt.workers[0].rq);
	wf_yield();
	(void)wf_unpark(helper, WF_WAKE_EVENT);
	obey_attention();
	takes_turn(name);
}

static void setup_wakes_twice(void)
{
	setup_one_worker();
	machine_queue(&wf_rt.workers[0], machine_thread(helps_twice, "h"));
	machine_queue(&wf_rt.workers[0], machine_thread(wakes_twice, "w"));
}

static void check_woken_twice(void)
{
	machine_check();
	turns[nr_turns] = 0;
	model_expect(!strcmp(turns, "whhw"), turns);
}

static const struct model waking_twice = { .setup = setup_wakes_twice, .check = check_woken_twice };

TEST(who_was_kept_waiting_for_a_slice_comes_at_once)
{
	verify_order(&waking_twice);
}

static void makes_thread(void *name)
{
	wf_self()->slice_left = WF_SLICE_NS;
	wf_self()->hog = wf_habits[WF_HABIT_HOG].from & 15u;
	wf_worker_ready(machine_thread(takes_turn, "n"));
	obey_attention();
	takes_turn(name);
}

static void setup_makes_thread(void)
{
	setup_one_worker();
	machine_queue(&wf_rt.workers[0], machine_thread(makes_thread, "m"));
	machine_queue(&wf_rt.workers[0], machine_thread(takes_turn, "1"));
	machine_queue(&wf_rt.workers[0], machine_thread(takes_turn, "2"));
}

static void check_thread_made(void)
{
	machine_check();
	turns[nr_turns] = 0;
	model_expect(!strcmp(turns, "m12n"), turns);
}

static const struct model making = { .setup = setup_makes_thread, .check = check_thread_made };

/* A new thread comes behind all others: to give way to it would be to give way to all of them, for each thread made. */
TEST(a_thread_that_computes_and_makes_another_keeps_its_turn)
{
	verify_order(&making);
}

/* Both come through the inbox: one whose slice was over on another worker, then one that was woken. */
static void is_joined(void *name)
{
	struct wf_worker *w = &wf_rt.workers[0];
	struct wf_thread *joined = machine_thread(takes_turn, "j");
	struct wf_thread *woken = machine_thread(takes_turn, "w");

	joined->nr_switches = woken->nr_switches = 1;
	joined->slice_left = 0;
	woken->slice_left = WF_SLICE_NS;
	wf_inbox_push(w, joined);
	wf_inbox_push(w, woken);
	takes_turn(name);
}

static void setup_is_joined(void)
{
	setup_one_worker();
	order = "1wj";
	machine_queue(&wf_rt.workers[0], machine_thread(is_joined, "1"));
}

static const struct model joining = { .setup = setup_is_joined, .check = check_turns };

TEST(a_thread_from_another_worker_comes_behind_one_that_was_woken)
{
	verify_order(&joining);
}

/* A tick of the clock brings so much; the turns of those that yield are far shorter. */
static void tick(int64_t ns)
{
	wf_store_relaxed(&wf_rt.coarse_now, wf_load_relaxed(&wf_rt.coarse_now) + ns);
}

#define TICKS_IN_SLICE 4
#define SLICES_AHEAD 3
#define MOST_YIELDS 100 /* of one thread; none needs a third of it */

static uint32_t nr_yields; /* of all threads, until the one that waits has its turn */
static bool has_come;

static void yields_at_ticks(void *arg)
{
	for (int i = 0; i < MOST_YIELDS && !has_come; i++) {
		tick(WF_SLICE_NS / TICKS_IN_SLICE);
		nr_yields++;
		wf_yield();
	}
}

static void comes(void *arg)
{
	has_come = true;
}

/* Beside two loops of yields. */
static struct wf_thread *setup_beside_yields(void (*fn)(void *))
{
	struct wf_thread *t;

	setup_one_worker();
	nr_yields = 0;
	has_come = false;
	t = machine_thread(fn, NULL);
	machine_queue(&wf_rt.workers[0], machine_thread(yields_at_ticks, NULL));
	machine_queue(&wf_rt.workers[0], machine_thread(yields_at_ticks, NULL));
	return t;
}

static void setup_one_is_ahead(void)
{
	struct wf_thread *t = setup_beside_yields(comes);

	t->vtime += wf_runq_slice(SLICES_AHEAD * WF_SLICE_NS);
	machine_queue(&wf_rt.workers[0], t);
}

static void check_one_is_ahead(void)
{
	const uint32_t nr_fair = 2 * SLICES_AHEAD * TICKS_IN_SLICE;

	machine_check();
	model_expect(nr_yields <= nr_fair + 2 * TICKS_IN_SLICE,
		     "loops of yields keep one waiting that is slices ahead of them");
	model_expect(nr_yields >= nr_fair - 2 * TICKS_IN_SLICE,
		     "one that is slices ahead comes before loops of yields have had as much");
}

static const struct model being_ahead = { .setup = setup_one_is_ahead,
					  .check = check_one_is_ahead };

TEST(loops_of_yields_let_one_that_is_slices_ahead_run_when_they_have_had_as_much)
{
	verify_order(&being_ahead);
}

/* The processor was away for most of that time. */
static void yields_at_late_tick(void *arg)
{
	tick(5 * WF_SEC);
	wf_yield();
	has_come = true;
}

static void setup_late_tick(void)
{
	machine_queue(&wf_rt.workers[0], setup_beside_yields(yields_at_late_tick));
}

static void check_late_tick(void)
{
	machine_check();
	model_expect(nr_yields <= 2 * 3 * TICKS_IN_SLICE,
		     "one that yields waits for slices because a tick came late");
}

static const struct model being_late = { .setup = setup_late_tick, .check = check_late_tick };

TEST(loops_of_yields_pay_a_slice_at_most_for_a_tick_that_comes_seconds_late)
{
	verify_order(&being_late);
}
