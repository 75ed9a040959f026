// SPDX-License-Identifier: Apache-2.0
/* Groups: who is started, cancelled and waited for, attached and natively. */
#include "native.h"
#include "tap.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weft/group.h>
#include <weft/scope.h>
#include <weft/weft.h>

static int nr_run;

static int count(void *arg)
{
	__atomic_fetch_add(&nr_run, 1, __ATOMIC_SEQ_CST);
	return (int)(long)arg;
}

/* Until it is cancelled: natively only weft's own functions are. */
static int until_cancelled(void *arg)
{
	int error;

	__atomic_fetch_add(&nr_run, 1, __ATOMIC_SEQ_CST);
	while (!(error = weft_scope_check()))
		weft_sleep_until(weft_now() + WEFT_MS / 2);
	return error;
}

TEST(all_have_ended_when_the_wait_returns)
{
	weft_group g = { .name = "all" };

	nr_run = 0;
	for (int i = 0; i < 50; i++)
		CHECK_EQ(weft_group_go(&g, count, NULL), 0);
	CHECK_EQ(weft_group_wait(&g), 0);
	CHECK_EQ(nr_run, 50);
	CHECK_EQ(weft_group_wait(&g), 0);
	/* As new. */
	CHECK_EQ(weft_group_go(&g, count, (void *)(long)-EIO), 0);
	CHECK_EQ(weft_group_wait(&g), -EIO);
	CHECK_EQ(weft_group_go(&g, count, (void *)5), 0);
	CHECK_EQ(weft_group_wait(&g), 0);
}

TEST(the_first_error_cancels_the_rest)
{
	weft_group g = { .name = "all" };

	for (int i = 0; i < 8; i++)
		weft_group_go(&g, until_cancelled, NULL);
	CHECK_EQ(weft_group_go(&g, count, (void *)(long)-EIO), 0);
	CHECK_EQ(weft_group_wait(&g), -EIO);
}

TEST(the_first_success_cancels_the_rest)
{
	weft_group g = { .name = "any", .policy = WEFT_ANY };

	for (int i = 0; i < 8; i++)
		weft_group_go(&g, until_cancelled, NULL);
	weft_group_go(&g, count, (void *)(long)-EIO);
	weft_group_go(&g, count, (void *)3);
	CHECK_EQ(weft_group_wait(&g), 0);
	weft_group_go(&g, count, (void *)(long)-EIO);
	CHECK_EQ(weft_group_wait(&g), -EIO);
}

TEST(each_goes_on_whatever_the_others_return)
{
	weft_group g = { .name = "each", .policy = WEFT_EACH };

	nr_run = 0;
	weft_group_go(&g, count, (void *)(long)-EIO);
	for (int i = 0; i < 20; i++)
		CHECK_EQ(weft_group_go(&g, count, NULL), 0);
	CHECK_EQ(weft_group_wait(&g), -EIO);
	CHECK_EQ(nr_run, 21);
}

TEST(a_deadline_ends_them)
{
	weft_group g = { .name = "timed", .deadline = weft_now() + 10 * WEFT_MS };

	for (int i = 0; i < 8; i++)
		weft_group_go(&g, until_cancelled, NULL);
	CHECK_EQ(weft_group_wait(&g), -ETIMEDOUT);
	g.deadline = WEFT_NOW;
	CHECK_EQ(weft_group_go(&g, count, NULL), -ETIMEDOUT);
	CHECK_EQ(weft_group_wait(&g), 0);
}

static void *cancel_group(void *group)
{
	weft_group_cancel(group);
	return NULL;
}

TEST(cancel_ends_them_and_starts_no_more)
{
	weft_group g = { .name = "cancelled" };
	pthread_t t;

	for (int i = 0; i < 8; i++)
		weft_group_go(&g, until_cancelled, NULL);
	pthread_create(&t, NULL, cancel_group, &g);
	CHECK_EQ(weft_group_wait(&g), -ECANCELED);
	pthread_join(t, NULL);
	weft_group_wait(&g); /* if the cancel came behind the wait */
	weft_group_cancel(&g);
	CHECK_EQ(weft_group_go(&g, count, NULL), -ECANCELED);
	CHECK_EQ(weft_group_go(&g, count, NULL), 0);
	CHECK_EQ(weft_group_wait(&g), 0);
}

static int nr_at_once, most_at_once;

