// SPDX-License-Identifier: Apache-2.0
/*
 * base/list: order, removal, splicing.
 */
#include "base/list.h"

#include <string.h>

#include "tap.h"

struct item {
	char name;
	struct wf_list link;
};

static struct item a, b, c, d;
static struct wf_list list, other;

static void begin(void)
{
	a.name = 'a';
	b.name = 'b';
	c.name = 'c';
	d.name = 'd';
	wf_list_init(&a.link);
	wf_list_init(&b.link);
	wf_list_init(&c.link);
	wf_list_init(&d.link);
	wf_list_init(&list);
	wf_list_init(&other);
}

/* The names on l, read forwards; checks that backwards says the same. */
static const char *names(struct wf_list *l)
{
	static char forwards[8];
	char backwards[8];
	size_t len = 0;

	for (struct wf_list *n = l->next; n != l && len < sizeof(forwards) - 1; n = n->next)
		forwards[len++] = container_of(n, struct item, link)->name;
	forwards[len] = '\0';
	backwards[len] = '\0';
	for (struct wf_list *n = l->prev; n != l && len > 0; n = n->prev)
		backwards[--len] = container_of(n, struct item, link)->name;
	CHECK_STR_EQ(forwards, backwards);
	return forwards;
}

TEST(tail_pushes_keep_the_order_and_head_pushes_turn_it)
{
	begin();
	CHECK(wf_list_is_empty(&list));
	wf_list_push_tail(&list, &b.link);
	wf_list_push_tail(&list, &c.link);
	wf_list_push_head(&list, &a.link);
	CHECK_STR_EQ(names(&list), "abc");
	CHECK(!wf_list_is_empty(&list));
}

TEST(pop_returns_the_head_and_then_null)
{
	begin();
	wf_list_push_tail(&list, &a.link);
	wf_list_push_tail(&list, &b.link);
	CHECK(wf_list_pop_head(&list) == &a.link);
	CHECK(wf_list_pop_head(&list) == &b.link);
	CHECK(wf_list_pop_head(&list) == NULL);
}

TEST(removing_twice_does_no_harm)
{
	begin();
	wf_list_push_tail(&list, &a.link);
	wf_list_push_tail(&list, &b.link);
	wf_list_push_tail(&list, &c.link);
	wf_list_remove(&b.link);
	CHECK(wf_list_is_empty(&b.link));
	wf_list_remove(&b.link);
	CHECK_STR_EQ(names(&list), "ac");
	/* nor when others have come to where it was */
	wf_list_insert_before(&c.link, &d.link);
	wf_list_remove(&b.link);
	CHECK_STR_EQ(names(&list), "adc");
}

TEST(a_splice_moves_everything_to_the_tail)
{
	begin();
	wf_list_push_tail(&list, &a.link);
	wf_list_splice_tail(&list, &other);
	CHECK_STR_EQ(names(&list), "a");
	wf_list_push_tail(&other, &b.link);
	wf_list_push_tail(&other, &c.link);
	wf_list_splice_tail(&list, &other);
	CHECK_STR_EQ(names(&list), "abc");
	CHECK(wf_list_is_empty(&other));
}

TEST(the_safe_loop_lets_its_body_remove)
{
	struct wf_list *n, *next;
	int nr_seen = 0;

	begin();
	wf_list_push_tail(&list, &a.link);
	wf_list_push_tail(&list, &b.link);
	wf_list_push_tail(&list, &c.link);
	wf_list_push_tail(&list, &d.link);
	wf_list_for_each_safe (n, next, &list) {
		nr_seen++;
		if (n != &c.link)
			wf_list_remove(n);
	}
	CHECK_EQ(nr_seen, 4);
	CHECK_STR_EQ(names(&list), "c");
}
