// SPDX-License-Identifier: Apache-2.0
/* The checker itself: it knows what x86 allows and what it does not. */
#include "base/atomic.h"
#include "model.h"

#include "tap.h"

static uint32_t x, y, seen_x, seen_y;

static void store_x_load_y(void *arg)
{
	wf_store_release(&x, 1u);
	wf_fence_seq_cst(&x);
	seen_y = wf_load_acquire(&y);
}

static void store_y_load_x(void *arg)
{
	wf_store_release(&y, 1u);
	wf_fence_seq_cst(&y);
	seen_x = wf_load_acquire(&x);
}

static void setup_buffering(void)
{
	x = y = seen_x = seen_y = 0;
	(void)model_cpu("a", store_x_load_y, NULL, NULL);
	(void)model_cpu("b", store_y_load_x, NULL, NULL);
}

static void check_buffering(void)
{
	model_expect(seen_x || seen_y, "neither saw the other");
}

static const struct model buffering = { .setup = setup_buffering,
					.check = check_buffering,
					.bound = 3 };

TEST(with_fences_one_of_two_sees_the_other)
{
	model_verify(&buffering);
}

TEST(a_missing_fence_is_caught)
{
	model_catches(buffering, "store_x_load_y", "fence");
}

static void publish(void *arg)
{
	wf_store_relaxed(&x, 1u);
	wf_store_relaxed(&y, 1u);
}

static void read_published(void *arg)
{
	seen_y = wf_load_relaxed(&y);
	seen_x = wf_load_relaxed(&x);
}

static void setup_publishing(void)
{
	x = y = seen_x = seen_y = 0;
	(void)model_cpu("a", publish, NULL, NULL);
	(void)model_cpu("b", read_published, NULL, NULL);
}

static void check_publishing(void)
{
	model_expect(!seen_y || seen_x, "stores were seen in another order");
}

static const struct model publishing = { .setup = setup_publishing,
					 .check = check_publishing,
					 .bound = 4 };

TEST(stores_are_seen_in_order)
{
	model_verify(&publishing);
}

static void own_store(void *arg)
{
	wf_store_relaxed(&x, 1u);
	wf_store_relaxed(&x, x + 1); /* a plain read of a pending store */
	model_expect(wf_load_relaxed(&x) == 2, "a CPU does not see its own stores");
}

static void setup_own(void)
{
	x = 0;
	(void)model_cpu("a", own_store, NULL, NULL);
	(void)model_cpu("b", read_published, NULL, NULL);
}

static const struct model own = { .setup = setup_own, .bound = 4 };

TEST(a_cpu_sees_its_own_stores)
{
	model_verify(&own);
}
