// SPDX-License-Identifier: Apache-2.0
/*
 * A ring of events is read while it is written, also by a handler that interrupts the writer: what the reader takes is
 * whole, and the event that it is taken for. The reader is target/rings.c of the command, in a few lines.
 */
#include "model.h"
#include "trace/trace.h"

#include "tap.h"

#define NR_PLACES 2u
#define NR_EVENTS 4u

static struct wf_trace_event places[NR_PLACES];
static struct wf_trace_ring ring[WF_TRACE_RINGS];
static uint64_t nr_taken;
static int writer;

static void write_one(uint64_t value)
{
	wf_trace_write(ring, WF_EV_PARK, (uint32_t)value, value, value);
}

/* Without a handler event n has the value n. */
static void write_all(void *arg)
{
	for (uint64_t i = 0; i < NR_EVENTS; i++)
		write_one(i);
}

static void write_half(void *arg)
{
	for (uint64_t i = 0; i < NR_EVENTS / 2; i++)
		write_one(i);
}

static void on_kick(void)
{
	write_one(100);
}

static void kick(void *arg)
{
	model_interrupt(writer);
}

static bool take(uint64_t n, bool is_numbered)
{
	const struct wf_trace_event *place = &places[n % NR_PLACES];
	struct wf_trace_event e;
	uint64_t count;

	e.event = wf_load_acquire(&place->event);
	e.tid = wf_load_acquire(&place->tid);
	e.a = wf_load_acquire(&place->a);
	e.b = wf_load_acquire(&place->b);
	count = wf_load_acquire(&ring->next);
	if (!model_is_mutated("reader", "number") && e.event >> WF_TRACE_KIND_BITS != n)
		return false;
	if (!(e.event & ((1u << WF_TRACE_KIND_BITS) - 1)))
		return false;
	if (!model_is_mutated("reader", "count") && n + NR_PLACES < count)
		return false;
	model_expect(e.a == e.b && e.tid == e.a, "half of an event is taken");
	model_expect(!is_numbered || e.a == n, "an event is taken for another one");
	return true;
}

static void read_all(bool is_numbered)
{
	uint64_t count = wf_load_acquire(&ring->next);

	for (uint64_t n = count > NR_PLACES ? count - NR_PLACES : 0; n < count; n++)
		nr_taken += take(n, is_numbered);
}

static void read_numbered(void *arg)
{
	read_all(true);
}

static void read_any(void *arg)
{
	read_all(false);
}

static void reset(void)
{
	for (uint32_t i = 0; i < NR_PLACES; i++)
		places[i] = (struct wf_trace_event){ 0 };
	ring[0] = (struct wf_trace_ring){ .mask = NR_PLACES - 1, .places = places };
	wf_trace.on = WF_TRACE_SCHED;
	nr_taken = 0;
}

static void setup_alone(void)
{
	reset();
	writer = model_cpu("writer", write_all, NULL, NULL);
	model_cpu("reader", read_numbered, NULL, NULL);
}

static void setup_interrupted(void)
{
	reset();
	model_on_interrupt(on_kick);
	writer = model_cpu("writer", write_half, NULL, NULL);
	model_cpu("kicker", kick, NULL, NULL);
	model_cpu("reader", read_any, NULL, NULL);
}

/* A ring that nobody writes to any more is all there. */
static void all_is_there(void)
{
	nr_taken = 0;
	read_all(false);
	model_expect(nr_taken == NR_PLACES, "an event is missing in a ring that is at rest");
}

static const struct model alone = { .setup = setup_alone, .check = all_is_there, .bound = 3 };
static const struct model interrupted = {
	.setup = setup_interrupted, .check = all_is_there, .bound = 2, .walks = 2000
};

TEST(what_is_read_is_whole_and_in_its_place)
{
	model_verify(&alone);
}

TEST(a_handler_that_writes_in_between_breaks_nothing)
{
	model_verify(&interrupted);
}

TEST(a_claim_that_a_handler_can_interrupt_is_caught)
{
	model_catches(interrupted, "wf_trace_write", "fetch_add");
}

TEST(a_reader_that_does_not_look_at_the_number_is_caught)
{
	model_catches(alone, "reader", "number");
}

TEST(a_reader_that_does_not_look_at_the_count_again_is_caught)
{
	model_catches(alone, "reader", "count");
}