static int beside(void *arg)
{
	int now = __atomic_add_fetch(&nr_at_once, 1, __ATOMIC_SEQ_CST);

	if (now > __atomic_load_n(&most_at_once, __ATOMIC_SEQ_CST))
		__atomic_store_n(&most_at_once, now, __ATOMIC_SEQ_CST);
	sched_yield();
	__atomic_sub_fetch(&nr_at_once, 1, __ATOMIC_SEQ_CST);
	return 0;
}

TEST(go_waits_while_as_many_run_as_the_limit_allows)
{
	weft_group g = { .name = "limited", .limit = 3 };

	for (int i = 0; i < 200; i++)
		CHECK_EQ(weft_group_go(&g, beside, NULL), 0);
	CHECK_EQ(weft_group_wait(&g), 0);
	CHECK(most_at_once <= 3);
}

TEST(go_waits_no_longer_than_a_scope_or_the_group_allows)
{
	weft_group g = { .name = "limited", .limit = 1 };
	weft_scope s;

	weft_group_go(&g, until_cancelled, NULL);
	weft_scope_open(&s, weft_now() + 5 * WEFT_MS, "s");
	CHECK_EQ(weft_group_go(&g, count, NULL), -ETIMEDOUT);
	CHECK_EQ(weft_scope_close(&s), -ETIMEDOUT);
	weft_group_cancel(&g);
	CHECK_EQ(weft_group_wait(&g), -ECANCELED);
	g.deadline = weft_now() + 5 * WEFT_MS;
	g.policy =
		WEFT_EACH; /* else the thread that ends in time cancels the group, perhaps first */
	weft_group_go(&g, until_cancelled, NULL);
	CHECK_EQ(weft_group_go(&g, count, NULL), -ETIMEDOUT);
	CHECK_EQ(weft_group_wait(&g), -ETIMEDOUT);
}

TEST(a_scope_that_ends_the_wait_cancels_first)
{
	weft_group g = { .name = "inside" };
	weft_scope s;

	weft_group_go(&g, until_cancelled, NULL);
	weft_scope_open(&s, weft_now() + 5 * WEFT_MS, "s");
	CHECK_EQ(weft_group_wait(&g), -ECANCELED);
	CHECK_EQ(weft_scope_close(&s), -ETIMEDOUT);
}

TEST(threads_are_in_the_scopes_of_their_group)
{
	weft_group g = { .name = "g" };
	weft_scope s;

	weft_scope_open(&s, weft_now() + 5 * WEFT_MS, "s");
	weft_group_go(&g, until_cancelled, NULL);
	CHECK_EQ(weft_group_wait(&g), -ETIMEDOUT);
	CHECK_EQ(weft_scope_close(&s), -ETIMEDOUT);
	/* Not in those that are opened later, around another go. */
	weft_group_go(&g, count, NULL);
	weft_scope_open(&s, WEFT_NOW, "s");
	weft_scope_close(&s);
	CHECK_EQ(weft_group_wait(&g), 0);
}

static int canceller(void *scope)
{
	weft_scope_cancel(scope);
	return 0;
}

/* One group in a thread of another, to the bottom, where the outermost scope is cancelled. */
struct level {
	int depth;
	weft_scope *outermost;
};

static int go_down(void *arg)
{
	struct level below = *(struct level *)arg;
	weft_group g = { .name = "level" };

	if (!below.depth--)
		return canceller(below.outermost);
	weft_group_go(&g, until_cancelled, NULL);
	weft_group_go(&g, go_down, &below);
	return weft_group_wait(&g);
}

static void nest(int depth)
{
	weft_group g = { .name = "root" };
	struct level top = { .depth = depth };
	weft_scope s;

	top.outermost = &s;
	weft_scope_open(&s, WEFT_NEVER, "s");
	weft_group_go(&g, go_down, &top);
	CHECK_EQ(weft_group_wait(&g), -ECANCELED);
	CHECK(weft_scope_close(&s) != 0);
}

TEST(cancelling_reaches_the_threads_of_threads)
{
	nest(30);
}

static int exits(void *arg)
{
	pthread_exit(arg);
}

TEST(a_thread_may_end_by_pthread_exit)
{
	weft_group g = { .name = "exits" };

	weft_group_go(&g, exits, NULL);
	CHECK_EQ(weft_group_wait(&g), -ECANCELED);
}

static pthread_key_t key;
static int nr_destroyed;

static void destroyed(void *value)
{
	weft_sleep_until(weft_now() + WEFT_MS / 4);
	__atomic_fetch_add(&nr_destroyed, 1, __ATOMIC_SEQ_CST);
}

