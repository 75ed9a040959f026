// SPDX-License-Identifier: Apache-2.0
/* The picture of a mistake, of objects that are in use or damaged: it ends, and follows nothing that it should not. */
#include "native/picture.h"
#include "sched/group.h"
#include "tap.h"

#include <string.h>

static struct wf_scopes sc, child;
static struct wf_group g;
static struct wf_chan ch;
static struct wf_scope s;
static char said[WF_PICTURE_BYTES];

/* A thread in scope "inner", with a group of one thread. */
static void build(void)
{
	sc = (struct wf_scopes){ .is_ready = true, .until = WF_NEVER };
	child = (struct wf_scopes){ .is_ready = true, .until = WF_NEVER, .group = &g };
	g = (struct wf_group){ .scope = { .name = "g", .deadline = WF_NEVER, .owner = &sc },
			       .nr = 1 };
	s = (struct wf_scope){
		.name = "inner", .deadline = WF_NEVER, .until = WF_NEVER, .owner = &sc
	};
	s.check = wf_scope_check_of(&s);
	sc.top = &s;
	wf_list_init(&sc.groups);
	wf_list_init(&child.groups);
	wf_list_init(&g.members);
	wf_list_push_tail(&sc.groups, &g.link);
	wf_list_push_tail(&g.members, &child.link);
	memset(&ch, 0, sizeof(ch));
	ch.name = "ch";
	wf_list_init(&ch.receivers);
	wf_list_init(&ch.senders);
}

static const char *draw(void)
{
	const struct wf_picture p = { .sc = &sc, .ch = &ch, .name = "main", .tid = 7 };
	size_t len = wf_picture_draw(NULL, &p, said);

	CHECK_EQ(len, strlen(said));
	return said;
}

static unsigned nr_lines(const char *at)
{
	unsigned nr = 0;

	while ((at = strchr(at, '\n'))) {
		nr++;
		at++;
	}
	return nr;
}

TEST(all_of_it_is_shown)
{
	build();
	CHECK_STR_EQ(draw(), "  thread 7 main\n"
			     "    scope inner\n"
			     "    group g: all, 1 left\n"
			     "      thread without a name\n"
			     "  channel ch: 0 of 0 items\n");
	CHECK(!sc.lock.held && !g.lock.held && !child.lock.held && !ch.lock.held);
}

TEST(a_lock_that_is_held_is_not_waited_for)
{
	build();
	g.lock.held = ch.lock.held = 1;
	CHECK_STR_EQ(draw(), "  thread 7 main\n"
			     "    scope inner\n"
			     "    group g: all, 1 left, in use just now\n"
			     "  channel ch: 0 of 0 items, in use just now\n");
	CHECK(g.lock.held && ch.lock.held);
	sc.lock.held = 1;
	CHECK(!strstr(draw(), "group"));
}

TEST(a_link_that_does_not_lead_back_is_not_followed)
{
	static struct wf_list astray;

	build();
	g.members.next = NULL;
	CHECK(!strstr(draw(), "      thread"));
	g.members.next = &astray;
	CHECK(!strstr(draw(), "      thread"));
	sc.groups.next = &astray;
	CHECK(!strstr(draw(), "group"));
}

TEST(a_circle_has_an_end)
{
	build();
	child.link.next = &child.link;
	CHECK(nr_lines(draw()) <= WF_PICTURE_LINES);

	/* A scope that is its own outer one. */
	build();
	s.outer = &s;
	s.check = wf_scope_check_of(&s);
	CHECK(nr_lines(draw()) <= WF_PICTURE_LINES);
	CHECK(strstr(said, "group g"));
}

/* The walk comes to locks that it holds itself. */
TEST(a_group_of_a_thread_that_has_opened_it_has_an_end)
{
	build();
	wf_list_remove(&child.link);
	wf_list_push_tail(&g.members, &sc.link);
	CHECK_STR_EQ(draw(), "  thread 7 main\n"
			     "    scope inner\n"
			     "    group g: all, 1 left\n"
			     "      thread without a name\n"
			     "  channel ch: 0 of 0 items\n");
}

TEST(a_scope_that_was_overwritten_is_not_followed)
{
	build();
	s.name = (const char *)1;
	CHECK(!strstr(draw(), "scope"));
	CHECK(strstr(said, "group g"));
}

TEST(a_name_is_cut_and_cleaned)
{
	char name[300];

	build();
	memset(name, 'x', sizeof(name) - 1);
	name[1] = '\n';
	name[sizeof(name) - 1] = '\0';
	s.name = name;
	s.check = wf_scope_check_of(&s);
	CHECK(strstr(draw(), "    scope x?xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n"));
}

TEST(many_threads_fill_the_lines_that_there_are)
{
	static struct wf_scopes many[100];

	build();
	for (int i = 0; i < 100; i++) {
		wf_list_init(&many[i].groups);
		wf_list_push_tail(&g.members, &many[i].link);
	}
	CHECK_EQ(nr_lines(draw()), WF_PICTURE_LINES);
	CHECK(strstr(said, "\n  ...\n"));
}
