// SPDX-License-Identifier: Apache-2.0
/*
 * Stacks of many sizes and guards, used again and again: each is all there, guarded, and nobody else's.
 */
#include "check.h"

#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define NR 64
#define ROUNDS 6

static const size_t sizes[] = { 32 << 10, 64 << 10, 256 << 10, 1 << 20, 8 << 20 };
static const size_t guards[] = { 4096, 65536, 0 };
static pthread_barrier_t all_filled;
static int null_fd;

/* Not by touching it: whether the kernel would. */
static bool is_readable(const char *p)
{
	int fds[2];
	bool is;

	CHECK_SYS(pipe(fds));
	is = write(fds[1], p, 1) == 1;
	close(fds[0]);
	close(fds[1]);
	return is;
}

static void *fills_its_stack(void *arg)
{
	size_t bytes, guard;
	unsigned char mark = (unsigned char)(uintptr_t)arg;
	volatile unsigned char block[6000];
	pthread_attr_t attr;
	char *low;

	CHECK_PT(pthread_getattr_np(pthread_self(), &attr));
	CHECK_PT(pthread_attr_getstack(&attr, (void **)&low, &bytes));
	CHECK_PT(pthread_attr_getguardsize(&attr, &guard));
	pthread_attr_destroy(&attr);
	for (size_t i = 0; i < sizeof(block); i++)
		block[i] = mark;
	pthread_barrier_wait(&all_filled);
	for (size_t i = 0; i < sizeof(block); i++)
		CHECK(block[i] == mark);
	CHECK(is_readable(low));
	CHECK(is_readable(low + bytes - 1));
	if (guard) {
		CHECK(!is_readable(low - 1));
		CHECK(!is_readable(low - guard));
	}
	return NULL;
}

static void run_all(void)
{
	pthread_t t[NR];

	for (int round = 0; round < ROUNDS; round++) {
		CHECK_PT(pthread_barrier_init(&all_filled, NULL, NR));
		for (int i = 0; i < NR; i++) {
			pthread_attr_t attr;

			pthread_attr_init(&attr);
			CHECK_PT(pthread_attr_setguardsize(&attr, guards[(i + round) % 3]));
			CHECK_PT(pthread_attr_setstacksize(&attr, sizes[(i + round / 2) % 5] +
									  guards[(i + round) % 3]));
			CHECK_PT(pthread_create(&t[i], &attr, fills_its_stack,
						(void *)(uintptr_t)(i + 1)));
			pthread_attr_destroy(&attr);
		}
		for (int i = 0; i < NR; i++)
			join(t[i]);
		pthread_barrier_destroy(&all_filled);
	}
}

static void *nothing(void *arg)
{
	return arg;
}

/* More than libc's cache of stacks (40 MB by default) keeps, so that they come and go. */
static void come_and_go(void)
{
	pthread_t t[40];

	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < 40; i++)
			CHECK_PT(pthread_create(&t[i], NULL, nothing, NULL));
		for (int i = 0; i < 40; i++)
			join(t[i]);
	}
}

static void map_like_a_stack(void)
{
	const size_t bytes = 256 << 10;
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK;
	char *p[8], *mine;

	for (int i = 0; i < 8; i++) {
		p[i] = mmap(NULL, bytes, PROT_NONE, flags, -1, 0);
		CHECK(p[i] != MAP_FAILED);
		CHECK_SYS(mprotect(p[i] + 4096, bytes - 4096, PROT_READ | PROT_WRITE));
		CHECK(!is_readable(p[i]));
		memset(p[i] + 4096, i + 1, bytes - 4096);
	}
	CHECK_SYS(munmap(p[0], bytes));
	CHECK_SYS(munmap(p[1] + 8192, bytes - 8192)); /* a part of it */
	CHECK(p[1][4096] == 2);
	CHECK_SYS(mprotect(p[2] + 8192, 4096, PROT_READ));
	CHECK(!is_readable(p[2]));
	CHECK_SYS(mprotect(p[3], bytes, PROT_READ | PROT_WRITE));
	CHECK_SYS(madvise(p[4] + 4096, bytes - 4096, MADV_DONTNEED));
	CHECK(p[4][4096] == 0);
	CHECK(mmap(p[5] + 8192, 4096, PROT_READ, MAP_PRIVATE | MAP_FIXED, null_fd, 0) !=
	      MAP_FAILED);
	CHECK(p[5][8192] == 0 && p[5][4096] == 6);
	CHECK(p[6][8192] == 7);
	for (int i = 1; i < 8; i++)
		CHECK_SYS(munmap(p[i], bytes));
	/* what was given back may be mapped again by address, and is then nobody's stack */
	CHECK(mmap(p[7], 4 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
		   -1, 0) == p[7]);
	memset(p[7], 77, 4 * 4096);
	mine = p[7];
	for (int i = 0; i < 8; i++) {
		p[i] = mmap(NULL, bytes, PROT_NONE, flags, -1, 0);
		CHECK_SYS(mprotect(p[i] + 16384, bytes - 16384, PROT_READ | PROT_WRITE));
		CHECK(!is_readable(p[i]));
		CHECK(!is_readable(p[i] + 16383));
		CHECK(is_readable(p[i] + 16384) && is_readable(p[i] + bytes - 1));
		for (size_t n = 16384; n < bytes; n++)
			CHECK(!p[i][n]);
	}
	for (int i = 0; i < 8; i++) {
		CHECK(mine + 4 * 4096 <= p[i] || mine >= p[i] + bytes);
		CHECK_SYS(munmap(p[i], bytes));
	}
	CHECK(mine[0] == 77 && mine[4 * 4096 - 1] == 77);
	CHECK_SYS(munmap(mine, 4 * 4096));
}

