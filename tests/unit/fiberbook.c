// SPDX-License-Identifier: Apache-2.0
/*
 * native/fiberbook: each fiber has a place of its own, what goes makes room, here and elsewhere, and pages are few.
 */
#include "native/fiberbook.h"

#include <pthread.h>
#include <string.h>

#include "tap.h"

#define MANY 4000u

static char own, fibers[MANY];
static uintptr_t *places[MANY];

static struct wf_fiberbook *begin(void)
{
	struct wf_fiberbook *b = wf_fiberbook_new(&own, &own);

	memset(places, 0, sizeof(places));
	wf_fiberbook_open(b, 7, 1);
	return b;
}

/* A fiber's address is even: the lowest bit is the list's. */
static const void *fiber(unsigned i)
{
	return (const void *)((uintptr_t)&fibers[i] << 1);
}

static void enter(struct wf_fiberbook *b, unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i++)
		places[i] = wf_fiberbook_enter(b, fiber(i));
}

static void leave(struct wf_fiberbook *b, unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i++) {
		wf_fiberbook_leave(b, places[i]);
		places[i] = NULL;
	}
}

/* As a dump reads it. */
static unsigned count_shown(const struct wf_fiberbook *b, uint64_t *out_places)
{
	unsigned nr = 0;

	*out_places = 0;
	for (const struct wf_fibers_page *p = b->shown.page; p; p = p->next) {
		const uintptr_t *at = (const uintptr_t *)(p + 1);

		*out_places += p->nr;
		for (uint64_t i = 0; i < p->nr; i++)
			nr += at[i] && !(at[i] & 1);
	}
	return nr;
}

static void *leave_all(void *from)
{
	leave(NULL, *(unsigned *)from, MANY);
	return NULL;
}

TEST(each_has_a_place_of_its_own)
{
	struct wf_fiberbook *b = begin();
	uint64_t nr;
	bool is_right = true;

	enter(b, 0, MANY);
	for (unsigned i = 0; i < MANY; i++)
		is_right &= places[i] && *places[i] == (uintptr_t)fiber(i);
	CHECK(is_right);
	CHECK_EQ(count_shown(b, &nr), MANY);
	CHECK(nr >= MANY && nr <= 2 * MANY);
}

TEST(whoever_goes_makes_room_for_the_next)
{
	struct wf_fiberbook *b = begin();
	uint64_t nr;

	for (int i = 0; i < 10; i++) {
		enter(b, 0, WF_FIBERBOOK_FIRST);
		CHECK_EQ(count_shown(b, &nr), WF_FIBERBOOK_FIRST);
		leave(b, 0, WF_FIBERBOOK_FIRST);
	}
	CHECK_EQ(count_shown(b, &nr), 0);
	CHECK_EQ(nr, WF_FIBERBOOK_FIRST);
}

TEST(room_that_other_threads_make_is_found)
{
	struct wf_fiberbook *b = begin();
	uint64_t nr, nr_before;
	unsigned from = 0;

	enter(b, 0, MANY);
	(void)count_shown(b, &nr_before);
	for (int i = 0; i < 20; i++) {
		pthread_t t;

		CHECK_EQ(pthread_create(&t, NULL, leave_all, &from), 0);
		pthread_join(t, NULL);
		CHECK_EQ(count_shown(b, &nr), 0);
		enter(b, 0, MANY);
		CHECK_EQ(count_shown(b, &nr), MANY);
	}
	CHECK_EQ(nr, nr_before);
}

/* One at a time, with all other places taken: each search finds one, and a page comes so that there are not as many searches. */
TEST(pages_end_searches_that_find_little)
{
	struct wf_fiberbook *b = begin();
	uint64_t nr;

	enter(b, 0, WF_FIBERBOOK_FIRST);
	for (unsigned i = 0; i < MANY; i++) {
		leave(NULL, 0, 1);
		enter(b, 0, 1);
	}
	CHECK_EQ(count_shown(b, &nr), WF_FIBERBOOK_FIRST);
	CHECK_EQ(nr, 2 * WF_FIBERBOOK_FIRST);
}

TEST(a_book_that_is_closed_is_nobodys)
{
	struct wf_fiberbook *mine = begin(), *other = begin();

	CHECK(wf_fibers_all == &other->shown && other->shown.next == &mine->shown);
	wf_fiberbook_forget_others(mine);
	CHECK_EQ(mine->shown.tid, 1);
	CHECK_EQ(other->shown.tid, 0);
	wf_fiberbook_close(mine);
	CHECK_EQ(mine->shown.tid, 0);
}
