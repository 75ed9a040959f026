// SPDX-License-Identifier: Apache-2.0
/* Whether the peer of a thread runs where the thread does: the kernel took the processor away in the call that sent. */
#include "sched/peer.h"

#include "tap.h"

#include <stddef.h>
#include <time.h>

extern const ptrdiff_t __rseq_offset;

static struct wf_thread thread;
static struct wf_kthread kthread = { .cur = &thread };

/* libc has an area of its own registered for this kernel thread, and there can be one. */
static void set_up(void)
{
	char *area = (char *)__builtin_thread_pointer() + __rseq_offset;

	(void)sys4(__NR_rseq, area, SYS_RSEQ_BYTES, SYS_RSEQ_UNREGISTER, SYS_RSEQ_SIGNATURE);
	wf_peer_watch(&kthread);
	CHECK(kthread.is_watched);
}

static void send_beside_peer(int fd)
{
	const struct timespec ms = { .tv_nsec = 1000000 };

	wf_peer_before_send(&kthread);
	(void)nanosleep(&ms, NULL); /* somebody else has the processor, if only the idle task */
	wf_peer_after_send(&kthread, fd);
}

static void send_to_nobody(int fd)
{
	wf_peer_before_send(&kthread);
	(void)sys0(__NR_getppid);
	wf_peer_after_send(&kthread, fd);
}

TEST(who_loses_the_processor_by_sending_has_its_peer_here)
{
	set_up();
	for (int i = 0; i < 5; i++)
		send_beside_peer(7);
	CHECK(wf_thread_is_beside_peer(&thread));
	for (int i = 0; i < 8; i++)
		send_beside_peer(7);
	CHECK_EQ(thread.peer_here, 15);
}

TEST(who_keeps_it_has_not)
{
	int nr = 0;

	/* Now and then the kernel takes it for somebody else. */
	while (thread.peer_here && nr++ < 100000)
		send_to_nobody(7);
	CHECK(!wf_thread_is_beside_peer(&thread));
	send_to_nobody(7);
	CHECK(!wf_thread_is_beside_peer(&thread));
}

TEST(who_serves_many_has_no_peer)
{
	for (int i = 0; i < 100; i++)
		send_beside_peer(i & 1);
	CHECK_EQ(thread.peer_here, 0);
}

TEST(where_it_is_not_watched_no_peer_is_here)
{
	wf_peer_unwatch(&kthread);
	for (int i = 0; i < 8; i++)
		send_beside_peer(7);
	CHECK_EQ(thread.peer_here, 0);
}