/* The same room again with guards of other sizes, larger ones first: what was guard is stack then. */
static void guards_change(void)
{
	static const size_t low_ends[] = { 65536, 4096, 16384, 8192, 131072, 4096 };
	const size_t bytes = 256 << 10;

	for (size_t i = 0; i < sizeof(low_ends) / sizeof(low_ends[0]); i++) {
		const size_t guard = low_ends[i];
		char *p[4];

		for (int k = 0; k < 4; k++) {
			p[k] = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK,
				    -1, 0);
			CHECK(p[k] != MAP_FAILED);
			CHECK_SYS(mprotect(p[k] + guard, bytes - guard, PROT_READ | PROT_WRITE));
			for (size_t at = 0; at < bytes; at += 4096)
				CHECK(is_readable(p[k] + at) == (at >= guard));
			memset(p[k] + guard, k, bytes - guard);
		}
		for (int k = 0; k < 4; k++)
			CHECK_SYS(munmap(p[k], bytes));
	}
}

static void *sweeps(void *arg)
{
	run_all();
	ok("sizes and guards");
	come_and_go();
	ok("come and go");
	map_like_a_stack();
	ok("mapped like a stack");
	guards_change();
	ok("guards of other sizes");
	return NULL;
}

/* Enough threads that the runtime cannot afford two mappings for each stack any more. */
static pthread_t crowd[8300];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t may_go = PTHREAD_COND_INITIALIZER;
static bool go;

static void *waits(void *arg)
{
	pthread_mutex_lock(&lock);
	while (!go)
		pthread_cond_wait(&may_go, &lock);
	pthread_mutex_unlock(&lock);
	return arg;
}

static void gather_crowd(void)
{
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	CHECK_PT(pthread_attr_setstacksize(&attr, 32 << 10));
	for (size_t i = 0; i < sizeof(crowd) / sizeof(crowd[0]); i++)
		CHECK_PT(pthread_create(&crowd[i], &attr, waits, NULL));
	pthread_attr_destroy(&attr);
}

static void dismiss_crowd(void)
{
	pthread_mutex_lock(&lock);
	go = true;
	pthread_cond_broadcast(&may_go);
	pthread_mutex_unlock(&lock);
	for (size_t i = 0; i < sizeof(crowd) / sizeof(crowd[0]); i++)
		join(crowd[i]);
}

static void *ends(void *arg)
{
	return arg;
}

static int nr_mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	int nr = 0, c;

	while (f && (c = getc_unlocked(f)) != EOF)
		nr += c == '\n';
	if (f)
		fclose(f);
	return nr;
}

/* Each greater than those that libc has kept. */
static void use_many_sizes(void)
{
	pthread_attr_t attr;
	pthread_t t;

	pthread_attr_init(&attr);
	for (size_t i = 0; i < 20; i++) {
		CHECK_PT(pthread_attr_setstacksize(&attr, (64 + 16 * i) << 10));
		CHECK_PT(pthread_create(&t, &attr, ends, NULL));
		join(t);
	}
	pthread_attr_destroy(&attr);
}

/* Linux 6.13: guards that take no mappings of their own. */
static bool has_guard_regions(void)
{
	char *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool has = madvise(page, 4096, 102 /* MADV_GUARD_INSTALL */) == 0;

	munmap(page, 4096);
	return has;
}

/* A thread that has ended keeps its stack until it is joined. */
static void end_and_wait(void)
{
	static pthread_t ended[10000];
	const int nr = sizeof(ended) / sizeof(ended[0]);
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	CHECK_PT(pthread_attr_setstacksize(&attr, 48 << 10));
	for (int i = 0; i < nr; i++)
		CHECK_PT(pthread_create(&ended[i], &attr, ends, NULL));
	CHECK(!is_under_weft() || !has_guard_regions() || nr_mappings() < 18000);
	for (int i = 0; i < nr; i++)
		join(ended[i]);
	pthread_attr_destroy(&attr);
}

static void in_child(void)
{
	pid_t child = fork();
	int status;

	if (!child) {
		run_all();
		come_and_go();
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(status == 0);
}

int main(void)
{
	pthread_t t;

	null_fd = open("/dev/zero", O_RDONLY);
	CHECK(null_fd >= 0);
	CHECK_PT(pthread_create(&t, NULL, sweeps, NULL));
	join(t);
	use_many_sizes();
	end_and_wait();
	ok("ended and not joined");
	gather_crowd();
	CHECK_PT(pthread_create(&t, NULL, sweeps, NULL));
	join(t);
	in_child();
	dismiss_crowd();
	run_all();
	ok("in a child");
	return finish();
}
