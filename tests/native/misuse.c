// SPDX-License-Identifier: Apache-2.0
/* The picture behind the line about a mistake: scopes, groups and their threads. */
#include <weft/weft.h>

#include "dies.h"
#include "native.h"
#include "threads.h"

#include <fcntl.h>
#include <sched.h>

#define HOUR (3600 * WEFT_SEC)

static weft_event never, is_there;
static int nr_yields;

static int waits(void *arg)
{
	(void)arg;
	weft_event_set(&is_there);
	return weft_event_wait(&never, WEFT_NEVER);
}

static int has_another_group(void *arg)
{
	weft_group inner = { .name = "parse", .policy = WEFT_EACH };

	(void)arg;
	(void)weft_group_go(&inner, waits, NULL);
	return weft_group_wait(&inner);
}

static void let_it_wait(void)
{
	(void)weft_event_wait(&is_there, WEFT_NEVER);
	for (int i = 0; i < nr_yields; i++)
		sched_yield();
}

/* A cancellation ends at the shield, so that the group stays as it is. */
static void *closes(void *arg)
{
	weft_scope outer, s;
	weft_group g = { .name = "crawl", .policy = WEFT_ANY, .limit = 8 };

	(void)arg;
	weft_thread_set_name("careless");
	weft_scope_open(&outer, weft_now() + HOUR, "request");
	weft_scope_shield(&s, WEFT_NEVER, "look\033up");
	(void)weft_group_go(&g, has_another_group, NULL);
	let_it_wait();
	weft_scope_cancel(&outer);
	(void)weft_scope_close(&s);
	return NULL;
}

static void closes_before_group(void)
{
	join(spawn(closes, NULL));
}

TEST(scopes_and_groups_are_shown_from_inside_out)
{
	nr_yields = 1;
	CHECK_DIES(closes_before_group, "thread 'careless' closes scope 'look?up'",
		   "nobody has waited for group 'crawl' in it\n  thread ", " careless\n",
		   "    shield look?up\n    scope request: 3", " s left, cancelled\n",
		   "    group crawl: any, 1 left, at most 8\n      thread", " crawl",
		   "\n        group parse: each, 1 left\n          thread ", "parse");
}

static void closes_later(weft_fn *fn)
{
	weft_group g = { .name = "crawl" };
	weft_scope s;

	weft_scope_open(&s, WEFT_NEVER, NULL);
	(void)weft_group_go(&g, fn, NULL);
	let_it_wait();
	(void)weft_scope_close(&s);
}

static void waits_meanwhile(void)
{
	closes_later(waits);
}

static void has_group_meanwhile(void)
{
	closes_later(has_another_group);
}

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;

static int is_late(void *arg)
{
	weft_scope s;

	weft_scope_open(&s, WEFT_NOW, "lookup");
	weft_event_set(&is_there);
	(void)pthread_mutex_lock(&held);
	(void)arg;
	return weft_scope_close(&s);
}

static void is_late_meanwhile(void)
{
	(void)pthread_mutex_lock(&held);
	closes_later(is_late);
}

/* A child in which the thread was not waiting yet is none that counts. */
static bool dies_showing(void (*fn)(void), const char *text)
{
	const char *const parts[] = { "weft: ", "\n      thread", text, NULL };
	char said[DIES_SAID_BYTES];

	for (nr_yields = 1; nr_yields < 1 << 20; nr_yields *= 2) {
		if (dies_having_said(fn, parts, said))
			return true;
	}
	tap_note("said: %s", said);
	return false;
}

/* Natively only libweft's waits are known. */
TEST(it_says_what_a_thread_waits_for)
{
	if (weft_mode(NULL) != WEFT_MODE_ATTACHED) {
		CHECK(dies_showing(waits_meanwhile, " crawl: waits\n"));
		CHECK(dies_showing(has_group_meanwhile, " crawl: waits\n        group parse"));
		return;
	}
	CHECK(dies_showing(waits_meanwhile, " crawl: waits for event 0x"));
	CHECK(dies_showing(has_group_meanwhile, " crawl: waits for a group"));
	CHECK(dies_showing(is_late_meanwhile, " crawl: OVERDUE, waits for futex 0x"));
}

static unsigned nr_begun;

static int begins(void *arg)
{
	__atomic_fetch_add(&nr_begun, 1u, __ATOMIC_SEQ_CST);
	return waits(arg);
}

/* More than there are lines. A thread is in its group's list from where it begins. */
static void has_many(void)
{
	weft_group g = { .name = "crowd" };
	weft_scope s;

	weft_scope_open(&s, WEFT_NEVER, "hall");
	for (int i = 0; i < 100; i++)
		(void)weft_group_go(&g, begins, NULL);
	while (__atomic_load_n(&nr_begun, __ATOMIC_SEQ_CST) < 100)
		sched_yield();
	(void)weft_scope_close(&s);
}

TEST(it_has_an_end)
{
	CHECK_DIES(has_many, "closes scope 'hall'", "    group crowd: all, 100 left\n", "  ...");
}

/* Its own group's thread makes the mistake, which holds no lock of it. */
static int joins_nobody(void *arg)
{
	(void)arg;
	return weft_thread_join(NULL, NULL, WEFT_NEVER);
}

static void is_in_a_group(void)
{
	weft_group g = { .name = "clumsy", .deadline = weft_now() + HOUR };

	(void)weft_group_go(&g, joins_nobody, NULL);
	(void)weft_group_wait(&g);
}

TEST(a_thread_of_a_group_says_so)
{
	CHECK_DIES(is_in_a_group, "is none\n  thread ", "clumsy\n    in group clumsy: 3",
		   " s left");
}

/* How a child ends whose standard error is fd; -1: closed. */
static int ends_by(int fd)
{
	const struct rlimit none = { 0, 0 };
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		(void)setrlimit(RLIMIT_CORE, &none);
		signal(SIGABRT, SIG_DFL);
		if (fd < 0)
			close(STDERR_FILENO);
		else
			(void)dup2(fd, STDERR_FILENO);
		closes_before_group();
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

TEST(it_ends_by_abort_whoever_listens)
{
	int to[2];

	nr_yields = 1;
	CHECK_EQ(ends_by(-1), SIGABRT);
	CHECK_EQ(pipe(to), 0);
	close(to[0]);
	CHECK_EQ(ends_by(to[1]), SIGABRT);
	close(to[1]);
}

/* Emulators, which have something to say themselves, wait there. */
TEST(what_nobody_reads_is_not_waited_for)
{
	static char fill[1 << 16];
	int to[2], bytes;

	if (weft_mode(NULL) != WEFT_MODE_ATTACHED)
		return;
	nr_yields = 1;
	CHECK_EQ(pipe(to), 0);
	bytes = fcntl(to[1], F_SETPIPE_SZ, 4096);
	CHECK(bytes > 128 && bytes <= (int)sizeof(fill));
	/* There is room for the line, and for no picture. */
	CHECK_EQ(write(to[1], fill, (size_t)bytes - 128), bytes - 128);
	CHECK_EQ(ends_by(to[1]), SIGABRT);
	close(to[0]);
	close(to[1]);
}