static int sets_key(void *arg)
{
	pthread_setspecific(key, &key);
	return 0;
}

TEST(destructors_of_its_threads_have_run_when_the_wait_returns)
{
	weft_group g = { .name = "keys" };

	pthread_key_create(&key, destroyed);
	for (int i = 0; i < 20; i++)
		weft_group_go(&g, sets_key, NULL);
	CHECK_EQ(weft_group_wait(&g), 0);
	CHECK_EQ(nr_destroyed, 20);
}

static void on_usr1(int sig)
{
	__atomic_fetch_add(&nr_run, 1, __ATOMIC_SEQ_CST);
}

static int signals_waiter(void *arg)
{
	pthread_kill(*(pthread_t *)arg, SIGUSR1);
	while (!__atomic_load_n(&nr_run, __ATOMIC_SEQ_CST))
		sched_yield();
	return 0;
}

static pthread_t waiter;
static pthread_key_t late;
static int nr_handled;

static void cleans_up(int sig)
{
	weft_scope s;

	weft_scope_shield(&s, WEFT_NEVER, "cleanup");
	(void)weft_scope_close(&s);
	__atomic_fetch_add(&nr_handled, 1, __ATOMIC_SEQ_CST);
}

/* This thread's function has returned: the waiter is on its way to the join, or in it, until this returns, too. */
static void interrupts_the_join(void *arg)
{
	for (int i = 1; i <= 20; i++) {
		pthread_kill(waiter, SIGUSR1);
		while (__atomic_load_n(&nr_handled, __ATOMIC_SEQ_CST) < i)
			usleep(1000);
	}
}

static int sets_late_key(void *arg)
{
	pthread_setspecific(late, &late);
	return 0;
}

TEST(a_handler_that_comes_during_the_last_join_costs_no_scope)
{
	struct sigaction act = { .sa_handler = cleans_up }, before;
	weft_group g = { .name = "group" };
	weft_scope outer, s;

	waiter = pthread_self();
	sigaction(SIGUSR1, &act, &before);
	CHECK_EQ(pthread_key_create(&late, interrupts_the_join), 0);
	weft_scope_open(&outer, WEFT_NEVER, "outer");
	CHECK_EQ(weft_group_go(&g, sets_late_key, NULL), 0);
	CHECK_EQ(weft_group_wait(&g), 0);
	CHECK_EQ(nr_handled, 20);
	for (int i = 0; i < 2; i++) {
		weft_scope_shield(&s, WEFT_NEVER, "shield");
		CHECK_EQ(weft_scope_close(&s), 0);
	}
	weft_scope_open(&s, WEFT_NEVER, "s");
	weft_scope_cancel(&outer);
	CHECK_EQ(weft_scope_check(), -ECANCELED);
	CHECK_EQ(weft_scope_close(&s), 0);
	CHECK_EQ(weft_scope_close(&outer), -ECANCELED);
	CHECK_EQ(weft_scope_check(), 0);
	pthread_key_delete(late);
	sigaction(SIGUSR1, &before, NULL);
}

TEST(handlers_run_during_a_wait)
{
	weft_group g = { .name = "g" };
	pthread_t self = pthread_self();

	signal(SIGUSR1, on_usr1);
	nr_run = 0;
	weft_group_go(&g, signals_waiter, &self);
	CHECK_EQ(weft_group_wait(&g), 0);
	CHECK_EQ(nr_run, 1);
}

/* Is there where the program runs with ASan. */
void __sanitizer_purge_allocator(void) __attribute__((weak));

/*
 * Of now: behind the peak of an earlier case nothing would show. ASan's quarantine is emptied first: it gets freed blocks from each
 * thread that ends, and a page of notes on them.
 */
static long resident_kib(void)
{
	long size, pages = 0;
	FILE *f;

	if (__sanitizer_purge_allocator)
		__sanitizer_purge_allocator();
	f = fopen("/proc/self/statm", "re");
	CHECK(f && fscanf(f, "%ld %ld", &size, &pages) == 2);
	if (f)
		fclose(f);
	return pages * (sysconf(_SC_PAGESIZE) >> 10);
}

