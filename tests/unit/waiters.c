// SPDX-License-Identifier: Apache-2.0
/* io/fd, with the table, the facts and the poller below and above it: who of those that wait for a descriptor is woken, and what is known of it meanwhile. */
#include "sched/park.h"

#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

/* Instead of the scheduler: who was woken, in order. */
static struct wf_thread threads[4], *woken[8], *late;
static int nr_woken;

static bool note_unpark(struct wf_thread *t, enum wf_reason reason)
{
	(void)reason;
	woken[nr_woken++ % 8] = t;
	return t != late;
}

#define wf_unpark note_unpark
#include "io/fd.c"
#undef wf_unpark

#include "io/epoll_driver.h"
#include "sched/runtime.h"

#include "tap.h"

static int fds[2];
static struct wf_fd_waiter waiters[4];

static void begin(void)
{
	const char *refused;
	static bool is_ready;

	if (!is_ready)
		CHECK_EQ(wf_epoll_init(&refused), 0);
	is_ready = true;
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	wf_fd_forget(fds[0]);
	nr_woken = 0;
	late = NULL;
}

static void end(void)
{
	for (int i = 0; i < 4; i++)
		wf_fd_dequeue(&waiters[i]);
	wf_fd_forget(fds[0]);
	close(fds[0]);
	close(fds[1]);
	CHECK(!wf_fd_has_waiters());
}

static int wait_as(int i, uint32_t events, bool is_exclusive, uint32_t seq)
{
	waiters[i] = (struct wf_fd_waiter){
		.thread = &threads[i], .events = events, .fd = fds[0], .is_exclusive = is_exclusive
	};
	return wf_fd_enqueue(&waiters[i], seq, NULL);
}

/* All that has happened until now. */
static void look(void)
{
	(void)wf_epoll_driver.poll(0);
}

static void wait_all(int nr, bool is_exclusive)
{
	for (int i = 0; i < nr; i++)
		CHECK_EQ(wait_as(i, EPOLLIN, is_exclusive, wf_fd_seq(fds[0])), 0);
	look();
	CHECK_EQ(nr_woken, 0);
}

static void send_one(void)
{
	CHECK_EQ(write(fds[1], "x", 1), 1);
	look();
}

TEST(an_event_is_for_one_of_those_who_read)
{
	begin();
	wait_all(3, true);
	send_one();
	CHECK_EQ(nr_woken, 1);
	CHECK(woken[0] == &threads[0]);
	send_one();
	CHECK_EQ(nr_woken, 2);
	CHECK(woken[1] == &threads[1]);
	end();
}

TEST(an_event_is_for_all_who_only_look)
{
	begin();
	wait_all(3, false);
	send_one();
	CHECK_EQ(nr_woken, 3);
	send_one();
	CHECK_EQ(nr_woken, 3);
	end();
}

TEST(an_event_that_comes_too_late_for_one_is_the_next_ones)
{
	begin();
	wait_all(3, true);
	late = &threads[0];
	send_one();
	CHECK_EQ(nr_woken, 2);
	CHECK(woken[1] == &threads[1]);
	end();
}

TEST(who_waits_for_room_does_not_take_what_there_is_to_read)
{
	static char block[1 << 16];

	begin();
	while (send(fds[0], block, sizeof(block), MSG_DONTWAIT) > 0)
		;
	CHECK_EQ(wait_as(0, EPOLLOUT, true, wf_fd_seq(fds[0])), 0);
	CHECK_EQ(wait_as(1, EPOLLIN, true, wf_fd_seq(fds[0])), 0);
	look();
	nr_woken = 0;
	send_one();
	CHECK_EQ(nr_woken, 1);
	CHECK(woken[0] == &threads[1]);
	while (recv(fds[1], block, sizeof(block), MSG_DONTWAIT) > 0)
		;
	look();
	CHECK_EQ(nr_woken, 2);
	CHECK(woken[1] == &threads[0]);
	end();
}

TEST(a_hang_up_is_for_everybody)
{
	begin();
	wait_all(3, true);
	close(fds[1]);
	look();
	CHECK_EQ(nr_woken, 3);
	end();
}

TEST(what_came_between_the_look_and_the_wait_is_seen)
{
	uint32_t seq;

	begin();
	wait_all(1, true);
	seq = wf_fd_seq(fds[0]);
	send_one();
	CHECK_EQ(wait_as(0, EPOLLIN, true, seq), 1);
	CHECK(!wf_fd_has_waiters());
	CHECK_EQ(wait_as(0, EPOLLIN, true, wf_fd_seq(fds[0])), 0);
	end();
}

TEST(an_event_of_the_file_before_is_nobodys)
{
	uint64_t tag;
	uint32_t seq;

	begin();
	wait_all(1, true);
	tag = (uint64_t)wf_fdtab_entry(fds[0])->generation << 32 | (uint32_t)fds[0];
	wf_fd_dequeue(&waiters[0]);
	wf_fd_forget(fds[0]);
	CHECK_EQ(wait_as(0, EPOLLIN, true, wf_fd_seq(fds[0])), 0);
	seq = wf_fd_seq(fds[0]);
	wf_fd_on_event(tag, EPOLLIN);
	CHECK_EQ(nr_woken, 0);
	CHECK_EQ(wf_fd_seq(fds[0]), seq);
	wf_fd_on_event(tag + (1ull << 32), EPOLLIN);
	CHECK_EQ(nr_woken, 1);
	end();
}

TEST(what_nobody_waits_for_leaves_the_poller_and_comes_back)
{
	struct fd_entry *e;

	begin();
	wait_all(1, true);
	wf_fd_dequeue(&waiters[0]);
	e = wf_fdtab_entry(fds[0]);
	for (int i = 0; i < 300 && e->is_registered; i++)
		send_one();
	CHECK(!e->is_registered);
	CHECK_EQ(nr_woken, 0);
	/* what lies there raises an event at once */
	CHECK_EQ(wait_as(0, EPOLLIN, true, wf_fd_seq(fds[0])), 0);
	look();
	CHECK_EQ(nr_woken, 1);
	end();
}

TEST(a_descriptor_is_quiet_until_something_comes)
{
	uint32_t seq;

	begin();
	wait_all(1, true);
	seq = wf_fd_seq(fds[0]);
	wf_fd_found_empty(fds[0], seq);
	CHECK(wf_fd_is_quiet(fds[0], seq));
	CHECK(!wf_fd_is_quiet(fds[0], seq - 1));
	send_one();
	CHECK(!wf_fd_is_quiet(fds[0], wf_fd_seq(fds[0])));
	wf_fd_found_empty(fds[0], seq); /* by who looked before */
	CHECK(!wf_fd_is_quiet(fds[0], wf_fd_seq(fds[0])));
	end();
}

TEST(what_was_hung_up_is_never_quiet)
{
	uint32_t seq;

	begin();
	wait_all(1, true);
	CHECK_EQ(shutdown(fds[1], SHUT_WR), 0);
	look();
	CHECK(wf_fd_is_ended(fds[0]));
	seq = wf_fd_seq(fds[0]);
	wf_fd_found_empty(fds[0], seq);
	CHECK(!wf_fd_is_quiet(fds[0], seq));
	end();
}
