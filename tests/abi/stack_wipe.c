// SPDX-License-Identifier: Apache-2.0
/*
 * A thread that has just begun gives back a part of its own stack, as programs do to wipe it: what lay there is gone,
 * and what the kernel refuses it refuses there, too.
 */
#include "check.h"

#include <sys/mman.h>

#define WIPED 32768

static long page;

/* Inside buf, which is two pages longer. */
static char *aligned(char *buf)
{
	return (char *)(((uintptr_t)buf + (uintptr_t)page - 1) & -(uintptr_t)page);
}

static void *wipes(void *arg)
{
	char buf[WIPED + 2 * 4096], *p = aligned(buf);
	int nr_left = 0;

	memset(p, 'S', WIPED);
	CHECK_SYS(madvise(p, WIPED, MADV_DONTNEED));
	for (int i = 0; i < WIPED; i++)
		nr_left += ((volatile char *)p)[i] != 0;
	CHECK_EQ(nr_left, 0);
	return arg;
}

static void *wipes_by_number(void *arg)
{
	char buf[WIPED + 2 * 4096], *p = aligned(buf);

	memset(p, 'S', WIPED);
	CHECK_SYS(syscall(SYS_madvise, p, WIPED, MADV_DONTNEED));
	CHECK_EQ(((volatile char *)p)[0], 0);
	return arg;
}

static void *is_refused(void *arg)
{
	char buf[WIPED + 2 * 4096], *p = aligned(buf);

	CHECK_ERRNO(madvise(p + 1, WIPED, MADV_DONTNEED), EINVAL);
	if (mlock(p, (size_t)page) == 0)
		CHECK_ERRNO(madvise(p, WIPED, MADV_DONTNEED), EINVAL);
	CHECK_SYS(munlock(p, (size_t)page));
	CHECK_SYS(madvise(p, WIPED, MADV_DONTNEED));
	return arg;
}

static char *own_stack;

/* The last thing that it does is a jump: madvise() returns to libc. */
__attribute__((optimize("O2"), noinline)) static void *ends_so(void *arg)
{
	long (*fn)(void *, size_t, int) = (long (*)(void *, size_t, int))(void *)madvise;

	return (void *)fn(arg, WIPED, MADV_DONTNEED);
}

static void wipe_at_the_end(void)
{
	pthread_attr_t a;
	pthread_t t;
	void *ret;

	own_stack = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(own_stack != MAP_FAILED);
	memset(own_stack, 'S', 1 << 18);
	CHECK_PT(pthread_attr_init(&a));
	CHECK_PT(pthread_attr_setstack(&a, own_stack, 1 << 20));
	CHECK_PT(pthread_create(&t, &a, ends_so, own_stack + page));
	ret = join(t);
	CHECK(ret == NULL);
	CHECK_EQ(own_stack[page], 0);
	CHECK_EQ(own_stack[page + WIPED - 1], 0);
	CHECK_SYS(munmap(own_stack, 1 << 20));
}

int main(void)
{
	page = sysconf(_SC_PAGESIZE);
	join(start(wipes, NULL));
	join(start(wipes_by_number, NULL));
	ok("wiped");
	join(start(is_refused, NULL));
	ok("refused");
	wipe_at_the_end();
	ok("wiped as the last thing");
	return finish();
}