TEST(nothing_is_kept_of_a_thread_that_has_ended)
{
	weft_group g = { .name = "loop", .limit = 4 };
	long before;

	SKIP_IF_EMULATED("what qemu itself needs grows");
	for (int i = 0; i < 1000; i++)
		weft_group_go(&g, count, NULL);
	before = resident_kib();
	for (int i = 0; i < 2000; i++)
		CHECK_EQ(weft_group_go(&g, count, NULL), 0);
	/* Half a page of each; valgrind's notes are 800 bytes. */
	CHECK(resident_kib() - before < 4 << 10);
	CHECK_EQ(weft_group_wait(&g), 0);
}

static int more(void *arg)
{
	weft_group *g = arg;

	return weft_group_go(g, count, NULL);
}

TEST(a_thread_starts_others_in_its_own_group)
{
	weft_group g = { .name = "g" };

	nr_run = 0;
	for (int i = 0; i < 10; i++)
		weft_group_go(&g, more, &g);
	CHECK_EQ(weft_group_wait(&g), 0);
	CHECK_EQ(nr_run, 10);
}

/* A child's last words before it aborts. */
static void check_abort_lines(void (*mistake)(void), const char *const *wanted)
{
	char said[8192], *at = said;
	int ends[2], status = 0;
	ssize_t n, len = 0;
	pid_t pid;

	(void)!pipe(ends);
	pid = fork();
	if (pid == 0) {
		struct rlimit none = { 0, 0 };

		setrlimit(RLIMIT_CORE, &none);
		dup2(ends[1], 2);
		mistake();
		_exit(0);
	}
	close(ends[1]);
	while ((n = read(ends[0], said + len, sizeof(said) - 1 - (size_t)len)) > 0)
		len += n;
	said[len] = '\0';
	close(ends[0]);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	for (; *wanted && at; wanted++)
		at = strstr(at, *wanted);
	if (!CHECK(at))
		tap_note("%s", said);
}

static void check_abort(void (*mistake)(void), const char *wanted)
{
	check_abort_lines(mistake, (const char *const[]){ wanted, NULL });
}

static int leaves_group(void *arg)
{
	static weft_group g = { .name = "orphans" };

	weft_group_go(&g, until_cancelled, NULL);
	return 0;
}

static void orphan_in_group(void)
{
	weft_group g = { .name = "parents" };

	weft_group_go(&g, leaves_group, NULL);
	weft_group_wait(&g);
}

static void *leaves_group_thread(void *arg)
{
	pthread_setname_np(pthread_self(), "careless");
	leaves_group(arg);
	return NULL;
}

static void orphan_in_thread(void)
{
	pthread_t t;

	pthread_create(&t, NULL, leaves_group_thread, NULL);
	pthread_join(t, NULL);
}

static void scope_before_group(void)
{
	weft_group g = { .name = "inner" };
	weft_scope s;

	weft_scope_open(&s, WEFT_NEVER, "around");
	weft_group_go(&g, until_cancelled, NULL);
	weft_scope_close(&s);
}

/* Deep enough that what is called later does not reach down to it. */
static __attribute__((noinline)) void leave_scope_of_group(void)
{
	static weft_group g = { .name = "stranded" };
	volatile char room[8192];
	weft_scope s;

	__asm__ volatile("" : : "r"(room) : "memory");
	weft_scope_open(&s, WEFT_NEVER, "left");
	weft_group_go(&g, until_cancelled, NULL);
}

static void scope_left_before_group(void)
{
	weft_scope next;

	pthread_setname_np(pthread_self(), "hasty");
	leave_scope_of_group();
	weft_scope_open(&next, WEFT_NEVER, "next");
}

static void *waits(void *group)
{
	weft_group_wait(group);
	return NULL;
}

static void wait_by_another(void)
{
	weft_group g = { .name = "theirs" };
	pthread_t t;

	weft_group_go(&g, until_cancelled, NULL);
	pthread_create(&t, NULL, waits, &g);
	pthread_join(t, NULL);
}

TEST(mistakes_abort_with_both_names)
{
	check_abort(scope_left_before_group,
		    "weft: thread 'hasty' has left the scope of group 'stranded', and nobody has "
		    "waited for it\n");
	check_abort(orphan_in_group,
		    "thread 'parents' ends, and nobody has waited for its group 'orphans'");
	check_abort(orphan_in_thread,
		    "thread 'careless' ends, and nobody has waited for its group 'orphans'");
	check_abort(scope_before_group,
		    "closes scope 'around', and nobody has waited for group 'inner' in it");
	check_abort(wait_by_another, "waits for group 'theirs', which another thread has opened");
}
