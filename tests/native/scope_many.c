// SPDX-License-Identifier: Apache-2.0
/* Scopes in large numbers: what is cancelled leaves nothing behind. SCOPE_MANY: how many; the usual suites make fewer. */
#include "native.h"
#include "tap.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <weft/group.h>
#include <weft/scope.h>
#include <weft/weft.h>

static int how_many(int usual)
{
	const char *many = getenv("SCOPE_MANY");

	return many ? atoi(many) : usual;
}

static int nr_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static long resident_kib(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	long pages = 0;

	if (f) {
		(void)!fscanf(f, "%*d %ld", &pages);
		fclose(f);
	}
	return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int nr_ended;

/* Opens, locks and allocates as a library would, and gives all of it back when its call fails. */
static int uses_things(void *arg)
{
	char *room = malloc(1000);
	int ends[2], error = 0;
	char c;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0) {
		free(room);
		return -errno;
	}
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
	if (read(ends[0], &c, 1) < 0)
		error = -errno;
	pthread_mutex_lock(&lock);
	nr_ended += error == -ECANCELED;
	pthread_mutex_unlock(&lock);
	close(ends[0]);
	close(ends[1]);
	free(room);
	return error;
}

static void *cancel(void *scope)
{
	weft_scope_cancel(scope);
	return NULL;
}

#define AT_ONCE 100

TEST(cancelled_calls_lose_no_descriptor_lock_or_memory)
{
	const int rounds = how_many(5000) / AT_ONCE;
	int before = 0;
	long kib = 0;

	if (is_native_run())
		SKIP("scopes do not reach into libc in native mode");
	for (int i = 0; i < rounds; i++) {
		weft_group g = { .name = "many", .policy = WEFT_EACH };
		weft_scope s;
		pthread_t t;

		if (i == 10) {
			before = nr_descriptors();
			kib = resident_kib();
		}
		weft_scope_open(&s, WEFT_NEVER, "many");
		for (int n = 0; n < AT_ONCE / 2; n++)
			weft_group_go(&g, uses_things, NULL);
		pthread_create(&t, NULL, cancel, &s);
		/* Over or not: each is started, or is refused. */
		for (int n = 0; n < AT_ONCE / 2; n++)
			weft_group_go(&g, uses_things, NULL);
		CHECK_EQ(weft_group_wait(&g), -ECANCELED);
		weft_scope_close(&s);
		pthread_join(t, NULL);
	}
	CHECK_EQ(nr_descriptors(), before);
	CHECK(resident_kib() - kib < 16 << 10);
	CHECK_EQ(pthread_mutex_trylock(&lock), 0);
	pthread_mutex_unlock(&lock);
	CHECK(nr_ended >= rounds * AT_ONCE / 2);
}

static int nr_waiting;

static int waits(void *pipe)
{
	char c;

	__atomic_fetch_add(&nr_waiting, 1, __ATOMIC_SEQ_CST);
	return read(*(int *)pipe, &c, 1) < 0 ? -errno : 0;
}

TEST(as_many_threads_as_there_are_end_by_one_cancel)
{
	const struct weft_thread_opts small = { .size = sizeof(small), .stack_bytes = 16 << 10 };
	weft_group g = { .name = "parked", .policy = WEFT_EACH, .opts = &small };
	const int wanted = how_many(2000);
	weft_time began;
	int ends[2], n = 0;

	if (is_native_run())
		SKIP("scopes do not reach into libc in native mode");
	(void)!pipe(ends);
	while (n < wanted && weft_group_go(&g, waits, ends) == 0)
		n++;
	CHECK(n > 1000);
	while (__atomic_load_n(&nr_waiting, __ATOMIC_SEQ_CST) < n)
		weft_sleep_until(weft_now() + WEFT_MS);
	began = weft_now();
	weft_group_cancel(&g);
	tap_note("%d threads: told in %lld ns each", n, (long long)(weft_now() - began) / n);
	CHECK_EQ(weft_group_wait(&g), -ECANCELED);
	tap_note("%d threads: ended in %lld ns each", n, (long long)(weft_now() - began) / n);
	close(ends[0]);
	close(ends[1]);
}

/* Under ThreadSanitizer each thread that waits looks every 10 ms for what has happened to it. */
#ifdef __SANITIZE_THREAD__
#define DEPTH 200
#else
#define DEPTH 1000
#endif

/* The scope around all of it is cancelled at the bottom, where each level has one thread that waits. */
struct level {
	int depth;
	weft_scope *outermost;
};

static int until_cancelled(void *arg)
{
	int error;

	while (!(error = weft_scope_check()))
		weft_sleep_until(weft_now() + 5 * WEFT_MS);
	return error;
}

static const struct weft_thread_opts deep = { .size = sizeof(deep), .stack_bytes = 32 << 10 };

static int go_down(void *arg)
{
	struct level below = *(struct level *)arg;
	weft_group g = { .name = "level", .opts = &deep };

	if (!below.depth--) {
		weft_scope_cancel(below.outermost);
		return 0;
	}
	if (below.depth % 8 == 0)
		weft_group_go(&g, until_cancelled, NULL);
	weft_group_go(&g, go_down, &below);
	return weft_group_wait(&g);
}

TEST(groups_nest_as_deep_as_there_are_threads)
{
	weft_group g = { .name = "root", .opts = &deep };
	struct level top = { .depth = DEPTH };
	weft_scope s;

	top.outermost = &s;
	weft_scope_open(&s, WEFT_NEVER, "s");
	CHECK_EQ(weft_group_go(&g, go_down, &top), 0);
	CHECK_EQ(weft_group_wait(&g), -ECANCELED);
	weft_scope_close(&s);
}
